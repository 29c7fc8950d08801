import os
import shutil
import sys
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.staging import Stage

from stash_mcp.agents.surroundings import CPU_TORCH, Surroundings
from stash_mcp.backends import extras
from stash_mcp.doctor import agents, installation, library, machine, services
from stash_mcp.doctor.examine import Questions, examine
from stash_mcp.doctor.probing import MARK
from stash_mcp.doctor.report import Check
from stash_mcp.errors import MissingExtraError
from stash_mcp.settings import Settings, StashAccess, key_names
from stash_mcp.storage.files import try_lock

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NO_STASH = StashAccess("https://stash.invalid", None, "the default", "no key is set")


def named(checks: Sequence[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)


def everything(settings: Settings, surroundings: Surroundings) -> tuple[Check, ...]:
    return examine(settings, surroundings, lambda: NO_STASH, Questions(), lambda: NOW)


# --- the whole ---


def test_a_new_installation_has_no_problem_and_asks_nobody(
    settings: Settings, surroundings: Surroundings
) -> None:
    checks = everything(settings, surroundings)
    assert [check.name for check in checks if check.state == "problem"] == []
    asked_for = {check.name for check in checks if check.state == "not checked"}
    assert {"models", "stash", "gpu"} <= asked_for
    assert list(settings.home.iterdir()) == [] or not settings.library_path.exists()
    heavy = {"torch", "litellm", "transformers", "gepa"}
    assert named(checks, "python").said.endswith(str(surroundings.executable))
    assert heavy & {row.split()[0] for row in named(checks, "versions").said.split(", ")}


def test_every_line_that_is_not_well_says_what_to_do(
    settings: Settings, surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "has_extra", lambda _extra: False)
    (settings.user_home / ".claude").mkdir()
    settings.library_path.write_bytes(b"no database" * 1000)
    checks = everything(settings, surroundings)
    unwell = [check for check in checks if check.state in ("warning", "problem")]
    assert {"local pipeline", "skills folders", "keys", "library"} <= {row.name for row in unwell}
    for check in unwell:
        assert check.fix, check
        assert "\n" not in check.said
    assert "pip install" in (named(checks, "local pipeline").fix or "")
    assert named(checks, "library").state == "problem"


# --- machine ---


def test_a_home_that_is_not_there_yet_is_no_problem(settings: Settings) -> None:
    later = replace(settings, home=settings.home / "a" / "b")
    assert machine.home(later).state == "ok"
    assert not later.home.exists()
    assert machine.home(settings).state == "ok"
    assert list(settings.home.iterdir()) == []


def test_a_home_that_is_a_file_is_a_problem(settings: Settings) -> None:
    file = settings.home / "file"
    file.write_text("x")
    assert machine.home(replace(settings, home=file)).state == "problem"
    assert machine.home(replace(settings, home=file / "below")).state == "problem"


def test_little_room_is_told_by_how_little(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    for free, state in ((100e9, "ok"), (2e9, "warning"), (1e6, "problem")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, free=free: usage(free))
        assert machine.disk(settings).state == state


def test_the_device_is_looked_at_on_request_and_remembered_for_this_torch(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "has_extra", lambda _extra: True)
    answer = {"kind": "cuda", "name": "H100", "torch": "2.9"}
    monkeypatch.setattr(machine, "probe", lambda _arguments, _seconds: [answer])
    assert machine.gpu(settings, ask=False, torch="2.9").state == "not checked"
    asked = machine.gpu(settings, ask=True, torch="2.9")
    assert (asked.state, asked.said) == ("ok", "cuda: H100.")
    assert machine.gpu(settings, ask=False, torch="2.9") == asked
    assert machine.gpu(settings, ask=False, torch="3.0").state == "not checked"
    assert machine.gpu(settings, ask=True, torch=None).state == "not checked"


def test_the_device_is_what_torch_says(capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    from stash_mcp.worker import probe

    assert probe.main(["gpu"]) == 0
    [line] = [row for row in capsys.readouterr().out.splitlines() if row.startswith(MARK)]
    device = machine.Device.model_validate_json(line.removeprefix(MARK))
    assert device.torch == str(torch.__version__)
    assert device.kind in ("cpu", "cuda", "mps")


# --- library and worker ---


def test_the_queue_and_the_worker_are_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert library.library_and_worker(stage.settings, stage.clock)[1].said.startswith("None is")
    stage.conversations()
    stage.train()
    waiting = library.library_and_worker(stage.settings, stage.clock)
    assert waiting[0].said == "Conversations: 12; trainings and runs: 1."
    assert (waiting[1].state, "1 waiting, 0 running" in waiting[1].said) == ("warning", True)
    job = stage.begin()
    stage.store.beat(job.id)
    with try_lock(stage.settings.worker_lock_path) as ours:
        assert ours
        alive = library.library_and_worker(stage.settings, stage.clock)[1]
        assert (alive.state, alive.said) == (
            "ok",
            "Alive; 0 waiting, 1 running. Last sign 0 s ago.",
        )
        late = stage.now.replace(hour=stage.now.hour + 1)
        silent = library.library_and_worker(stage.settings, lambda: late)[1]
        assert (silent.state, "Silent for 60 min" in silent.said) == ("warning", True)


# --- agents ---


def test_agents_with_and_without_our_entry_are_told(settings: Settings) -> None:
    assert agents.set_up(settings).state == "not checked"
    for folder in (".cursor", ".gemini"):
        (settings.user_home / folder).mkdir()
    (settings.user_home / ".cursor/mcp.json").write_text('{"mcpServers": {"stash-skills": {}}}')
    check = agents.set_up(settings)
    assert check.said == "Set up: Cursor. Found without an entry: Gemini CLI."
    assert check.fix == "stash-skills setup gemini-cli"
    (settings.user_home / ".gemini/settings.json").write_text("{oops")
    assert "line 1" in agents.set_up(settings).said


@pytest.mark.parametrize(
    ("file", "content", "known"),
    [
        ("config/settings.json", '{"enabledPlugins": {"stash-skills@shop": true}}', True),
        (".claude/settings.local.json", '{"enabledPlugins": {"stash-skills@shop": true}}', True),
        ("config/settings.json", '{"enabledPlugins": {"stash-skills@shop": false}}', False),
        ("config/settings.json", '{"enabledPlugins": {"other@stash-skills": true}}', False),
        ("config/settings.json", '{"enabledPlugins": ["stash-skills@shop"]}', False),
        ("config/settings.json", "{oops", False),
    ],
)
def test_claude_code_with_our_plugin_needs_no_entry(
    settings: Settings, file: str, content: str, known: bool
) -> None:
    settings.claude_config_dir.mkdir()
    folder, _, name = file.partition("/")
    home = settings.claude_config_dir if folder == "config" else settings.project_dir / folder
    home.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(content, encoding="utf-8")
    check = agents.set_up(settings)
    assert ("Claude Code (by the plugin)" in check.said, check.fix is None) == (known, known)


def test_the_missing_skills_folder_of_claude_code_is_told(settings: Settings) -> None:
    settings.claude_config_dir.mkdir()
    assert agents.skills_folders(settings).state == "warning"
    (settings.claude_config_dir / "skills").mkdir()
    assert agents.skills_folders(settings).state == "ok"


@pytest.mark.skipif(sys.platform == "win32", reason="a file in the way is another error there")
def test_a_skills_folder_that_cannot_be_written_is_a_problem(settings: Settings) -> None:
    settings.claude_config_dir.mkdir()
    (settings.claude_config_dir / "skills").write_text("a file")
    check = agents.skills_folders(settings)
    assert check.state == "problem"
    assert str(settings.claude_config_dir / "skills") in check.said


# --- keys ---


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert services.keys().state == "warning"
    for stash in ("STASH_API_KEY", "CLAUDE_PLUGIN_OPTION_STASH_API_KEY"):
        monkeypatch.setenv(stash, "mc_0123456789")
    assert services.keys().state == "warning"
    assert "No model's key is set" in services.keys().said
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1234")
    monkeypatch.setenv("EMPTY_API_KEY", " ")
    check = services.keys()
    assert (check.state, check.said) == ("ok", "Set: OPENAI_API_KEY.")
    monkeypatch.setenv("XAI_API_KEY", "${XAI_API_KEY}")
    unfilled = services.keys()
    assert unfilled.state == "warning"
    assert "Not filled in" in unfilled.said
    assert "secret" not in unfilled.model_dump_json()


def test_only_names_of_keys_leave_the_environment() -> None:
    found = key_names({"A_API_KEY": "x", "B_API_KEY": "${B}", "PATH": "p", "C_API_KEY": ""})
    assert (found.present, found.unfilled) == (("A_API_KEY",), ("B_API_KEY",))


def test_the_doctor_loads_none_of_the_heavy_libraries(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; from stash_mcp.cli.main import main; code = main(['doctor', '--json'])\n"
        "loaded = {'torch', 'litellm', 'transformers', 'gepa'} & set(sys.modules)\n"
        "sys.exit(f'{code} {loaded}' if code or loaded else 0)"
    )
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "STASH_MCP_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch comes from the usual index")
def test_the_pipeline_is_added_in_the_same_words_wherever_it_is_missing(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "has_extra", lambda _extra: False)
    monkeypatch.setattr(extras, "has_extra", lambda _extra: False)
    monkeypatch.setattr(extras, "torch_index", lambda: CPU_TORCH)
    told = installation.local_part(surroundings, None).fix
    with pytest.raises(MissingExtraError) as caught:
        extras.require_extra("local", "A run")
    assert caught.value.fix == told
    assert CPU_TORCH in told
    assert "--install local" in told
