"""Foreign words made fit to be shown, and what is said of what could not be read."""

from collections.abc import Sequence

from pydantic import ValidationError

from stash_mcp.redaction import redact
from stash_mcp.stash.shapes import Unread

TOO_DEEP = "`the whole`: it is nested too deeply"
_SHOWN_CHARACTERS = 300
_NAMED = 5


def shown(text: str, secrets: Sequence[str]) -> str:
    """Foreign words on one line, without keys and without what would move a terminal's cursor."""
    clean = redact(" ".join(text.split()), secrets)
    clean = "".join(character if character.isprintable() else "?" for character in clean)
    return clean if len(clean) <= _SHOWN_CHARACTERS else f"{clean[:_SHOWN_CHARACTERS]}…"


def misfit(error: ValidationError, secrets: Sequence[str]) -> str:
    """What does not fit, without a full stop: the first field of it, and why."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        reason = str(error.errors(include_url=False, include_input=False)[0]["ctx"]["error"])
        return f"`the whole`: {reason.partition(' at line')[0]}"
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    return shown(f"`{place}`: {first['msg']}", secrets)


def left_out(unread: Sequence[Unread], noun: str, prefix: str = "") -> str | None:
    """That these were left out of a list, with their ids and reasons; None for none.

    noun: of one of them. prefix: of their ids as people see them.
    """
    if not unread:
        return None
    named = "; ".join(prefix * bool(row.id) + row.named for row in unread[:_NAMED])
    more = f"; and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
    count = f"1 {noun}" if len(unread) == 1 else f"{len(unread):,} {noun}s"
    are, it = ("is", "it") if len(unread) == 1 else ("are", "them")
    return (
        f"{count} of Stash could not be read and {are} left out ({named}{more}). "
        f"Look at {it} at Stash; a newer version of stash-skills may be able to read {it}."
    )
