"""What comes from outside cannot move a terminal's cursor, turn its writing or hide in it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stash_mcp.cli.characters import visible

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\x9b31mb\x7f", "a\\x9b31mb\\x7f"),
        ("invoice\u202egnp.exe", "invoice\\u202egnp.exe"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("half\ud800", "half\\ud800"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_what_moves_turns_or_hides_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\n",
        "Grüße, 日本, \U0001f600",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "❤\ufe0f",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters() | st.sampled_from(BIDI + "\x1b\u2029\ud800")))
def test_no_control_or_bidi_character_comes_through(text: str) -> None:
    shown = visible(text)
    assert not any(character in shown for character in BIDI)
    controls = {c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")}
    assert controls <= {"\n", "\t"}
