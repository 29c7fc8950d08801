"""What holds for every test: no key of the person's, none of their folders, no network."""

import gc
import os
from collections.abc import Generator
from pathlib import Path

import pytest

# Read when the libraries are first imported, so before any test module is.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Workers and tests share few cores, and models this small wait for a second thread longer than
# they compute.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

_SECRETS = ("_API_KEY", "_TOKEN", "_SECRET")
_TESTS = Path(__file__).parent
_REPOSITORY = _TESTS.parent


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a third of the time is waiting for other processes."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What goes through the whole program takes longest: first, so that nobody waits for it alone
    at the end."""
    items.sort(key=lambda item: item.path.parent != _TESTS)


def pytest_collection_finish() -> None:
    """The libraries are loaded and stay: nobody has to look again whether they are garbage."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged goes to another process, which takes no halves of characters."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.fixture(autouse=True)
def _a_world_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(_SECRETS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("STASH_MCP_HOME", str(tmp_path / "stash-home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude-config"))
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path / "project"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real conversations; a test that asks for it is skipped where it is missing."""
    folder = Path(
        os.environ.get("STASH_SKILLS_DATA", _REPOSITORY.parent / "shared" / "data")
    ).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real conversations at {folder} (set STASH_SKILLS_DATA)")
    return folder
