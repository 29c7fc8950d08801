"""JSON, with comments or without: one member is set or taken away, every other byte stays.

The text is read into spans; an edit replaces spans. What an edit gives is read again and compared
with what it should say.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from stash_mcp.errors import ConfigFileError

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_BLANK = re.compile(r"[ \t\r\n]*")
_LINE_COMMENT = re.compile(r"//[^\n]*")
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_MAX_DEPTH = 100


@dataclass(frozen=True)
class Node:
    """start, end: the span of the value in the text. members: of an object."""

    start: int
    end: int
    value: Any
    members: tuple["Member", ...] = ()


@dataclass(frozen=True)
class Member:
    """start: of the key. comma: where the comma after it stands, if there is one."""

    name: str
    start: int
    node: Node
    comma: int | None = None


def parse(text: str, *, comments: bool) -> Node:
    """The object that the text holds. comments: whether comments and trailing commas may be there.

    Raises ConfigFileError with the line.
    """
    reader = _Reader(text, comments)
    root = reader.value(reader.skip(0), 0)
    if (end := reader.skip(root.end)) != len(text):
        reader.refuse("there is something after its end", end)
    if not isinstance(root.value, dict):
        reader.refuse("it is not an object", root.start)
    return root


def put(text: str, path: Sequence[str], value: Any, *, comments: bool) -> str:
    """The text with `value` at `path`; objects on the way are made where they are missing."""
    if not text.strip():
        text = "{}\n"
    root = parse(text, comments=comments)
    expected = _with(root.value, path, value)
    if expected == root.value:
        return text
    return _checked(_put(text, root, path, value), expected, comments)


def take(text: str, path: Sequence[str], *, comments: bool) -> str:
    """The text without the member at `path`, which is there."""
    root = parse(text, comments=comments)
    parent = _at(text, root, path[:-1])
    _at(text, parent, path[-1:])
    edited = _without_member(text, parent, path[-1])
    return _checked(edited, _without(root.value, path), comments)


def find(text: str, path: Sequence[str], *, comments: bool) -> Any:
    """The value at `path`; None where there is none. ConfigFileError where a name on the way stands
    there more than once: which one its agent reads is not known.
    """
    node = parse(text, comments=comments)
    for name in path:
        member = _member(text, node, name) if isinstance(node.value, dict) else None
        if member is None:
            return None
        node = member.node
    return node.value


# --- reading ---


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self._text = text
        self._comments = comments

    def skip(self, at: int) -> int:
        """Past blanks and comments."""
        while True:
            at = _end(_BLANK.match(self._text, at), at)
            if not self._text.startswith("/", at):
                return at
            comment = _LINE_COMMENT.match(self._text, at) or _BLOCK_COMMENT.match(self._text, at)
            if comment is None:
                self.refuse("a comment does not end, or is none", at)
            if not self._comments:
                self.refuse("there is a comment, which its agent does not read", at)
            at = comment.end()

    def value(self, at: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            self.refuse("it is nested too deep", at)
        if self._text.startswith("{", at):
            return self._object(at, depth)
        if self._text.startswith("[", at):
            return self._array(at, depth)
        return self._scalar(at)

    def _scalar(self, at: int) -> Node:
        found = _STRING.match(self._text, at) or _SCALAR.match(self._text, at)
        if found is None:
            self.refuse("a value is expected", at)
        try:
            return Node(at, found.end(), json.loads(found.group()))
        except ValueError:
            self.refuse("a text or number is not valid", at)

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at = self.skip(start + 1)
        while not self._text.startswith("}", at):
            key = _STRING.match(self._text, at)
            if key is None:
                self.refuse("a name in double quotes is expected", at)
            colon = self.skip(key.end())
            if not self._text.startswith(":", colon):
                self.refuse("a colon is expected", colon)
            node = self.value(self.skip(colon + 1), depth + 1)
            after = self.skip(node.end)
            comma = self._comma(after, "}")
            members.append(Member(json.loads(key.group()), at, node, comma))
            at = after if comma is None else self._after_comma(comma, "}")
        value = {member.name: member.node.value for member in members}
        return Node(start, at + 1, value, tuple(members))

    def _array(self, start: int, depth: int) -> Node:
        values = []
        at = self.skip(start + 1)
        while not self._text.startswith("]", at):
            node = self.value(at, depth + 1)
            values.append(node.value)
            after = self.skip(node.end)
            comma = self._comma(after, "]")
            at = after if comma is None else self._after_comma(comma, "]")
        return Node(start, at + 1, values)

    def _comma(self, at: int, closing: str) -> int | None:
        if self._text.startswith(",", at):
            return at
        if not self._text.startswith(closing, at):
            self.refuse(f"a comma or '{closing}' is expected", at)
        return None

    def _after_comma(self, comma: int, closing: str) -> int:
        at = self.skip(comma + 1)
        if self._text.startswith(closing, at) and not self._comments:
            self.refuse("there is a comma too many", comma)
        return at

    def refuse(self, what: str, at: int) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        raise ConfigFileError(f"line {line}: {what}")


def _end(match: re.Match[str] | None, default: int) -> int:
    return default if match is None else match.end()


def _at(text: str, node: Node, path: Sequence[str]) -> Node:
    for name in path:
        member = _member(text, node, name)
        if member is None:
            raise ConfigFileError(f"'{name}' is missing")
        node = member.node
    return node


def _member(text: str, node: Node, name: str) -> Member | None:
    line = text.count("\n", 0, node.start) + 1
    if not isinstance(node.value, dict):
        raise ConfigFileError(f"line {line}: an object is expected there")
    found = [member for member in node.members if member.name == name]
    if len(found) > 1:
        raise ConfigFileError(f"line {line}: '{name}' stands there more than once")
    return found[0] if found else None


# --- writing ---


def _put(text: str, node: Node, path: Sequence[str], value: Any) -> str:
    member = _member(text, node, path[0])
    if member is None:
        for name in reversed(path[1:]):
            value = {name: value}
        return _insert(text, node, path[0], value)
    if len(path) > 1:
        return _put(text, member.node, path[1:], value)
    if "\n" in text[member.node.start : member.node.end]:
        rendered = _rendered(value, text, _line_indent(text, member.start))
    else:
        rendered = json.dumps(value, ensure_ascii=False)
    return text[: member.node.start] + rendered + text[member.node.end :]


def _insert(text: str, node: Node, name: str, value: Any) -> str:
    """A new last member."""
    inner = text[node.start + 1 : node.end - 1]
    if node.members and "\n" not in inner:
        return _insert_in_line(text, node, name, value)
    newline = _newline(text)
    base = _line_indent(text, node.start)
    indent = base + _unit(text)
    if node.members:
        indent = _line_indent(text, node.members[-1].start)
    member = f"{json.dumps(name, ensure_ascii=False)}: {_rendered(value, text, indent)}"
    # Comments after the last member stay where they are, before ours.
    end = node.start + 1 + len(inner.rstrip(" \t\r\n"))
    closing = text[end:] if "\n" in inner[end - node.start - 1 :] else newline + base + text[end:]
    if not inner.strip():
        closing = newline + base + text[node.end - 1 :]
    addition = f"{newline}{indent}{member}"
    if not node.members:
        return text[:end] + addition + closing
    last = node.members[-1]
    if last.comma is not None:
        return text[:end] + addition + "," + closing
    return text[: last.node.end] + "," + text[last.node.end : end] + addition + closing


def _insert_in_line(text: str, node: Node, name: str, value: Any) -> str:
    last = node.members[-1]
    member = json.dumps({name: value}, ensure_ascii=False)[1:-1]
    if last.comma is not None:
        return f"{text[: last.comma + 1]} {member},{text[last.comma + 1 :]}"
    return f"{text[: last.node.end]}, {member}{text[last.node.end :]}"


def _without_member(text: str, node: Node, name: str) -> str:
    index = next(i for i, member in enumerate(node.members) if member.name == name)
    member = node.members[index]
    before = node.members[index - 1] if index else None
    start, end = _whole_line(text, member)
    if before is not None and before.comma is not None and member.comma is None:
        # The last one, so that the comma before it goes as well.
        return text[: before.comma] + text[before.comma + 1 : start] + text[end:]
    if (
        len(node.members) == 1
        and not (text[node.start + 1 : start] + text[end : node.end - 1]).strip()
    ):
        return text[: node.start] + "{}" + text[node.end :]
    return text[:start] + text[end:]


def _whole_line(text: str, member: Member) -> tuple[int, int]:
    """The span of the member with its comma, and with the line end before it where it has its
    lines for itself.
    """
    end = member.node.end if member.comma is None else member.comma + 1
    start = len(text[: member.start].rstrip(" \t"))
    rest = text[end:].lstrip(" \t")
    if text[:start].endswith("\n") and rest[:1] in ("\r", "\n", ""):
        start -= 2 if text[:start].endswith("\r\n") else 1
        return start, len(text) - len(rest)
    if not text[:start].endswith("\n"):
        return start, end
    return member.start, len(text) - len(rest)


def _rendered(value: Any, text: str, indent: str) -> str:
    """Indented as the file is; its first line stands after the name."""
    unit = _unit(text)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return "  " if found is None else found.group(1)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, at: int) -> str:
    """The blanks at the start of the line of `at`."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- checking ---


def _checked(edited: str, expected: Any, comments: bool) -> str:
    # An edit that says something else than it should would damage a person's file.
    if parse(edited, comments=comments).value != expected:
        raise ConfigFileError("it cannot be edited without changing something else")
    return edited


def _with(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        return new
    members = value if isinstance(value, dict) else {}
    return {**members, path[0]: _with(members.get(path[0]), path[1:], new)}


def _without(value: Any, path: Sequence[str]) -> Any:
    if len(path) == 1:
        return {name: item for name, item in value.items() if name != path[0]}
    return {**value, path[0]: _without(value[path[0]], path[1:])}
