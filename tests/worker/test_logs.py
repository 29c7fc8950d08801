import logging
import stat
import sys
from pathlib import Path

import pytest

from stash_mcp.errors import StorageError
from stash_mcp.worker import logs
from stash_mcp.worker.logs import LOG, job_log

SECRET = "hunter2-is-the-key"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


def test_each_line_has_a_time_a_level_and_the_newest_is_last(path: Path) -> None:
    with job_log(path, ()):
        LOG.info("first")
        LOG.error("second")
    [first, second] = path.read_text("utf-8").splitlines()
    assert first.endswith("INFO first")
    assert second.endswith("ERROR second")
    assert first[:2] == "20"


def test_secrets_and_what_looks_like_a_key_are_masked_even_in_tracebacks(path: Path) -> None:
    with job_log(path, (SECRET,)):
        LOG.info("with %s and sk-abcdef123456", SECRET)
        try:
            raise ValueError(SECRET)
        except ValueError:
            LOG.exception("failed")
    text = path.read_text("utf-8")
    assert text.count("[redacted]") >= 3
    assert "Traceback" in text
    assert SECRET not in text
    assert "sk-abcdef" not in text


def test_other_libraries_are_heard_from_warnings_on(path: Path) -> None:
    with job_log(path, ()):
        logging.getLogger("some.library").warning("careful")
        logging.getLogger("some.library").info("chatter")
    assert "careful" in path.read_text("utf-8")
    assert "chatter" not in path.read_text("utf-8")


def test_nothing_is_logged_after_the_block(path: Path) -> None:
    handlers = list(logging.getLogger().handlers)
    with job_log(path, ()):
        LOG.info("within")
    LOG.info("after")
    assert "after" not in path.read_text("utf-8")
    assert logging.getLogger().handlers == handlers


def test_a_later_attempt_is_added_to_the_log(path: Path) -> None:
    for attempt in ("one", "two"):
        with job_log(path, ()):
            LOG.info(attempt)
    assert [line[-3:] for line in path.read_text("utf-8").splitlines()] == ["one", "two"]


def test_a_long_log_keeps_one_older_part(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 1000)
    with job_log(path, ()):
        for number in range(100):
            LOG.info("line %d %s", number, "x" * 50)
    assert {file.name for file in path.parent.iterdir()} == {"worker.log", "worker.log.1"}
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 2000
    assert "line 99" in path.read_text("utf-8").splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_the_log_and_its_older_part_are_private(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 100)
    with job_log(path, ()):
        for number in range(5):
            LOG.info("line %d %s", number, "x" * 50)
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


def test_a_log_that_cannot_be_opened_is_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match=r"worker\.log"), job_log(path, ()):
        pass


def test_text_that_has_no_utf8_is_logged_all_the_same(path: Path) -> None:
    with job_log(path, ()):
        LOG.info("half \ud800 a pair")
    assert "half ? a pair" in path.read_text("utf-8")
