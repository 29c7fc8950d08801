"""`python -m conformance [NAME ...]`: one table on standard output; 1 unless all of it is green."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from conformance.catalogue import APPLY, DO_NOT_APPLY, Scenario
from conformance.inspector import NAME as INSPECTOR
from conformance.inspector import listed_tools
from conformance.judging import Verdict, judge, unknown
from conformance.npm import NpmError, Tools, install
from conformance.serving import ServerError, filled_library, http_server
from conformance.suite import Suite, SuiteError

FOLDER = Path(__file__).parent.parent / ".conformance"
# Where standard output is no terminal, rich would fold the table to 80 columns.
_WIDTH_OF_A_FILE = 150


@dataclass(frozen=True)
class Line:
    """Of the table. version: of the protocol, where there are several."""

    name: str
    version: str
    checks: str
    verdict: Verdict

    @property
    def problems(self) -> list[str]:
        return [f"{self.name} {self.version}: {said}" for said in self.verdict.problems]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these scenarios")
    names = parser.parse_args(argv).names
    strange = [name for name in names if name not in {scenario.name for scenario in APPLY}]
    if strange:
        parser.error(f"{strange[0]!r} is not among the scenarios that apply: see catalogue.py")
    try:
        lines, problems = run(install(FOLDER), names)
    except (NpmError, ServerError, SuiteError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    show(lines, whole=not names)
    problems += [problem for line in lines for problem in line.problems]
    sys.stdout.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems else 0


def run(tools: Tools, names: Sequence[str] = ()) -> tuple[list[Line], list[str]]:
    """The lines of the table, and where catalogue and suite differ. names: of scenarios; all."""
    suite = Suite(tools.suite)
    versions = suite.scenarios()
    problems = unknown(versions, APPLY, DO_NOT_APPLY)
    wanted = [row for row in APPLY if row.name in versions and (not names or row.name in names)]
    with filled_library() as environment:
        with http_server(environment) as url:
            lines = [line for row in wanted for line in _lines(suite, row, versions[row.name], url)]
        if not names:
            lines.append(_inspected(tools, environment))
    return lines, problems


def _lines(
    suite: Suite, scenario: Scenario, versions: Sequence[str | None], url: str
) -> Iterator[Line]:
    for version in versions:
        sys.stderr.write(f"{scenario.name} {version or ''}\n")
        try:
            verdict = judge(scenario, suite.run(scenario.name, version, url))
        except SuiteError as error:
            verdict = Verdict(0, 0, (str(error),))
        yield Line(scenario.name, version or "", scenario.checks, verdict)


def _inspected(tools: Tools, environment: dict[str, str]) -> Line:
    sys.stderr.write(f"{INSPECTOR}\n")
    found, problem = listed_tools(tools.inspector, environment)
    verdict = Verdict(found, 0, (problem,) if problem else ())
    return Line(INSPECTOR, "", "Every tool's schemas, over stdio, as strictly as it can", verdict)


def show(lines: Sequence[Line], *, whole: bool) -> None:
    """whole: with the scenarios that do not apply."""
    output = Console()
    if not output.is_terminal:
        output = Console(width=_WIDTH_OF_A_FILE)
    table = Table(caption="beyond = checks of the scenario that want tools of the suite's own")
    for column in ("scenario", "protocol", "what is checked"):
        table.add_column(column, overflow="fold")
    for column in ("passed", "beyond"):
        table.add_column(column, justify="right")
    table.add_column("")
    for line in lines:
        verdict = line.verdict
        result = "FAILED" if verdict.problems else "ok"
        counts = (str(verdict.passed), str(verdict.beyond or ""))
        table.add_row(line.name, line.version, line.checks, *counts, result)
    output.print(table)
    if whole:
        output.print(_not_run())


def _not_run() -> Table:
    table = Table(caption="scenarios of the suite that do not apply to this server")
    table.add_column("scenario", overflow="fold")
    table.add_column("why", overflow="fold")
    for name, why in DO_NOT_APPLY.items():
        table.add_row(name, why)
    return table


if __name__ == "__main__":
    sys.exit(main())
