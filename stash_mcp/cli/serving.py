"""`serve` and `version`."""

import platform
from typing import NoReturn

import typer

from stash_mcp import __version__
from stash_mcp.backends.local import open_local_backend
from stash_mcp.cli.printing import print_json, print_text
from stash_mcp.cli.session import Json, session_of
from stash_mcp.settings import load_settings
