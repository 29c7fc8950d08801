"""The Claude Code plugin: its manifest and the server's entry agree with the package."""

import json
import tomllib
from pathlib import Path

from stash_mcp import __version__
from stash_mcp.settings import load_settings

ROOT = Path(__file__).parents[2]
MANIFEST = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text("utf-8"))
ENTRY = json.loads((ROOT / ".mcp.json").read_text("utf-8"))["mcpServers"]["stash-skills"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_manifest_has_the_packages_name_version_and_license() -> None:
    found = (MANIFEST["name"], MANIFEST["version"], MANIFEST["license"])
    assert found == (PROJECT["name"], __version__, PROJECT["license"])
    assert PROJECT["version"] == __version__


def test_the_manifest_names_the_file_of_servers_beside_it() -> None:
    assert MANIFEST["mcpServers"] == "./.mcp.json"


def test_the_server_is_started_by_the_command_that_is_installed() -> None:
    assert ENTRY["command"] in PROJECT["scripts"]
    assert ENTRY["args"] == ["serve"]


def test_what_a_client_does_not_expand_counts_as_unset(tmp_path: Path) -> None:
    # Either the empty default, or the text itself from a client that expands nothing.
    for environment in (dict.fromkeys(ENTRY["env"], ""), ENTRY["env"]):
        settings = load_settings(environment, tmp_path)
        assert settings.project_dir == tmp_path
        assert "$" not in str(settings.home)
