"""`python -m benchmarks [NAME ...] [--quick]`: one table on standard output."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.benchmark import Effort, Row
from benchmarks.catalogue import NAMES, rows_of
from stash_mcp.settings import worker_environment

# Where standard output is no terminal, rich would fold the table to 80 columns.
_WIDTH_OF_A_FILE = 150


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; or all")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}")
    # What is measured runs in the worker, so it is measured in the worker's environment; some of
    # it is read when a library is first imported.
    os.environ.update(worker_environment())
    effort = Effort.QUICK if options.quick else Effort.FULL
    _show(_measure(options.names or NAMES, effort))
    return 0


def _measure(names: Sequence[str], effort: Effort) -> list[tuple[str, list[Row]]]:
    errors = Console(stderr=True)
    measured = []
    for name in names:
        began = time.monotonic()
        with errors.status(f"{name} ..."):
            measured.append((name, rows_of(name, effort)))
        errors.print(f"{name}: {time.monotonic() - began:.0f} s")
    return measured


def _show(measured: Sequence[tuple[str, list[Row]]]) -> None:
    table = Table(caption="ratio = ours / reference; paired within this run, medians")
    for column in ("name", "what is measured"):
        table.add_column(column, overflow="fold")
    for column in ("ours", "reference", "ratio", "n"):
        table.add_column(column, justify="right")
    for name, rows in measured:
        for row in rows:
            table.add_row(name, *_cells(row))
        table.add_section()
    output = Console()
    if not output.is_terminal:
        output = Console(width=_WIDTH_OF_A_FILE)
    output.print(table)


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    ratio = "" if row.ratio is None else f"{row.ratio:.3g}"
    return row.measured, row.ours, row.reference, ratio, "" if row.n is None else str(row.n)


if __name__ == "__main__":
    sys.exit(main())
