"""The Claude Code plugin: its files agree with the package and with each other, and its launcher
finds the server however it was installed.
"""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from stash_mcp import __version__
from stash_mcp.server.app import build_server
from stash_mcp.settings import DEFAULT_STASH_URL, load_settings, stash_access
from stash_mcp.skills.scan import find_active

ROOT = Path(__file__).parents[2]
MANIFEST = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text("utf-8"))
MARKETPLACE = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text("utf-8"))
ENTRY = json.loads((ROOT / ".mcp.json").read_text("utf-8"))["mcpServers"]["stash-skills"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
COMMANDS = sorted((ROOT / "commands").glob("*.md"))
LAUNCHER = ROOT / "launcher" / ("serve.cmd" if os.name == "nt" else "serve")
IN_ORDER = ("stash-skills", "uv", "pipx")
# The launcher looks there too; what a machine has there is found by it.
_FIXED = os.pathsep.join(("/opt/homebrew/bin", "/usr/local/bin"))


# --- the manifests ---


def test_the_manifest_has_the_packages_name_version_and_license() -> None:
    found = (MANIFEST["name"], MANIFEST["version"], MANIFEST["license"])
    assert found == (PROJECT["name"], __version__, PROJECT["license"])
    assert PROJECT["version"] == __version__


def test_the_marketplace_offers_this_folder_as_the_same_plugin() -> None:
    [plugin] = MARKETPLACE["plugins"]
    shared = ("name", "version", "description", "license", "keywords")
    assert {key: plugin[key] for key in shared} == {key: MANIFEST[key] for key in shared}
    assert plugin["source"] == "./"


def test_the_manifest_names_the_file_of_servers_beside_it() -> None:
    assert (ROOT / MANIFEST["mcpServers"]) == ROOT / ".mcp.json"


# --- the server's entry ---


def test_the_server_is_started_by_the_launcher_on_every_system() -> None:
    command = ENTRY["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(ROOT))
    assert Path(command) == ROOT / "launcher" / "serve"
    assert ENTRY["args"] == []
    # Windows finds this one under the same name.
    assert (ROOT / "launcher" / "serve.cmd").is_file()
    if os.name != "nt":
        assert os.access(command, os.X_OK)


def test_every_option_reaches_the_server_under_its_own_name() -> None:
    passed = {key: value for key, value in ENTRY["env"].items() if "user_config" in value}
    assert passed == {
        f"CLAUDE_PLUGIN_OPTION_{key.upper()}": f"${{user_config.{key}}}"
        for key in MANIFEST["userConfig"]
    }


def test_no_option_is_required_and_the_key_is_a_secret() -> None:
    options = MANIFEST["userConfig"]
    assert not any(option["required"] for option in options.values())
    assert [key for key, option in options.items() if option.get("sensitive")] == ["stash_api_key"]


def test_what_a_client_does_not_expand_counts_as_unset(tmp_path: Path) -> None:
    # Either nothing, or the text itself from a client that expands nothing.
    for environment in (dict.fromkeys(ENTRY["env"], ""), ENTRY["env"]):
        assert load_settings(environment, tmp_path).project_dir == tmp_path
        access = stash_access(environment, tmp_path)
        assert (access.base_url, access.api_key) == (DEFAULT_STASH_URL, None)


def test_an_option_that_is_not_set_hides_nothing_that_the_person_has_set(tmp_path: Path) -> None:
    own = {"STASH_URL": "https://own.example", "STASH_API_KEY": "mc_own"}
    access = stash_access({**own, **dict.fromkeys(ENTRY["env"], "")}, tmp_path)
    assert (access.base_url, access.api_key) == (own["STASH_URL"], own["STASH_API_KEY"])


# --- the launcher ---


def _put(folder: Path, name: str) -> Path:
    """An executable that says its own path and what it was given."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name == "nt":
        path = folder / f"{name}.cmd"
        path.write_text(f"@echo {name} %*\r\n")
    else:
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*"\n')
        path.chmod(0o755)
    return path


def _launch(tmp_path: Path, option: str = "") -> subprocess.CompletedProcess[str]:
    path = [str(tmp_path / "bin")]
    if os.name == "nt":
        path.append(os.path.join(os.environ["SYSTEMROOT"], "System32"))
    environment = {
        **{name: os.environ[name] for name in ("SYSTEMROOT", "PATHEXT") if name in os.environ},
        "PATH": os.pathsep.join(path),
        "HOME": str(tmp_path / "home"),
        "USERPROFILE": str(tmp_path / "home"),
        "CLAUDE_PLUGIN_OPTION_COMMAND": option,
    }
    return subprocess.run(
        [str(LAUNCHER)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.fixture
def nothing_fixed() -> None:
    found = [name for name in IN_ORDER if os.name != "nt" and shutil.which(name, path=_FIXED)]
    if found:
        pytest.skip(f"this machine has {found} where the launcher always looks")


@pytest.mark.usefixtures("nothing_fixed")
@pytest.mark.parametrize("first", range(len(IN_ORDER)), ids=IN_ORDER)
def test_the_launcher_takes_the_command_itself_then_uv_then_pipx(
    tmp_path: Path, first: int
) -> None:
    for name in IN_ORDER[first:]:
        _put(tmp_path / "bin", name)
    done = _launch(tmp_path)
    words = done.stdout.split()
    assert done.returncode == 0
    assert words[0] == IN_ORDER[first]
    assert words[-1] == "serve"
    if first:
        # From the plugin's own folder, by the name of the command.
        assert words[-2] == "stash-skills"
        assert (Path(words[-3]) / "pyproject.toml").is_file()


@pytest.mark.usefixtures("nothing_fixed")
def test_the_launcher_says_what_to_do_where_nothing_is_installed(tmp_path: Path) -> None:
    done = _launch(tmp_path)
    assert done.returncode == 127
    assert done.stdout == ""
    assert "neither stash-skills nor uv nor pipx" in done.stderr
    assert "Install uv" in done.stderr


def test_the_option_wins_over_what_is_on_the_path(tmp_path: Path) -> None:
    _put(tmp_path / "bin", "stash-skills")
    chosen = _put(tmp_path / "a folder", "mine")
    assert _launch(tmp_path, str(chosen)).stdout.split() == ["mine", "serve"]


@pytest.mark.skipif(os.name == "nt", reason="an .exe cannot be made here")
def test_the_option_may_be_the_folder_of_a_virtual_environment(tmp_path: Path) -> None:
    _put(tmp_path / "an env" / "bin", "stash-skills")
    assert _launch(tmp_path, str(tmp_path / "an env")).stdout.split() == ["stash-skills", "serve"]


def test_an_option_that_names_nothing_is_not_passed_over(tmp_path: Path) -> None:
    _put(tmp_path / "bin", "stash-skills")
    done = _launch(tmp_path, str(tmp_path / "gone"))
    assert done.returncode == 127
    assert str(tmp_path / "gone") in done.stderr


def test_an_option_that_was_not_filled_in_counts_as_unset(tmp_path: Path) -> None:
    _put(tmp_path / "bin", "stash-skills")
    option = ENTRY["env"]["CLAUDE_PLUGIN_OPTION_COMMAND"]
    assert _launch(tmp_path, option).stdout.split() == ["stash-skills", "serve"]


def test_both_launchers_start_the_same_in_the_same_order() -> None:
    found = []
    for name in ("serve", "serve.cmd"):
        text = (ROOT / "launcher" / name).read_bytes().decode("utf-8")
        lines = re.findall(r"^ *(?:exec|call) (.+)", text, flags=re.MULTILINE)
        plain = (re.sub(r"""["'%$\r]""", "", line) for line in lines)
        found.append([line for line in plain if not line.startswith("chosen")])
    assert found[0] == found[1]
    assert [line.split()[0] for line in found[0]] == list(IN_ORDER)


def test_the_launcher_of_windows_has_the_ends_of_lines_that_it_needs() -> None:
    text = (ROOT / "launcher" / "serve.cmd").read_bytes()
    assert text.count(b"\n") == text.count(b"\r\n") > 0


# --- the commands ---


def _parts(path: Path) -> tuple[dict[str, Any], str]:
    _, head, body = path.read_text("utf-8").split("---\n", 2)
    return YAML(typ="safe").load(head), body


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_says_what_it_does_and_is_for_the_person_alone(path: Path) -> None:
    head, body = _parts(path)
    assert head.keys() == {"description", "argument-hint", "disable-model-invocation"}
    assert head["disable-model-invocation"] is True
    assert len(head["description"]) <= 150
    assert body.strip()


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_nothing_in_a_command_is_run_or_replaced_when_it_is_loaded(path: Path) -> None:
    head, body = _parts(path)
    assert find_active(body) == ()
    assert find_active(head["description"]) == ()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_commands_name_tools_arguments_and_skills_that_there_are(
    tmp_path: Path, anyio_backend: str
) -> None:
    def closed() -> None:
        raise AssertionError("a list of tools needs no library")

    tools = await build_server(closed, tmp_path).list_tools()
    known = {tool.name for tool in tools}
    for tool in tools:
        known |= set(tool.input_schema["properties"])
    known |= {"visibility"}
    known |= {f"stash-skills:{path.parent.name}" for path in ROOT.glob("skills/*/SKILL.md")}
    text = "".join(_parts(path)[1] for path in COMMANDS)
    named = {name.partition("=")[0] for name in re.findall(r"`([a-z][^`]*)`", text)}
    assert named - known == set()
    assert {"annotate_trace", "train_reward_model", "start_gepa_run", "install_skill"} <= named
