"""The suite as a process: what it lists, and one scenario of it run against a server."""

import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SCENARIO_MILLISECONDS = 60_000
_PATIENCE = 180
_LISTED = re.compile(r"^\s*- (\S+) \[(\S+)\]\s*$", re.MULTILINE)
# Where a scenario is of an extension, and so of no one version.
_EXTENSION = "extension"


class SuiteError(Exception):
    """The suite did not do what was asked of it."""


@dataclass(frozen=True)
class Check:
    """status: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    message: str = ""


@dataclass(frozen=True)
class Suite:
    """command: what starts it, such as node and its file."""

    command: Sequence[str]

    def scenarios(self) -> dict[str, tuple[str | None, ...]]:
        """Those for servers, each with the versions of the protocol that it runs at; None: the
        suite's choice.
        """
        said = self._run("list", "--server").stdout
        listed = {name: _versions(versions) for name, versions in _LISTED.findall(said)}
        if not listed:
            raise SuiteError(f"It lists no scenarios:\n{said}")
        return listed

    def run(self, name: str, version: str | None, url: str) -> list[Check]:
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["server", "--url", url, "--scenario", name, "--output-dir", folder]
            arguments += ["--timeout", str(_SCENARIO_MILLISECONDS)]
            if version is not None:
                arguments += ["--spec-version", version]
            # Its exit status counts the checks that are beyond this server, too.
            ended = self._run(*arguments)
            files = list(Path(folder).rglob("checks.json"))
            if len(files) != 1:
                raise SuiteError(f"It wrote no results:\n{ended.stdout}{ended.stderr}")
            return _checks(files[0])

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                [*self.command, *arguments],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SuiteError(f"It did not end within {_PATIENCE} s.") from error


def _versions(listed: str) -> tuple[str | None, ...]:
    return (None,) if listed == _EXTENSION else tuple(listed.split(","))


def _checks(path: Path) -> list[Check]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Check(row["id"], row["status"], row.get("errorMessage") or "") for row in rows]
