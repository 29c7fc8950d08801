"""Does one thing to an installed skill again and again, killed at every step of it in turn.

`python killed_steps.py CASE FOLDER` prints a JSON row for each step. A step is a change of the file
system or the end of a library's transaction; the process is killed just before it, with SIGKILL.
The last row is of the step after the last: nothing was killed.
"""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stash_mcp.backends.installations import InstallOrder, RollbackOrder, UninstallOrder
from stash_mcp.errors import NotFoundError
from stash_mcp.skills.versions import kept_text
from support.staging import Stage

_CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR
_MOST_STEPS = 500
BODIES = ("Seed.", "Old.", "New.", "Newest.")
SEED, OLD, NEW, NEWEST = range(4)


@dataclass(frozen=True)
class Row:
    """killed, next: contents of SKILL.md, None for none, after the kill and after the next call.
    states: of the skill as it is listed after each. listed: names in the skills folder after the
    kill. left: what the next call left lying about. unkept: recorded versions without their text.
    """

    step: int
    was_killed: bool
    killed: str | None
    killed_state: str
    listed: list[str]
    next: str | None
    next_state: str
    versions: int
    waiting: int
    told: int
    left: list[str]
    unkept: int


class World:
    """A project and a library with one finished run of four bodies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stage = Stage(root)
        scores = (0.1, 0.2, 0.3, 0.4)
        self.run = self.stage.finished(*zip(BODIES, scores, strict=True))
        self.skills_dir = self.stage.settings.project_dir / ".claude" / "skills"
        self.file = self.skills_dir / "polite-support" / "SKILL.md"
        self._saved = root.with_name("saved")

    def install(self, candidate: int, *, force: bool = False) -> None:
        self.stage.backend.install_skill(
            InstallOrder(run_id=self.run.id, candidate=candidate, force=force)
        )

    def roll_back(self) -> None:
        self.stage.backend.rollback_skill(RollbackOrder(skill=str(self.file), version=1))

    def uninstall(self) -> None:
        with contextlib.suppress(NotFoundError):
            self.stage.backend.uninstall_skill(UninstallOrder(skill="polite-support"))

    def reconcile(self) -> None:
        self.stage.backend.reconcile()

    def edit(self) -> None:
        self.file.write_text("mine", encoding="utf-8")

    def save(self) -> None:
        shutil.copytree(self.root, self._saved, symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.root)
        shutil.copytree(self._saved, self.root, symlinks=True)

    # --- what is seen ---

    def content(self) -> str | None:
        return self.file.read_text(encoding="utf-8") if self.file.exists() else None

    def state(self) -> str:
        rows = self.stage.backend.list_installed_skills()
        return next((r.state for r in rows if r.installation.path == str(self.file)), "unknown")

    def left(self) -> list[str]:
        strange = (".stash-skills-", "installing")
        paths = [path for path in self.root.rglob("*") if path.name.startswith(strange)]
        folders = [path for path in self.skills_dir.glob("*") if not (path / "SKILL.md").exists()]
        return [str(path.relative_to(self.root)) for path in (*paths, *folders)]

    def versions(self) -> list[str]:
        with contextlib.closing(sqlite3.connect(self.stage.settings.library_path)) as library:
            rows = library.execute(
                "SELECT sha256 FROM installations WHERE path = ?", [str(self.file)]
            )
            return [row[0] for row in rows]

    def count(self, condition: str) -> int:
        with contextlib.closing(sqlite3.connect(self.stage.settings.library_path)) as library:
            return int(library.execute(f"SELECT COUNT(*) FROM {condition}").fetchone()[0])

    def unkept(self) -> int:
        backups = self.stage.settings.backups_dir
        return sum(1 for digest in self.versions() if not kept_text(backups, digest))


Action = Callable[[World], None]


@dataclass(frozen=True)
class Case:
    """then: the next call; None for the same one."""

    before: tuple[Action, ...]
    action: Action
    then: Action | None = None


CASES: dict[str, Case] = {
    "replacing, then another": Case(
        (lambda world: world.install(OLD),),
        lambda world: world.install(NEW),
        lambda world: world.install(NEWEST),
    ),
    "forced over an edit": Case(
        (lambda world: world.install(OLD), World.edit),
        lambda world: world.install(NEW, force=True),
    ),
    "rolling back": Case(
        (lambda world: world.install(OLD), lambda world: world.install(NEW)), World.roll_back
    ),
    "uninstalling": Case((lambda world: world.install(OLD),), World.uninstall),
    "installing by itself": Case((), World.reconcile),
}


def killed_at(step: int, action: Callable[[], None]) -> bool:
    """Whether a child process that did it was killed before its end."""
    child = os.fork()
    if child == 0:
        _count_down(step)
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise RuntimeError(f"the child failed with {os.WEXITSTATUS(status)}")
    return os.WIFSIGNALED(status)


def _count_down(step: int) -> None:
    left = step

    def one() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(sql: str) -> None:
        if sql == "COMMIT":
            one()

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in _CHANGES or (event == "open" and _writes(arguments)):
            one()

    connect = sqlite3.connect

    def watched(path: Path, **options: Any) -> sqlite3.Connection:
        connection = connect(path, **options)
        connection.set_trace_callback(statement)
        return connection

    sqlite3.connect = watched  # type: ignore[assignment]
    sys.addaudithook(hook)


def _writes(arguments: tuple[object, ...]) -> bool:
    path, _, flags = arguments
    # A lock's file says nothing by being there.
    is_lock = isinstance(path, str) and path.endswith(".lock")
    return isinstance(flags, int) and bool(flags & _WRITING) and not is_lock


def rows_of(case: Case, root: Path) -> list[Row]:
    world = World(root)
    for action in case.before:
        action(world)
    world.save()
    rows = []
    for step in range(1, _MOST_STEPS):
        world.restore()
        was_killed = killed_at(step, lambda: case.action(world))
        killed = world.content()
        listed = [path.name for path in world.skills_dir.glob("*")]
        killed_state = world.state()
        (case.then or case.action)(world)
        row = Row(
            step,
            was_killed,
            killed,
            killed_state,
            listed,
            world.content(),
            world.state(),
            versions=len(world.versions()),
            waiting=world.count("jobs WHERE install_state = 'waiting'"),
            told=len(world.stage.backend.take_notices()),
            left=world.left(),
            unkept=world.unkept(),
        )
        rows.append(row)
        if not was_killed:
            return rows
    raise RuntimeError("it does not end")


def main(case: str, folder: str) -> None:
    # What was written outlives a kill without it; only a power cut would take it.
    os.fsync = lambda handle: None  # type: ignore[assignment, misc]
    rows = rows_of(CASES[case], Path(folder, "world"))
    sys.stdout.write(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
