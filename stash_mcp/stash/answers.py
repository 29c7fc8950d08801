"""Bodies of answers, read into their shapes or refused."""

import codecs
import contextlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from stash_mcp.errors import StashAnswerError, StashMisfitError, sentence
from stash_mcp.redaction import MASK
from stash_mcp.stash.connection import Answer
from stash_mcp.stash.rows import NotJson, Rows, loaded
from stash_mcp.stash.shapes import Holding
from stash_mcp.stash.wording import TOO_DEEP, misfit, shown

T = TypeVar("T")
H = TypeVar("H", bound=Holding)

ADDRESS_FIX = "Check STASH_URL: it is the address of the API, as https://api.joinstash.ai."
_OWN_MARK = "x-stash-cli-latest"
_READ_BYTES = 4096
_TITLE = re.compile(r"<title[^>]*>([^<]*[^\s<][^<]*)<", re.IGNORECASE)


def read(answer: Answer, shape: TypeAdapter[T], secrets: Sequence[str]) -> T:
    """The body as `shape`; StashMisfitError names the first field that does not fit."""
    return parsed(_json(answer, secrets), shape, secrets)


def parsed(body: bytes, shape: TypeAdapter[T], secrets: Sequence[str]) -> T:
    masked = without(body, secrets)
    try:
        return shape.validate_json(masked)
    except ValidationError as error:
        raise _misshapen(masked, error, secrets) from None


def read_rows(answer: Answer, rows: Rows[H, Any], secrets: Sequence[str]) -> H:
    """The body with those of its rows that fit; StashMisfitError where the rest of it does not."""
    body = without(_json(answer, secrets), secrets)
    try:
        return rows.read(body, secrets)
    except (ValidationError, RecursionError) as error:
        raise _misshapen(body, error, secrets) from None
    except NotJson:
        raise _broken() from None


def read_text(answer: Answer, secrets: Sequence[str]) -> str:
    """The body of a text that is no web page."""
    if not answer.header("content-type").lower().startswith("text/") or _is_html(answer):
        raise _foreign(answer, secrets)
    try:
        return without(answer.body, secrets).decode("utf-8")
    except UnicodeDecodeError:
        raise StashAnswerError("Stash's text is not UTF-8.", "Report it to Stash.") from None


def without(body: bytes, secrets: Sequence[str]) -> bytes:
    """What Stash echoes of the key, in a job's error or a title, is neither stored nor shown."""
    for secret in secrets:
        body = body.replace(secret.encode(), MASK.encode())
    return body


def _json(answer: Answer, secrets: Sequence[str]) -> bytes:
    if not answer.header("content-type").lower().partition(";")[0].strip().endswith("json"):
        raise _foreign(answer, secrets)
    return answer.body.removeprefix(codecs.BOM_UTF8)


def _misshapen(
    body: bytes, error: ValidationError | RecursionError, secrets: Sequence[str]
) -> StashAnswerError:
    with contextlib.suppress(RecursionError):
        try:
            loaded(body)
        except NotJson:
            return _broken()
    why = misfit(error, secrets) if isinstance(error, ValidationError) else TOO_DEEP
    return StashMisfitError(
        f"Stash's answer does not fit at {why}.",
        "This version of stash-skills and that server do not go together: update the older one.",
        reached=True,
    )


def _broken() -> StashAnswerError:
    return StashAnswerError(
        "Stash's answer is not whole JSON.", "Try again.", passing=True, reached=True
    )


def _foreign(answer: Answer, secrets: Sequence[str]) -> StashAnswerError:
    line = first_line(answer.body, secrets)
    if _is_html(answer) or _OWN_MARK not in answer.headers:
        return StashAnswerError(
            f"What answers is not Stash's API: {sentence(line)}", ADDRESS_FIX, reached=True
        )
    return StashAnswerError(
        f"Stash's answer is of another kind than expected: {sentence(line)}",
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
