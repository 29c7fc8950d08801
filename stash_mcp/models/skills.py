"""Skills: what an agent loads, where it is installed, and what a run's end does with it."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from stash_mcp.models.base import Frozen
from stash_mcp.settings import InstallMode

InstallState = Literal["waiting", "installed", "staged", "off"]


class InstallTarget(Frozen):
    """A skills folder, absolute, of one agent at one scope."""

    agent: str
    scope: Literal["project", "user", "folder"]
    skills_dir: str


class InstallWish(Frozen):
    """What happens to a run's skill when the run ends.

    auto: the best candidate is installed into every target, if it beats the seed, by `min_gain` at
    least, and nothing stands against it; else it is staged, with the reason. ask: it is staged.
    """

    mode: InstallMode = "auto"
    targets: tuple[InstallTarget, ...] = ()
    min_gain: float = Field(0.0, ge=0, le=1)


Listener = Literal["agent", "command"]


class Notice(Frozen):
    """What a person has to be told of the skill of a run that ended."""

    run_id: str
    state: InstallState
    note: str


class Skill(Frozen):
    name: str
    description: str
    body: str


class Installation(Frozen):
    """What we wrote: the file's place, its SHA-256 and where the skill came from."""

    path: str
    name: str
    agent: str
    scope: Literal["project", "user", "folder"]
    run_id: str
    candidate: int
    sha256: str
    installed_at: datetime
    version: int = 1
    """Counts from 1 at each path; taking a skill away is recorded, but is no version."""
    kind: Literal["install", "rollback", "uninstall", "adopt"] = "install"
    """adopt: a person's edit that became the seed of `run_id` and was replaced by its skill."""
