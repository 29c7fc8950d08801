"""What runs the real Claude Code; `make e2e` installs it first."""

import os
import shutil
from pathlib import Path

import pytest
from support.real_claude import EXECUTABLE, ROOT, VERSION, installed_version

# Read when the libraries are first imported.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# What a clean copy of the repository holds, as far as the plugin needs it.
_PLUGIN = (
    ".claude-plugin",
    ".mcp.json",
    "commands",
    "launcher",
    "skills",
    "stash_mcp",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    if installed_version() != VERSION:
        pytest.exit(f"Claude Code {VERSION} is not at {EXECUTABLE}: run make e2e.", returncode=3)


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin as a person gets it, without what a working copy has beside it."""
    folder = tmp_path_factory.mktemp("plugin")
    for name in _PLUGIN:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder
