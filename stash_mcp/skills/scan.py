"""What an agent would execute, read or replace when it loads a skill's body.

A body is not inert: Claude Code runs `` !`command` `` and ```` ```! ```` fences, pulls in the file
of an `@name`, and substitutes `$ARGUMENTS`, `$1` and `${...}`, inside code fences and comments as
well. Hidden characters carry instructions that a person does not see.

Covered: those constructs, each in a table of rules that a new one joins; what a body asks for in
plain words is in wishes.py. Both are what `find_active` finds. A mention (`@alice`), a decorator
(`@property`) and a package (`npm i @scope/name`) are found too: each pulls in the file of that name
wherever there is one, which the text cannot tell.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from stash_mcp.skills.characters import UNPRINTABLE, hidden_positions
from stash_mcp.skills.findings import Finding, Hit, Rule, Severity, line_of
from stash_mcp.skills.wishes import WISHES

__all__ = ["RULES", "Finding", "active_problems", "find_active", "find_constructs", "neutralise"]

# What may be replaced on load, by nothing or by words: what stands beside it is then the start of a
# line, or comes together. A body cannot hold this control character (document.py).
_REPLACED = "\x00"
_GAP = f"{_REPLACED}*+"
_SUBSTITUTION = re.compile(
    rf"\$(?:{_GAP.join('ARGUMENTS')}(?:\[\d{{1,9}}\])?|\d++|\{{[^}}\n]{{0,200}}+\}})"
)
_NESTED = 3
_LINES_NAMED = 10
# A construct starts where a line does or after whitespace. JavaScript's whitespace has U+FEFF,
# Python's has not.
_START = rf"(?<![^\s\ufeff{_REPLACED}])"
_COMMAND = re.compile(rf"{_START}!(?={_GAP}`)")
_FENCE = re.compile(rf"(?<!`)((?:`{_GAP}){{3,}}+)((?:[ \t]|{_REPLACED})*+)(?=!)")
_LONGEST_NAME = 300
# An `@` acts after these marks as well, which end a sentence or a clause in Chinese and Japanese.
_REFERENCE = re.compile(
    rf"(?:(?<=[\u3002\u3001\uff1f\uff01])|{_START})@(?=(\S{{1,{_LONGEST_NAME}}}))"
)
# Of the rest Claude Code takes what ends in an ASCII letter, a digit or `_`, or stands in quotes.
_NAMES_FILE = re.compile(r"[0-9A-Za-z_\"/\\~]|\.\.")
_ARGUMENT = re.compile(r"\$(?=ARGUMENTS|[0-9]|\{)")
# What is replaced without an argument too, or is meant for one. Other `${name}` stay as they are,
# and so does `$5`, unless somebody passes five arguments.
_SURELY_REPLACED = re.compile(r"\$(?:ARGUMENTS|\{(?:CLAUDE_|ARGUMENTS|user_config|[0-9]))")
_COMMENT = re.compile(r"<!--")
# `[//]: # (words)`: the definition of a link that nothing uses.
_LINK_COMMENT = re.compile(
    r"^([ \t>]{0,40}(?:[-+*] |\d{1,9}[.)] )?)\[(?=[^\]\n]{1,300}\]:[ \t]{0,9}(?:#(?:\s|$)|<>))",
    re.M,
)


def find_active(body: str) -> tuple[Finding, ...]:
    """What stands against `body`, by line; one finding for each rule and line, the worst."""
    return _found(body, RULES)


def find_constructs(body: str) -> tuple[Finding, ...]:
    """Of that only what is executed, read in, replaced or unseen: what `neutralise` takes out."""
    return _found(body, CONSTRUCTS)


def _found(body: str, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    worst: dict[tuple[int, str], Finding] = {}
    for rule in rules:
        for line, severity in rule.find(body):
            known = worst.get((line, rule.id))
            if known is None or severity == "high":
                worst[line, rule.id] = Finding(rule.id, severity, line, rule.why)
    return tuple(worst[key] for key in sorted(worst))


def active_problems(text: str) -> tuple[str, ...]:
    """Its high findings as sentences for whoever wrote it, one for each rule."""
    lines: dict[str, list[int]] = {}
    for finding in find_active(text):
        if finding.severity == "high":
            lines.setdefault(finding.why, []).append(finding.line)
    return tuple(f"{_lines(numbers)}: {why}" for why, numbers in lines.items())


def _lines(numbers: Sequence[int]) -> str:
    named = ", ".join(str(number) for number in numbers[:_LINES_NAMED])
    more = " and others" if len(numbers) > _LINES_NAMED else ""
    return f"Line {named}" if len(numbers) == 1 else f"Lines {named}{more}"


def neutralise(text: str) -> str:
    """`text` without active constructs, changed as little as that takes.

    For words that are copied into a body, such as a reviewer's comment. CRLF and CR become LF, and
    other control characters go. `find_constructs` finds nothing in the result, and doing it again
    changes nothing.
    """
    text = UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    hidden = set(hidden_positions(text))
    text = "".join(c for position, c in enumerate(text) if position not in hidden)
    # Substitutions first, then fences: what follows one then begins a word, and the next steps
    # see it.
    text = _ARGUMENT.sub("$ ", text)
    text = _FENCE.sub(r"\1text ", text)
    text = _COMMAND.sub(r"\!", text)
    text = _REFERENCE.sub(r"\@", text)
    text = _LINK_COMMENT.sub(r"\1\[", text)
    return _COMMENT.sub(r"<\!--", text)


# --- rules ---


def _loaded(text: str) -> str:
    """`text` with a mark in place of each substitution; the lines are the same."""
    text = text.replace(_REPLACED, "\ufffd")
    # What a substitution leaves behind may be the parts of another.
    for _ in range(_NESTED):
        text, count = _SUBSTITUTION.subn(_REPLACED, text)
        if count == 0:
            break
    return text


def _each(pattern: re.Pattern[str], severity: Severity) -> Callable[[str], Iterator[Hit]]:
    return lambda text: (
        (line_of(text, match.start()), severity) for match in pattern.finditer(text)
    )


def _each_loaded(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Hit]]:
    find = _each(pattern, "high")
    return lambda text: find(_loaded(text))


def _hidden(text: str) -> Iterator[Hit]:
    return ((line_of(text, position), "high") for position in hidden_positions(text))


def _references(text: str) -> Iterator[Hit]:
    text = _loaded(text)
    for match in _REFERENCE.finditer(text):
        yield line_of(text, match.start()), "high" if _names_file(match.group(1)) else "low"


def _names_file(name: str) -> bool:
    cut = len(name) == _LONGEST_NAME
    return cut or _REPLACED in name or _NAMES_FILE.search(name) is not None


def _substitutions(text: str) -> Iterator[Hit]:
    for match in _ARGUMENT.finditer(text):
        sure = _SURELY_REPLACED.match(text, match.start())
        yield line_of(text, match.start()), "high" if sure else "low"


def _comments(text: str) -> Iterator[Hit]:
    for pattern in (_COMMENT, _LINK_COMMENT):
        yield from _each(pattern, "low")(text)


CONSTRUCTS: tuple[Rule, ...] = (
    Rule(
        "shell-command",
        "'!' before a backtick, at the start of a line or after a space, runs what the backticks "
        "hold as a shell command when the skill loads.",
        _each_loaded(_COMMAND),
    ),
    Rule(
        "shell-fence",
        "A code fence opened with '```!' is run as a shell script when the skill loads.",
        _each_loaded(_FENCE),
    ),
    Rule(
        "file-reference",
        "'@' before a word, at the start of a line or after a space, pulls the file or folder of "
        "that name into the conversation without asking, in code as well. Write it without '@', as "
        "'\\@', or with a backtick or a parenthesis directly before the '@'.",
        _references,
    ),
    Rule(
        "substitution",
        "'$ARGUMENTS', '$1' and '${...}' are replaced when the skill loads; some releases also "
        "remove an amount such as '$5'.",
        _substitutions,
    ),
    Rule(
        "hidden-unicode",
        "An invisible character, or one that turns the writing's direction, can hide instructions "
        "from a reader.",
        _hidden,
    ),
    Rule(
        "html-comment",
        "A comment is not shown where Markdown is displayed, but the agent reads it.",
        _comments,
    ),
)

RULES: tuple[Rule, ...] = (*CONSTRUCTS, *WISHES)
