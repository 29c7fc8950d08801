"""The real Claude Code of one release, from npm, in a folder of this working copy; run as a
program, this file installs it there.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

VERSION = "2.1.332"
PACKAGE = "@anthropic-ai/claude-code"
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".e2e"
EXECUTABLE = FOLDER / "node_modules" / ".bin" / ("claude.cmd" if os.name == "nt" else "claude")
SECONDS = 300.0
# Without these a program of Windows does not start.
_OF_THE_SYSTEM = ("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "TMPDIR")


def install() -> None:
    """SystemExit with what to do where it cannot be installed."""
    if installed_version() == VERSION:
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("make e2e needs npm, to install Claude Code: install Node.js 20 or later.")
    # Its script puts the program of this platform into its place; npm asks about scripts.
    wanted = {"private": True, "dependencies": {PACKAGE: VERSION}, "allowScripts": {PACKAGE: True}}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    print(f"Installing {PACKAGE}@{VERSION} into {FOLDER} (400 MB, once) ...", flush=True)  # noqa: T201
    subprocess.run([npm, "install", "--no-audit", "--no-fund"], cwd=FOLDER, check=False)
    if installed_version() != VERSION:
        sys.exit(f"npm could not install {PACKAGE}@{VERSION}; its words are above.")


def installed_version() -> str | None:
    """What the program there says it is; None where there is none that runs."""
    if not EXECUTABLE.exists():
        return None
    asked = [str(EXECUTABLE), "--version"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    return (done.stdout.split() or [None])[0]


@dataclass(frozen=True)
class Claude:
    """Claude Code in a home of its own, without an account. home: the person's folder. project:
    where it is started.
    """

    home: Path
    project: Path
    environ: dict[str, str]

    @classmethod
    def at(cls, root: Path, api: str, **environ: str) -> "Claude":
        """Below `root`, with `api` as the address of its model; `environ` adds to the little that
        it gets.
        """
        home, project = root / "home", root / "project"
        for folder in (home, project):
            folder.mkdir(exist_ok=True)
        # The launcher of the plugin finds the command of the Python that runs the tests.
        path = [os.path.dirname(sys.executable), os.environ["PATH"]]
        kept = {name: os.environ[name] for name in _OF_THE_SYSTEM if name in os.environ}
        return cls(
            home,
            project,
            {
                **kept,
                "PATH": os.pathsep.join(path),
                "HOME": str(home),
                "USERPROFILE": str(home),
                "ANTHROPIC_BASE_URL": api,
                "ANTHROPIC_API_KEY": "sk-ant-stand-in",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "DISABLE_AUTOUPDATER": "1",
                **environ,
            },
        )

    def run(self, *arguments: str) -> str:
        """What it wrote; AssertionError with all of it where it failed."""
        done = self.try_to_run(arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def try_to_run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(EXECUTABLE), *arguments],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )


if __name__ == "__main__":
    install()
