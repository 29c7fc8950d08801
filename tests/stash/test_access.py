"""Where the URL and the key come from."""

import json
from pathlib import Path

import pytest

from stash_mcp.errors import InputError
from stash_mcp.settings import DEFAULT_STASH_URL, StashAccess, stash_access


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "person"


def configure(home: Path, content: object) -> Path:
    path = home / ".stash" / "config.json"
    path.parent.mkdir(parents=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def access(home: Path, **environ: str) -> StashAccess:
    return stash_access(environ, home)


FILE = {"base_url": "https://own.example", "api_key": "mc_file", "username": "ada", "scope": "all"}


def test_without_anything_the_default_address_has_no_key(home: Path) -> None:
    found = access(home)
    assert (found.base_url, found.api_key) == (DEFAULT_STASH_URL, None)
    assert found.key_from == "no key is set"


def test_the_environment_wins_over_the_file(home: Path) -> None:
    configure(home, FILE)
    found = access(home, STASH_URL="https://other.example", STASH_API_KEY="mc_env")
    assert (found.base_url, found.api_key) == ("https://other.example", "mc_env")


def test_the_file_fills_in_what_the_environment_lacks(home: Path) -> None:
    path = configure(home, FILE)
    before = path.read_bytes()
    assert (access(home).base_url, access(home).api_key) == ("https://own.example", "mc_file")
    assert access(home, STASH_API_KEY="mc_env").base_url == "https://own.example"
    assert path.read_bytes() == before


def test_the_files_key_does_not_go_to_another_address(home: Path) -> None:
    configure(home, FILE)
    found = access(home, STASH_URL="https://evil.example")
    assert found.api_key is None
    assert "another address" in found.key_from


def test_the_files_key_goes_to_its_own_address_if_the_environment_names_the_same(
    home: Path,
) -> None:
    configure(home, FILE)
    assert access(home, STASH_URL="https://OWN.example/").api_key == "mc_file"


def test_a_key_in_a_file_without_an_address_is_for_the_default_one(home: Path) -> None:
    configure(home, {"api_key": "mc_file"})
    assert access(home).api_key == "mc_file"
    assert access(home, STASH_URL="http://127.0.0.1:8000").api_key is None


def test_the_plugins_configuration_counts_as_the_environment(home: Path) -> None:
    found = access(
        home,
        CLAUDE_PLUGIN_OPTION_STASH_URL="https://team.example",
        CLAUDE_PLUGIN_OPTION_STASH_API_KEY="mc_plugin",
    )
    assert (found.base_url, found.api_key) == ("https://team.example", "mc_plugin")


@pytest.mark.parametrize("value", ["", " ", "${user_config.stash_api_key}", "${STASH_API_KEY:-}"])
def test_what_was_not_filled_in_counts_as_unset(home: Path, value: str) -> None:
    configure(home, FILE)
    assert access(home, STASH_API_KEY=value).api_key == "mc_file"


@pytest.mark.parametrize("key", ["mc_a b", "mc_a\r\nX-Evil: 1", "mc_ключ"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(home: Path, key: str) -> None:
    with pytest.raises(InputError) as caught:
        access(home, STASH_API_KEY=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("content", ["{", "\x00", "[" * 70_000])
def test_a_broken_file_is_named_where_it_is_needed(home: Path, content: str) -> None:
    path = configure(home, content)
    with pytest.raises(InputError) as caught:
        access(home)
    assert str(path) in caught.value.problem
    whole = access(home, STASH_URL="https://a.example", STASH_API_KEY="mc_env")
    assert whole.api_key == "mc_env"


@pytest.mark.parametrize("content", [[], "null", {"api_key": 7, "base_url": None}])
def test_a_file_of_another_shape_holds_nothing(home: Path, content: object) -> None:
    configure(home, content)
    assert access(home).api_key is None


def test_the_key_is_in_no_representation() -> None:
    assert "mc_secret" not in repr(StashAccess("https://a", "mc_secret", "x", "y"))
