"""What the server offers: its tools, built once the client has its first answer."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp.server import MCPServer

from stash_mcp.server.doctor_tool import DoctorTool
from stash_mcp.server.installed_tools import InstalledTools
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.reflection_tools import ReflectionTools
from stash_mcp.server.run_tools import RunTools
from stash_mcp.server.skill_tools import SkillTools
from stash_mcp.server.sync_tool import SyncTool
from stash_mcp.server.trace_tools import TraceTools
from stash_mcp.server.training_tools import TrainingTools
from stash_mcp.settings import load_settings, load_usable_settings


def build_contents(
    backend: LazyBackend, project_dir: Path, clock: Callable[[], datetime], poll_seconds: float
) -> MCPServer[Any]:
    """A server of the SDK that is never connected: `SkillServer` asks it for everything that it
    lists, calls and reads. Takes about 0.1 s, most of it pydantic's work on the tools' models.
    """
    groups = (
        TraceTools(backend, project_dir),
        TrainingTools(backend),
        RunTools(backend, clock, poll_seconds),
        ReflectionTools(backend),
        SkillTools(backend),
        InstalledTools(backend),
        DoctorTool(load_usable_settings),
        SyncTool(backend, load_settings),
    )
    return MCPServer(
        "contents",
        tools=[tool for group in groups for tool in group.tools()],
        log_level="WARNING",
    )
