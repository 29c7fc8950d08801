import pytest

from stash_mcp.redaction import MASK, redact


def test_given_secrets_are_masked_wherever_they_stand() -> None:
    assert redact("key=hunter2hunter2; again hunter2hunter2", ["hunter2hunter2"]) == (
        f"key={MASK}; again {MASK}"
    )


def test_a_secret_that_holds_another_is_masked_whole() -> None:
    assert redact("abcdefgh12345678", ["abcdefgh", "abcdefgh12345678"]) == MASK


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdef0123456789",
        "sk-ant-api03-abcdefghij",
        "sk-abc***********wxyz",
        "hf_abcdefghijklmnop",
        "gsk_abcdefghijklmnop",
        "AIzaSyA0123456789abcdefghij0123456789ab",
        "Bearer abcdefghijklmnop",
    ],
)
def test_what_looks_like_a_key_is_masked_even_if_it_is_not_ours(key: str) -> None:
    masked = redact(f"Incorrect API key provided: {key}.")
    assert key.removeprefix("Bearer ") not in masked
    assert MASK in masked


def test_ordinary_words_stay() -> None:
    text = "The task-model openai/gpt-5 at http://127.0.0.1:8000/v1 kept failing; ask-again."
    assert redact(text) == text
