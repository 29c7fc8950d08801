"""The HTTP server's token: made once, kept private, never shown."""

import os
from pathlib import Path

import pytest

from stash_mcp.errors import InputError, StorageError
from stash_mcp.server.http_token import token_of
from stash_mcp.settings import http_token

MADE = "made-of-32-random-characters-0001"


def made() -> str:
    return MADE


def never() -> str:
    raise AssertionError("there is a token already")


def test_it_is_made_once_and_used_again(tmp_path: Path) -> None:
    path = tmp_path / "home" / "http-token"
    first = token_of(None, path, made)
    assert (first.value, first.path) == (MADE, path)
    assert token_of(None, path, never) == first
    assert path.read_text("utf-8").strip() == MADE


@pytest.mark.skipif(os.name != "posix", reason="Windows has no modes")
@pytest.mark.parametrize("mode", [None, 0o644])
def test_only_its_owner_can_read_the_file(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "home" / "http-token"
    token_of(None, path, made)
    if mode is not None:
        path.chmod(mode)
        token_of(None, path, never)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_environments_goes_first_and_is_not_written(tmp_path: Path) -> None:
    token = token_of("given-by-the-environment", tmp_path / "http-token", never)
    assert (token.value, token.path) == ("given-by-the-environment", None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", ["short-secret", "a long secret with spaces", "sécret" * 5])
def test_one_that_is_easily_guessed_or_no_header_takes_is_refused_unshown(
    tmp_path: Path, given: str
) -> None:
    with pytest.raises(InputError, match="STASH_MCP_TOKEN") as caught:
        token_of(given, tmp_path / "http-token", never)
    assert given not in str(caught.value)


@pytest.mark.parametrize("content", ["", "\n", "half", "two words that are long enough"])
def test_a_damaged_file_is_refused_and_not_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "http-token"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StorageError, match="Remove that file"):
        token_of(None, path, never)
    assert path.read_text("utf-8") == content


def test_it_does_not_stand_in_what_is_printed_of_it(tmp_path: Path) -> None:
    assert MADE not in repr(token_of(MADE, tmp_path, never))


@pytest.mark.parametrize(
    ("value", "read"),
    [(None, None), ("", None), ("${STASH_MCP_TOKEN}", None), (" secret\n", "secret")],
)
def test_a_variable_that_was_not_filled_in_is_no_token(value: str | None, read: str | None) -> None:
    assert http_token({} if value is None else {"STASH_MCP_TOKEN": value}) == read
