"""What an agent would execute, read or replace when it loads a skill's body.

A body is not inert: Claude Code runs `` !`command` `` and ```` ```! ```` fences, pulls in the file
of an `@path`, and substitutes `$1` and `${...}`, inside code fences and comments as well. Hidden
characters carry instructions that a person does not see.

Covered: those constructs, each in a table of rules that a new one joins; what a body asks for in
plain words is in wishes.py. Both are what `find_active` finds.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from stash_mcp.skills.characters import UNPRINTABLE, hidden_positions
from stash_mcp.skills.findings import Finding, Hit, Rule, Severity
from stash_mcp.skills.wishes import WISHES

__all__ = ["RULES", "Finding", "find_active", "find_constructs", "neutralise"]

# A construct starts where a line does or after whitespace. JavaScript's whitespace has U+FEFF,
# Python's has not.
_START = r"(?<![^\s\ufeff])"
_COMMAND = re.compile(_START + r"!(?=`)")
_FENCE = re.compile(r"(?<!`)(`{3,}+)([ \t]*)(?=!)")
_REFERENCE = re.compile(_START + r"@(?=([^\s`]+))")
_ARGUMENT = re.compile(r"\$(?=ARGUMENTS|[0-9]|\{)")
_COMMENT = re.compile(r"<!--")
# `@property`, `@app.get("/")` or `@someone` names a file only by accident; `@scope/name` after a
# package manager's name is a package.
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_PATH_START = "\"'/\\~."
_PACKAGE = re.compile(r"[a-z0-9][\w.-]*/[a-z0-9][\w.-]*(?:@\S*)?$")
_PACKAGE_MANAGER = re.compile(r"\b(?:npm|npx|pnpm|yarn|bun|bunx|deno)\b")
_FILE_ENDING = re.compile(
    r"\.(?:bak|bash\w*|c|cfg|cmd|conf|cpp|crt|cs|csv|db|docx?|env|gitconfig|go|h|html?|ini|ipynb"
    r"|java|js|jsonl?|jsx|key|log|md|mdx|npmrc|p12|pdf|pem|php|pickle|pkl|png|ps1|py|rb|rs|rst|sh"
    r"|sql|sqlite3?|svg|swift|toml|tsx?|tsv|txt|xml|xlsx?|ya?ml|zsh\w*)(?![\w-])",
    re.IGNORECASE,
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
        for position, severity in rule.find(body):
            line = body.count("\n", 0, position) + 1
            known = worst.get((line, rule.id))
            if known is None or severity == "high":
                worst[line, rule.id] = Finding(rule.id, severity, line, rule.why)
    return tuple(worst[key] for key in sorted(worst))


def active_problems(text: str) -> tuple[str, ...]:
    """Its high findings as sentences for whoever wrote it."""
    return tuple(
        f"Line {finding.line}: {finding.why}"
        for finding in find_active(text)
        if finding.severity == "high"
    )


def neutralise(text: str) -> str:
    """`text` without active constructs, changed as little as that takes.

    For words that are copied into a body, such as a reviewer's comment. CRLF and CR become LF, and
    other control characters go. `find_constructs` finds nothing in the result, and doing it again
    changes nothing.
    """
    text = UNPRINTABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    hidden = set(hidden_positions(text))
    text = "".join(c for position, c in enumerate(text) if position not in hidden)
    # Fences first: what follows one then begins a word, and the next steps see it.
    text = _FENCE.sub(r"\1text ", text)
    text = _COMMAND.sub(r"\!", text)
    text = _REFERENCE.sub(r"\@", text)
    text = _ARGUMENT.sub("$ ", text)
    return _COMMENT.sub(r"<\!--", text)


def _all(pattern: re.Pattern[str], severity: Severity) -> Callable[[str], Iterator[Hit]]:
    return lambda text: ((match.start(), severity) for match in pattern.finditer(text))


def _hidden(text: str) -> Iterator[Hit]:
    return ((position, "high") for position in hidden_positions(text))


def _references(text: str) -> Iterator[Hit]:
    for match in _REFERENCE.finditer(text):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        yield match.start(), _reference_severity(match.group(1), before)


def _reference_severity(path: str, before: str) -> Severity:
    """`before` is what stands on the line before the reference."""
    if _CALL.match(path):
        return "low"
    if path[0] in _PATH_START or _FILE_ENDING.search(path):
        return "high"
    if _PACKAGE.match(path) and _PACKAGE_MANAGER.search(before):
        return "low"
    return "high" if "/" in path or "\\" in path else "low"


CONSTRUCTS: tuple[Rule, ...] = (
    Rule(
        "shell-command",
        "'!' before a backtick, at the start of a line or after a space, runs what the backticks "
        "hold as a shell command when the skill loads.",
        _all(_COMMAND, "high"),
    ),
    Rule(
        "shell-fence",
        "A code fence opened with '```!' is run as a shell script when the skill loads.",
        _all(_FENCE, "high"),
    ),
    Rule(
        "file-reference",
        "'@' before a path, at the start of a line or after a space, pulls that file or folder "
        "into the conversation without asking.",
        _references,
    ),
    Rule(
        "substitution",
        "'$ARGUMENTS', '$1' and '${...}' are replaced when the skill loads; some releases also "
        "remove an amount such as '$5'.",
        _all(_ARGUMENT, "low"),
    ),
    Rule(
        "hidden-unicode",
        "An invisible character, or one that turns the writing's direction, can hide instructions "
        "from a reader.",
        _hidden,
    ),
    Rule(
        "html-comment",
        "An HTML comment is not shown where Markdown is displayed, but the agent reads it.",
        _all(_COMMENT, "low"),
    ),
)

RULES: tuple[Rule, ...] = (*CONSTRUCTS, *WISHES)
