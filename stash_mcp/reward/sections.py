"""Input version 3 as token ids: six sections, each with a fixed share of the model's context.

The shares do not depend on what the sections hold: a longer reply must not push out what was seen
beside a shorter one. As far as Stash's public source describes it.
"""

import json
from typing import Any

from stash_mcp.errors import CheckpointError
from stash_mcp.rendering import SECTIONS_PREFIX

# In per cent of the room for content, in the order in which the model reads them.
SHARES = {"instructions": 24, "task": 14, "request": 14, "history": 22, "action": 20, "rubric": 6}
_OMITTED = " [omitted] "
_MOST_SPARE = 32
"""Tokens kept free: where two sections meet, other tokens may come about."""


def encode_sections(tokenizer: Any, text: str, max_length: int) -> tuple[int, ...]:
    """The token ids of a text that `rendering.render_sections` made.

    CheckpointError for another text, and for a model whose context the sections do not fit into.
    """
    sections = _sections(text)
    headers = {name: _plain(tokenizer, f"\n[{name}]\n") for name in SHARES}
    fixed = sum(map(len, headers.values())) + tokenizer.num_special_tokens_to_add(pair=False)
    room = max_length - fixed - min(_MOST_SPARE, max_length // 8)
    if room < len(SHARES):
        raise _does_not_fit(max_length)
    ids: list[int] = []
    for name, share in SHARES.items():
        content = _plain(tokenizer, sections[name])
        budget = max(1, room * share // 100)
        ids += headers[name] + _shortened(tokenizer, content, budget, only_end=name == "history")
    # Read again as one text: so the model was trained.
    joined = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    encoded = tuple(tokenizer.encode(joined, add_special_tokens=True))
    if len(encoded) > max_length:
        raise _does_not_fit(max_length)
    return encoded


def _sections(text: str) -> dict[str, str]:
    if not text.startswith(SECTIONS_PREFIX):
        raise CheckpointError(
            "This reward model reads input version 3, and was given another text.",
            "Report it: no text of yours is at fault.",
        )
    sections: dict[str, str] = json.loads(text.removeprefix(SECTIONS_PREFIX))
    return sections


def _plain(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def _shortened(tokenizer: Any, ids: list[int], budget: int, *, only_end: bool) -> list[int]:
    """At most `budget` of the ids: their end, or their start and end, with a mark at the gap."""
    if len(ids) <= budget:
        return ids
    mark = _plain(tokenizer, _OMITTED)[:budget]
    keep = budget - len(mark)
    head = 0 if only_end else keep // 2
    return [*ids[:head], *mark, *ids[len(ids) - (keep - head) :]]


def _does_not_fit(max_length: int) -> CheckpointError:
    return CheckpointError(
        f"The sections of input version 3 do not fit into this reward model's {max_length} tokens.",
        "Its files are not as they were trained: take them from Stash again.",
    )
