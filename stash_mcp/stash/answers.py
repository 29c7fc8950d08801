"""Bodies of answers, read into their shapes or refused, and foreign words made fit to be shown."""

import re
from collections.abc import Sequence
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from stash_mcp.errors import StashAnswerError
from stash_mcp.redaction import MASK, redact
from stash_mcp.stash.connection import Answer

T = TypeVar("T")

ADDRESS_FIX = "Check STASH_URL: it is the address of the API, as https://api.joinstash.ai."
_OWN_MARK = "x-stash-cli-latest"
_SHOWN_CHARACTERS = 300
_READ_BYTES = 4096
_TITLE = re.compile(r"<title[^>]*>([^<]*[^\s<][^<]*)<", re.IGNORECASE)


def read(answer: Answer, shape: TypeAdapter[T], secrets: Sequence[str]) -> T:
    """The body as `shape`; StashAnswerError names the first field that does not fit."""
    if not answer.header("content-type").lower().partition(";")[0].strip().endswith("json"):
        raise _foreign(answer, secrets)
    return parsed(answer.body, shape, secrets)


def parsed(body: bytes, shape: TypeAdapter[T], secrets: Sequence[str]) -> T:
    try:
        return shape.validate_json(_without(body, secrets))
    except ValidationError as error:
        raise _misshapen(error, secrets) from None


def read_text(answer: Answer, secrets: Sequence[str]) -> str:
    """The body of a text that is no web page."""
    if not answer.header("content-type").lower().startswith("text/") or _is_html(answer):
        raise _foreign(answer, secrets)
    try:
        return _without(answer.body, secrets).decode("utf-8")
    except UnicodeDecodeError:
        raise StashAnswerError("Stash's text is not UTF-8.", "Report it to Stash.") from None


def _without(body: bytes, secrets: Sequence[str]) -> bytes:
    """What Stash echoes of the key, in a job's error or a title, is neither stored nor shown."""
    for secret in secrets:
        body = body.replace(secret.encode(), MASK.encode())
    return body


def _misshapen(error: ValidationError, secrets: Sequence[str]) -> StashAnswerError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return StashAnswerError(
            "Stash's answer is not whole JSON.", "Try again.", passing=True, reached=True
        )
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    return StashAnswerError(
        f"Stash's answer does not fit at `{shown(place, secrets)}`: {first['msg']}.",
        "This version of stash-skills and that server do not go together: update the older one.",
        reached=True,
    )


def _foreign(answer: Answer, secrets: Sequence[str]) -> StashAnswerError:
    line = first_line(answer.body, secrets)
    if _is_html(answer) or _OWN_MARK not in answer.headers:
        return StashAnswerError(
            f"What answers is not Stash's API: {line}", ADDRESS_FIX, reached=True
        )
    return StashAnswerError(
        f"Stash's answer is of another kind than expected: {line}",
        "Try again in a moment.",
        passing=True,
        reached=True,
    )


def _is_html(answer: Answer) -> bool:
    return "html" in answer.header("content-type").lower() or answer.body.lstrip()[:1] == b"<"


def first_line(body: bytes, secrets: Sequence[str]) -> str:
    """Of a text, or the title of a page."""
    text = body[:_READ_BYTES].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if title:
        return shown(title[1], secrets)
    line = next((line for line in text.splitlines() if line.strip()), "an empty answer")
    return shown(line, secrets)


def shown(text: str, secrets: Sequence[str]) -> str:
    """Foreign words on one line, without keys and without what would move a terminal's cursor."""
    clean = redact(" ".join(text.split()), secrets)
    clean = "".join(character if character.isprintable() else "?" for character in clean)
    return clean if len(clean) <= _SHOWN_CHARACTERS else f"{clean[:_SHOWN_CHARACTERS]}…"
