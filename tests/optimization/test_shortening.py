from hypothesis import given
from hypothesis import strategies as st

from stash_mcp.optimization.shortening import shorten


def test_a_short_text_stays_as_it_is() -> None:
    assert shorten("hello", 5) == "hello"


def test_the_middle_goes_and_is_marked() -> None:
    text = "START" + "x" * 1000 + "END"
    short = shorten(text, 200)
    assert short.startswith("START")
    assert short.endswith("END")
    assert "characters left out" in short


@given(st.text(max_size=400), st.integers(min_value=0, max_value=500))
def test_the_result_is_never_longer_than_the_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= max(limit, 0)
