"""SKILL.md: the one place that writes, parses and validates it.

The text is `---`, `name`, `description`, `---`, a blank line and the body, with LF line ends.
Whitespace at the body's end is dropped and no line end is added, so the text ends with the body's
last character; the body is otherwise kept byte for byte. That one form is what a run scores, stores
and installs.

Not covered: what an agent would execute in a body (scan.py).
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

from stash_mcp.errors import SkillDocumentError
from stash_mcp.models import Skill
from stash_mcp.skills.characters import UNPRINTABLE, has_hidden

MAX_NAME_CHARACTERS = 64
MAX_DESCRIPTION_CHARACTERS = 1024
MAX_BODY_LINES = 500
MAX_BODY_CHARACTERS = 20_000
"""About 5,000 tokens, which the specification recommends as a body's limit."""
MAX_FRONTMATTER_BRACKETS = 500
"""The YAML parser's time grows with the square of their depth: seconds at 5,000."""

_FRONTMATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]")
_VENDOR_WORDS = ("anthropic", "claude")
# Claude Code keeps `synced` for itself; Windows cannot make a folder with one of the others.
_RESERVED_NAMES = {
    "synced", "con", "prn", "aux", "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)),
}  # fmt: skip
_ANGLE_BRACKETS = re.compile(r"<[^<>]+>")
_LINE_BREAKS = re.compile("[\n\t\u2028\u2029]")
# YAML 1.1, which many agents still read, takes these for something other than text.
_YAML_WORDS = {"yes", "no", "on", "off", "true", "false", "null"}


@dataclass(frozen=True)
class Document:
    """A SKILL.md that was read; `other_keys` are the frontmatter's keys that are not ours."""

    skill: Skill
    other_keys: tuple[str, ...]


# --- writing ---


def render(skill: Skill) -> str:
    """The whole SKILL.md. `parse` gives the same skill back (without whitespace at its end).

    Raises SkillDocumentError for a skill that breaks a rule.
    """
    problems = _problems(skill.name, skill.description, skill.body)
    _refuse(problems, "This skill cannot be written as a SKILL.md.", _SKILL_FIX)
    head = io.StringIO()
    _emitter().dump({"name": _scalar(skill.name), "description": _scalar(skill.description)}, head)
    return f"---\n{head.getvalue()}---\n\n{skill.body.rstrip()}"


def system_message(system: str | None, skill: Skill) -> str:
    """The task model's system message: the example's own prompt, if any, then the skill."""
    block = f'<skill name="{skill.name}">\n{render(skill)}\n</skill>'
    return f"{system}\n\n{block}" if system else block


def _emitter() -> YAML:
    yaml = YAML()
    yaml.allow_unicode = True
    # Never fold: parsers that read frontmatter line by line would see only the first line.
    yaml.width = 1_000_000
    return yaml


def _scalar(value: str) -> str:
    """`value` in the YAML style that a parser reading line by line gets right as well."""
    if _reads_as_plain(value):
        return value
    # Quote by the mark that needs no escape inside, so that stripping the quotes is enough.
    bare_in_double = "'" in value and '"' not in value and "\\" not in value
    quoted: str = (DoubleQuotedScalarString if bare_in_double else SingleQuotedScalarString)(value)
    return quoted


def _reads_as_plain(value: str) -> bool:
    if not value[0].isalpha() or value.lower() in _YAML_WORDS:
        return False
    return ": " not in value and " #" not in value and not value.endswith(":")


# --- reading ---


def parse(text: str) -> Skill:
    """The skill in a SKILL.md; raises SkillDocumentError naming everything that is wrong."""
    return read_document(text).skill


def read_document(text: str) -> Document:
    """Like `parse`, and tells which other frontmatter keys there are.

    CRLF is read as LF. Whitespace around the description and at the body's end is dropped.
    """
    text = text.replace("\r\n", "\n")
    match = _FRONTMATTER.match(text)
    if match is None or "\0" in text:
        raise SkillDocumentError(
            f"This text is not a SKILL.md: {_structure_problem(text)}.", _STRUCTURE_FIX
        )
    fields = _frontmatter(match.group(1))
    name, description = _text_field(fields, "name"), _text_field(fields, "description")
    body = text[match.end() :].removeprefix("\n").rstrip()
    _refuse(_problems(name, description, body), "This SKILL.md breaks a rule.", _SKILL_FIX)
    others = tuple(str(key) for key in fields if key not in ("name", "description"))
    return Document(Skill(name=name, description=description, body=body), others)


def _structure_problem(text: str) -> str:
    if "\0" in text:
        return "it has a NUL character"
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark, at which some agents stop reading"
    if text[:1].isspace():
        return "it begins with a blank line or a space; '---' must stand at its very start"
    if not text.startswith("---"):
        return "it has no frontmatter, since its first line is not '---'"
    return "its frontmatter does not lie between two lines '---'"


def _frontmatter(yaml_text: str) -> dict[object, object]:
    if yaml_text.count("[") + yaml_text.count("{") > MAX_FRONTMATTER_BRACKETS:
        raise SkillDocumentError(
            f"The frontmatter of this SKILL.md has over {MAX_FRONTMATTER_BRACKETS} brackets.",
            "Take out what is not the skill's name and description.",
        )
    try:
        # `base` keeps every value as text: `name: 123` is a name, not a number.
        fields = YAML(typ="base", pure=True).load(yaml_text)
    except (YAMLError, RecursionError) as error:
        raise SkillDocumentError(
            f"The frontmatter of this SKILL.md is not valid YAML ({_where(error)}).",
            "Quote the description if it has ': ', ' #' or a quotation mark in it.",
        ) from error
    if not isinstance(fields, dict):
        raise SkillDocumentError(
            "The frontmatter of this SKILL.md has no 'key: value' lines.", _STRUCTURE_FIX
        )
    return fields


