"""TOML: one table is set or taken away, every other byte stays.

An entry that is a table of its own is edited as text, since a comment above the next table belongs
to that one. Where it is written in another form (inline, dotted) tomlkit edits it. What comes out
is read again and compared with what it should say.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from stash_mcp.errors import ConfigFileError

_HEADER = re.compile(r"^[ \t]*\[")
_COMMENT = re.compile(r"#.*")


def parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigFileError(_with_line_first(str(error))) from error


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """The text with the table `[key.name]`."""
    present = parse(text)
    servers = _servers(present, key)
    expected = {**present, key: {**servers, name: dict(entry)}}
    block = _block(text, key, name, entry)
    if name not in servers:
        edits = [_Edit(_appended(text, block), kept=text)]
    else:
        edits = [
            _Edit(before + block + after, kept=before + after)
            for before, after in _around(text, key, name)
        ]
    edits.append(_Edit(_with_tomlkit(text, lambda file: _put(file, key, name, entry)), kept=text))
    return _first_that_says(edits, [expected])


def take(text: str, key: str, name: str) -> str:
    """The text without the table `[key.name]`, which is there."""
    present = parse(text)
    rest = {other: entry for other, entry in present[key].items() if other != name}
    expected = [{**present, key: rest}]
    if not rest:
        expected.append({other: value for other, value in present.items() if other != key})
    edits = [
        _Edit(_joined(before, after), kept=before + after)
        for before, after in _around(text, key, name)
    ]
    # A comment beside an entry of one line goes with it.
    beside = re.compile(rf"^[ \t]*{_key(name)}[ \t]*=")
    kept = "".join(line for line in text.splitlines(keepends=True) if not beside.match(line))
    edits.append(_Edit(_with_tomlkit(text, lambda file: _take(file, key, name)), kept=kept))
    return _first_that_says(edits, expected)


@dataclass(frozen=True)
class _Edit:
    """kept: the part of the old text whose comments must all be there."""

    text: str
    kept: str


def _first_that_says(edits: Sequence[_Edit], expected: Sequence[Mapping[str, Any]]) -> str:
    for edit in edits:
        if any(_says(edit, meaning) for meaning in expected):
            return edit.text
    # What says something else than it should would damage a person's file.
    raise ConfigFileError("it cannot be edited without changing something else")


def _servers(document: dict[str, Any], key: str) -> dict[str, Any]:
    servers = document.get(key, {})
    if not isinstance(servers, dict):
        raise ConfigFileError(f"'{key}' is not a table")
    return servers


def _block(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """The table as text, with the file's line ends."""
    values = {field: _inline(value) for field, value in entry.items()}
    block = tomlkit.dumps({key: {name: values}})
    return block.replace("\n", _newline(text))


def _inline(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table


def _appended(text: str, block: str) -> str:
    newline = _newline(text)
    if not text.strip():
        return text + block
    end = "" if text.endswith("\n") else newline
    gap = "" if text.endswith(newline * 2) else newline
    return text + end + gap + block


def _around(text: str, key: str, name: str) -> Iterator[tuple[str, str]]:
    """What stands before and after the table with those below it, where they stand together under
    headers of their own. A header may only look like one, inside a text of several lines: then
    there are several ways to cut, and the right one is among them.
    """
    lines = text.splitlines(keepends=True)
    path = rf"{_key(key)}[ \t]*\.[ \t]*{_key(name)}[ \t]*(?:\.[^\]]*)?"
    ours = re.compile(rf"^[ \t]*\[[ \t]*{path}\][ \t]*(?:#.*)?$")
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    own = [number for number in headers if ours.match(lines[number].rstrip("\r\n"))]
    for start in own:
        later = [number for number in headers if number > start and number not in own]
        end = later[0] if later else len(lines)
        # Comments and blank lines after the last value are not about it.
        while _is_blank_or_comment(lines[end - 1]):
            end -= 1
        yield "".join(lines[:start]), "".join(lines[end:])


def _key(name: str) -> str:
    return rf"""["']?{re.escape(name)}["']?"""


def _is_blank_or_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _with_tomlkit(text: str, edit: Callable[[Any], None]) -> str:
    try:
        document = tomlkit.parse(text)
        edit(document)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ConfigFileError("it is written in a form that is not edited here") from error


def _put(document: Any, key: str, name: str, entry: Mapping[str, Any]) -> None:
    servers = document.setdefault(key, tomlkit.table(is_super_table=True))
    inline = isinstance(servers, InlineTable) or isinstance(servers.get(name), InlineTable)
    value: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for field, item in entry.items():
        value[field] = _inline(item)
    servers[name] = value


def _take(document: Any, key: str, name: str) -> None:
    del document[key][name]


def _says(edit: _Edit, meaning: Mapping[str, Any]) -> bool:
    try:
        if tomllib.loads(edit.text) != meaning:
            return False
    except tomllib.TOMLDecodeError:
        return False
    return not Counter(_COMMENT.findall(edit.kept)) - Counter(_COMMENT.findall(edit.text))


def _joined(before: str, after: str) -> str:
    """Without the blank line that stood between the table and what is before it."""
    newline = _newline(before)
    if not after.strip():
        stripped = before.rstrip("\r\n \t")
        return stripped + newline if stripped else ""
    if before.endswith(newline * 2) and after.startswith(newline):
        after = after[len(newline) :]
    return before + after


def _with_line_first(message: str) -> str:
    found = re.search(r"\(at line (\d+), column \d+\)", message)
    if found is None:
        return message
    return f"line {found.group(1)}: {message[: found.start()].strip()}"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
