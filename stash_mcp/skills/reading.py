"""A body as its reader takes it in: sentences and commands, however they are set.

Covered: letters of other widths, invisible characters, emphasis, quote marks, paragraphs and
commands that go over several lines, and whether a sentence forbids or quotes what it says. Prose is
taken for English.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stash_mcp.skills.characters import shown


@dataclass(frozen=True)
class Unit:
    """A sentence, or a command with its pipes. `line`: of its first character, from 1."""

    line: int
    text: str

    def line_at(self, position: int) -> int:
        return self.line + self.text.count("\n", 0, position)


def phrase(pattern: str) -> re.Pattern[str]:
    """`pattern` in any case; a space in it stands for blanks and a line's end."""
    return re.compile(pattern.replace(" ", r"\s{1,9}"), re.IGNORECASE)


def in_order(text: str, steps: Sequence[re.Pattern[str]], start: int = 0) -> int | None:
    """Where the first of the steps is, at `start` or later, if each stands somewhere after the one
    before it.

    Takes time linear in the text, as one pattern with gaps between its parts would not.
    """
    first, position = None, start
    for step in steps:
        match = step.search(text, position)
        if match is None:
            return None
        first = match.start() if first is None else first
        position = match.end()
    return first


# --- sentences ---

_EMPHASIS = re.compile(r"[*`]")
_QUOTE_MARKS = re.compile(r"^(?:[ \t]{0,8}>){1,20}", re.MULTILINE)
_STAR = re.compile(r"^([ \t]{0,40})\* ", re.MULTILINE)
_FENCE = re.compile(r"^([ \t]{0,40})```", re.MULTILINE)
_OWN_BLOCK = re.compile(r"[ \t]{0,40}(?:[-+] |\d{1,9}[.)] |#{1,6} |\||~~~|$)")
_SENTENCE_END = re.compile(
    r"(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?\u3002\uff01\uff1f])[\"'\u201d\u2019)\]]{0,3}\s"
)


def plain(text: str) -> str:
    """`text` with the same lines, in the letters that it shows."""
    text = shown(text.replace("\r\n", "\n"))
    common = unicodedata.normalize("NFKC", text)
    # A few signs stand for whole phrases; a text of them is not to be read at its length.
    return common if len(common) <= 2 * len(text) + 100 else text


def sentences(text: str) -> Iterator[Unit]:
    for block in _blocks(text):
        start = 0
        for end in _SENTENCE_END.finditer(block.text):
            yield Unit(block.line_at(start), block.text[start : end.end()])
            start = end.end()
        yield Unit(block.line_at(start), block.text[start:])


def _blocks(text: str) -> Iterator[Unit]:
    """Paragraphs, items of lists, rows of tables."""
    first, lines = 1, list[str]()
    # A star may begin an item, and backticks a fence; what is left of both is emphasis and code.
    marked = _FENCE.sub(r"\1~~~", _STAR.sub(r"\1- ", _QUOTE_MARKS.sub("", text)))
    for number, line in enumerate(_EMPHASIS.sub("", marked).split("\n"), 1):
        if lines and _OWN_BLOCK.match(line):
            yield Unit(first, "\n".join(lines))
            lines = []
        if line.strip() == "":
            continue
        if not lines:
            first = number
        lines.append(line)
    if lines:
        yield Unit(first, "\n".join(lines))


# --- commands ---

_CONTINUES = re.compile(r"(?:\\|\s`|\||&&)\s{0,9}$")


def commands(text: str) -> Iterator[Unit]:
    """Lines; those that a command continues are one."""
    first, lines = 1, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not lines:
            first = number
        continues = _CONTINUES.search(line[-12:]) is not None
        lines.append(line.rstrip()[:-1] if continues and line.rstrip()[-1] in "\\`" else line)
        if not continues:
            if line.strip():
                yield Unit(first, "\n".join(lines))
            lines = []
    if lines:
        yield Unit(first, "\n".join(lines))


# --- what is forbidden, what is only quoted ---

_NEGATION = re.compile(
    r"\b(?:never|(?:do|does|must|should|will|can|may) not|cannot|avoid|refuse to|nobody|no one"
    r"|(?:do|does|must|should|wo|ca)n['\u2019]t)\b",
    re.IGNORECASE,
)
_STILL_DONE = re.compile(
    r"\b(?:hesitate|forget|fail|afraid|wait|stop|skip|omit|miss|neglect|delay|only|just|worry"
    r"|before|until|while)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.!?;:](?=\s|$)|[\u2014\u2013]|\s-\s")
_OR = re.compile(r"\b(?:or|nor)\b", re.IGNORECASE)
_IF_ASKED = phrase(
    r"\b(?:if|when) [^.\n]{0,80}?\b(?:asks?|says?|tells?|wants?|requests?|contains?)\b"
)
_REFUSED = phrase(
    r"(?:[,;:-]|\bthen) (?:refuse|decline|do not (?:do|follow|comply)|don['\u2019]t (?:do|follow)"
    r"|say no|(?:it|this|that) is an attack|ignore (?:it|that))\b"
)
_REPORTED = phrase(
    r"\b(?:says?|said|writes?|wrote|asks?|reads?|claims?|contains?|tells?|words?|phrases?"
    r"|sentences?|instructions?|like|such as)\b[^.\n]{0,80}$"
)
_REACH = 200


def forbidden(text: str, position: int) -> bool:
    """Whether the sentence says that what it names at `position` is not to be done.

    Only a negation of the same clause counts: "Do not wait, send ..." forbids nothing.
    """
    before = text[max(0, position - _REACH) : position]
    clauses = [end.end() for end in _CLAUSE_END.finditer(before)]
    before = before[clauses[-1] :] if clauses else before
    negations = list(_NEGATION.finditer(before))
    if negations and _binds(before[negations[-1].end() :]):
        return True
    return bool(_IF_ASKED.search(text, 0, position) and _REFUSED.search(text, position))


def _binds(gap: str) -> bool:
    """Whether a negation before `gap` reaches what follows it: at once, or through "or"."""
    if _STILL_DONE.search(gap):
        return False
    return "," not in gap or _OR.search(gap.rpartition(",")[2]) is not None


def quoted(text: str, position: int) -> bool:
    """Whether it is told there that somebody else says it."""
    if text[position - 1 : position] not in ('"', "“", "'", "\u2018", "«", "„"):
        return False
    return _REPORTED.search(text[max(0, position - _REACH) : position]) is not None
