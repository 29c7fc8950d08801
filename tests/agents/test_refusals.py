"""Files that are not edited are left as they are, with the reason and its line."""

import os
import stat
import sys
from pathlib import Path

import pytest

from stash_mcp.agents import config_file

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")


def cursor_file(desk) -> Path:
    path = desk.settings.user_home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "mcpServers": {\n    "a": {"x": 1}\n    "b": 2\n  }\n}\n', "line 4: a comma"),
        ('{\n  "mcpServers": {\n', "line 3: a name in double quotes"),
        ('{\n  "a": tru\n}', "line 2: a value is expected"),
        ('{"a": "b\nc"}', "line 1: a value is expected"),
        ("[1]\n", "line 1: it is not an object"),
        ("{}\n{}\n", "line 2: there is something after its end"),
        ('{\n"mcpServers": []}', "line 2: an object is expected"),
        ('{"mcpServers": {"stash-skills": 1, "stash-skills": 2}}', "more than once"),
        ('{"mcpServers": {"stash-skills": 1}, "mcpServers": {}}', "more than once"),
        ('{"a": /* never ends', "a comment does not end"),
        ("[" * 5000, "line 1: it is nested too deep"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(desk, text: str, said: str) -> None:
    path = cursor_file(desk)
    path.write_text(text, "utf-8")
    for force in (False, True):
        step = desk.do("cursor", force=force)
        assert step.action == "refused"
        assert said in (step.problem or "")
        assert str(path) in (step.problem or "")
    # Which of two entries of one name its agent reads is not known.
    removed = desk.do("cursor", remove=True)
    assert removed.action in (("refused",) if "more than once" in said else ("refused", "absent"))
    assert path.read_text("utf-8") == text


def test_a_broken_toml_is_refused_with_its_line(desk) -> None:
    path = desk.settings.user_home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("a = 1\nb = = 2\n[mcp_servers]\n", "utf-8")
    step = desk.do("codex")
    assert (step.action, "line 2:" in (step.problem or "")) == ("refused", True)
    path.write_text("mcp_servers = 3\n", "utf-8")
    assert "'mcp_servers' is not a table" in (desk.do("codex").problem or "")


def test_a_comment_that_the_agent_does_not_read_is_told(desk) -> None:
    path = desk.settings.project_dir / ".mcp.json"
    path.write_text('{\n  // mine\n  "mcpServers": {}\n}\n', "utf-8")
    assert "line 2: there is a comment" in (desk.plan("claude-code", scope="project").problem or "")
    path.write_text('{"mcpServers": {},\n}\n', "utf-8")
    assert "line 1: there is a comma" in (desk.plan("claude-code", scope="project").problem or "")


def test_what_is_no_text_file_is_refused(desk) -> None:
    path = cursor_file(desk)
    path.write_bytes(b'{"a": "\xff"}')
    assert "is not UTF-8" in (desk.do("cursor").problem or "")
    path.unlink()
    path.mkdir()
    assert "it is not a regular file" in (desk.do("cursor").problem or "")


def test_another_entry_of_ours_is_shown_and_replaced_only_by_force(desk) -> None:
    path = cursor_file(desk)
    text = (
        '{"mcpServers": {"stash-skills": {"command": "/old", "args": ["serve"], '
        '"env": {"MINE": "1"}, "disabled": true}}}'
    )
    path.write_text(text, "utf-8")
    shown = desk.do("cursor")
    assert shown.action == "differs"
    assert "/old" in shown.diff
    assert "/opt/env/bin/stash-skills" in shown.diff
    assert path.read_text("utf-8") == text
    forced = desk.do("cursor", force=True)
    assert forced.action == "replaced"
    assert forced.backup is not None
    assert forced.backup.read_text("utf-8") == text
    assert not forced.backup.is_relative_to(path.parent)
    # What a person added to the entry stays, and makes no difference afterwards.
    assert '"MINE": "1"' in path.read_text("utf-8")
    assert '"disabled": true' in path.read_text("utf-8")
    assert desk.do("cursor").action == "unchanged"


def test_an_entry_for_a_server_elsewhere_is_replaced_whole(desk) -> None:
    path = cursor_file(desk)
    path.write_text('{"mcpServers": {"stash-skills": {"url": "http://localhost:1"}}}', "utf-8")
    assert desk.do("cursor").action == "differs"
    assert desk.do("cursor", force=True).action == "replaced"
    assert "url" not in path.read_text("utf-8")


def test_a_file_that_changes_meanwhile_is_left_as_it_is(desk) -> None:
    path = cursor_file(desk)
    path.write_text('{"mcpServers": {}}', "utf-8")
    step = desk.plan("cursor")
    path.write_text('{"mcpServers": {"new": {}}}', "utf-8")
    done = desk.carry_out(step)
    assert (done.action, "was changed while" in (done.problem or "")) == ("refused", True)
    assert path.read_text("utf-8") == '{"mcpServers": {"new": {}}}'


@needs_links
def test_a_link_stays_a_link_and_its_target_keeps_its_mode(desk) -> None:
    path = cursor_file(desk)
    real = desk.settings.user_home / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}\n", "utf-8")
    real.chmod(0o640)
    path.symlink_to(real)
    done = desk.do("cursor")
    assert (done.action, done.path) == ("added", path)
    assert path.is_symlink()
    assert "stash-skills" in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [file.name for file in real.parent.iterdir()] == ["cursor.json"]


@needs_links
def test_a_link_that_leads_nowhere_or_round_is_refused(desk) -> None:
    path = cursor_file(desk)
    path.symlink_to(desk.settings.user_home / "gone.json")
    assert "leads nowhere" in (desk.do("cursor").problem or "")
    path.unlink()
    path.symlink_to(path)
    assert desk.do("cursor").action == "refused"
    assert path.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are another thing there")
def test_new_files_follow_the_persons_umask_and_copies_are_private(desk) -> None:
    folder = desk.settings.user_home / ".cursor"
    folder.mkdir(mode=0o700)
    path = desk.do("cursor").path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{}", "utf-8")
    backup = desk.do("cursor").backup
    assert backup is not None
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert backup.is_relative_to(desk.settings.backups_dir)


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="needs a user who can be refused"
)
def test_a_folder_that_cannot_be_written_is_told(desk) -> None:
    path = cursor_file(desk)
    path.parent.chmod(0o500)
    try:
        done = desk.do("cursor")
    finally:
        path.parent.chmod(0o700)
    assert done.action == "refused"
    assert "Permission" in (done.problem or "")


def test_a_huge_file_is_not_read(desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_file, "MAX_BYTES", 10)
    cursor_file(desk).write_text('{"mcpServers": {}}', "utf-8")
    assert "more than 10 bytes" in (desk.do("cursor").problem or "")