def _where(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    # The frontmatter's first line is the second of the file, and marks count from 0.
    return problem if mark is None else f"line {mark.line + 2}: {problem}"


def _text_field(fields: dict[object, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise SkillDocumentError(
            f"The frontmatter of this SKILL.md has no text for '{key}'.",
            f"Add a line '{key}: ...' between the two lines '---'.",
        )
    return value.strip()


# --- the rules ---


def problems_with_name(name: str) -> tuple[str, ...]:
    """Every rule that `name` breaks, a sentence each; empty if it can be used."""
    return tuple(_name_problems(name)) if name else ("The name is empty.",)


def problems_with_description(description: str) -> tuple[str, ...]:
    """Every rule that `description` breaks, a sentence each; empty if it can be used."""
    if not description.strip():
        return ("The description is empty.",)
    return tuple(_description_problems(description))


def problems_with_body(body: str) -> tuple[str, ...]:
    """Every rule that `body` breaks, a sentence each; empty if it can be used.

    Whitespace at its end does not count.
    """
    body = body.rstrip()
    return tuple(_body_problems(body)) if body else ("The body is empty.",)


def _name_problems(name: str) -> Iterator[str]:
    if len(name) > MAX_NAME_CHARACTERS:
        yield f"The name has {len(name)} characters; at most {MAX_NAME_CHARACTERS} are allowed."
    if strange := sorted(set(_NOT_IN_NAMES.findall(name))):
        yield f"The name has {_listed(strange)} in it; only a-z, 0-9 and '-' are allowed."
    if name.startswith("-") or name.endswith("-"):
        yield "The name starts or ends with a hyphen."
    if "--" in name:
        yield "The name has two hyphens in a row."
    if vendors := [word for word in _VENDOR_WORDS if word in name.lower()]:
        yield f"The name has {_listed(vendors)} in it, which is reserved."
    if name.lower() in _RESERVED_NAMES:
        yield f"The name '{name}' is reserved."


def _description_problems(description: str) -> Iterator[str]:
    length = len(description)
    if length > MAX_DESCRIPTION_CHARACTERS:
        limit = MAX_DESCRIPTION_CHARACTERS
        yield f"The description has {length} characters; at most {limit} are allowed."
    if _LINE_BREAKS.search(description):
        yield "The description has a line break or a tab; it must be one line."
    if description != description.strip():
        yield "The description starts or ends with a space."
    if tag := _ANGLE_BRACKETS.search(description):
        yield f"The description has {tag.group()[:40]!r} in it, which looks like an XML tag."
    if "---" in description:
        yield "The description has '---' in it, which would end the frontmatter."
    if control := UNPRINTABLE.search(description):
        yield f"The description has the control character {_code_point(control.group())}."
    if has_hidden(description):
        yield "The description has an invisible character."


def _body_problems(body: str) -> Iterator[str]:
    lines = body.count("\n") + 1
    if lines > MAX_BODY_LINES:
        yield f"The body has {lines} lines; at most {MAX_BODY_LINES} are allowed."
    if len(body) > MAX_BODY_CHARACTERS:
        yield f"The body has {len(body)} characters; at most {MAX_BODY_CHARACTERS} are allowed."
    if body.lstrip().split("\n", 1)[0].rstrip() == "---":
        yield "The body starts with a line '---', as frontmatter does; it must be the text alone."
    if control := UNPRINTABLE.search(body):
        yield f"The body has the control character {_code_point(control.group())}."


def check_name(name: str) -> None:
    _refuse(problems_with_name(name), "This name cannot be a skill's name.", _NAME_FIX)


def check_description(description: str) -> None:
    _refuse(
        problems_with_description(description),
        "This description cannot be a skill's description.",
        _DESCRIPTION_FIX,
    )


def check_body(body: str) -> None:
    _refuse(problems_with_body(body), "This text cannot be a skill's body.", _BODY_FIX)


_NAME_FIX = (
    f"Use 1 to {MAX_NAME_CHARACTERS} lower-case letters, digits and single hyphens, such as "
    "'refund-answers'."
)
_DESCRIPTION_FIX = (
    f"Write one line of 1 to {MAX_DESCRIPTION_CHARACTERS} characters that says what the skill does "
    "and when to use it, without angle brackets and '---'."
)
_BODY_FIX = (
    f"Write Markdown of at most {MAX_BODY_LINES} lines and {MAX_BODY_CHARACTERS} characters, "
    "without frontmatter."
)
_SKILL_FIX = "Correct what is named and try again."
_STRUCTURE_FIX = (
    "Write 'name: ...' and 'description: ...' between two lines '---', then a blank line and the "
    "body."
)


def _problems(name: str, description: str, body: str) -> tuple[str, ...]:
    return (
        *problems_with_name(name),
        *problems_with_description(description),
        *problems_with_body(body),
    )


def _refuse(problems: tuple[str, ...], introduction: str, fix: str) -> None:
    if problems:
        raise SkillDocumentError(" ".join((introduction, *problems)), fix)


def _listed(words: list[str]) -> str:
    shown = ", ".join(repr(word) for word in words[:8])
    return shown if len(words) <= 8 else f"{shown} and {len(words) - 8} more"


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"
