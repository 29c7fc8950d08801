"""Tables, texts and JSON on the consoles; nothing printed here is read as markup."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stash_mcp.cli.characters import visible

MISSING = "-"


def print_json(
    console: Console,
    value: BaseModel | Sequence[BaseModel] | Sequence[dict[str, Any]] | dict[str, Any],
) -> None:
    """One JSON value in ASCII, so that it passes through any pipe and terminal."""
    plain = _plain(value)
    console.file.write(json.dumps(plain, indent=2) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def print_text(console: Console, text: str, style: str = "") -> None:
    """A paragraph, wrapped to the terminal."""
    console.print(Text(visible(text), style=style))


def print_raw(console: Console, text: str) -> None:
    """A text as it is, line by line, with a line end after it."""
    console.file.write(visible(text).rstrip("\n") + "\n")


def print_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Numbers stand to the right. The first column is never wrapped: it holds ids."""
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    listed = [[_cell(value) for value in row] for row in rows]
    for index, title in enumerate(columns):
        numbers = bool(listed) and all(_is_number(row[index]) for row in listed)
        table.add_column(
            title,
            justify="right" if numbers else "left",
            no_wrap=index == 0,
            overflow="fold",
        )
    for row in listed:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def score(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


def _cell(value: object) -> str:
    return MISSING if value is None else visible(str(value)).replace("\n", " ")


def _is_number(cell: str) -> bool:
    return cell == MISSING or cell.lstrip("+-").replace(".", "", 1).isdigit()
