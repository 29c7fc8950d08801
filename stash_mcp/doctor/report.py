"""What a check says."""

from typing import Literal

from stash_mcp.models import Frozen

State = Literal["ok", "warning", "problem", "not checked"]


class Check(Frozen):
    """said: one line. fix: what to do, where there is something to do."""

    name: str
    state: State
    said: str
    fix: str | None = None


def ok(name: str, said: str, fix: str | None = None) -> Check:
    return Check(name=name, state="ok", said=said, fix=fix)


def warning(name: str, said: str, fix: str) -> Check:
    return Check(name=name, state="warning", said=said, fix=fix)


def problem(name: str, said: str, fix: str) -> Check:
    return Check(name=name, state="problem", said=said, fix=fix)


def not_checked(name: str, said: str, fix: str | None = None) -> Check:
    return Check(name=name, state="not checked", said=said, fix=fix)
