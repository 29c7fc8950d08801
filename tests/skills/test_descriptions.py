"""Hundreds of descriptions: what the product writes is read back as it was by other parsers."""

from collections import Counter

import skills_ref.parser
import skills_ref.validator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stash_mcp.errors import SkillDocumentError
from stash_mcp.models import Skill
from stash_mcp.skills.document import render

EXAMPLES = 2_000
LEAST_ACCEPTED = 0.7

WORDS = st.sampled_from(
    [
        *(
            "refunds",
            "Answers",
            "it's",
            '"so"',
            "naïve",
            "größer",
            "退款",
            "возврат",
            "طلب",
            "👩‍💻",
            "🇫🇷",
        ),
        *(
            "yes",
            "No",
            "null",
            "~",
            "true",
            "off",
            "1e3",
            "0x10",
            "0o7",
            "1_000",
            ".5",
            "-1",
            "1:30",
        ),
        *(
            "2024-01-01",
            "2024-01-01T00:00:00Z",
            "<<",
            "=",
            ".inf",
            ".NaN",
            "!!int",
            "%TAG",
            "--",
            "...",
        ),
        *(":", ": ", "a: b", "::", "#", " #", "#tag", "-", "- ", "?", "? ", "|", ">", ">-", "&a"),
        *(
            "*b",
            "!c",
            "%d",
            "@e",
            "`f`",
            "[",
            "]",
            "{",
            "}",
            ",",
            "'",
            "''",
            '"',
            "\\",
            "\\n",
            "\\u0041",
        ),
        *(
            "x < y",
            "a -> b",
            "\u00a0",
            "\u3000",
            "e\u0301",
            "ß",
            "\ufe0f",
            "\U0001f9d1\u200d\U0001f33e",
        ),
    ]
)
LOOKALIKES = st.sampled_from(
    [
        "yes",
        "No",
        "null",
        "~",
        "1e3",
        "0x10",
        "0b1",
        "1_000",
        "on",
        "2024-01-01",
        "-",
        "?",
        "12e03",
        "='",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=12).map(" ".join).map(str.strip)
GLUED = st.lists(WORDS, min_size=1, max_size=8).map("".join).map(str.strip)
LETTERS = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp", "Cn")), min_size=1
)
LONG = st.integers(900, 1050).map(lambda length: ("Ask: 'why'? #1 " * 80)[:length].strip())
# What is refused: line breaks, tabs, blanks at an end, control and invisible characters, marks.
SPOILT = st.builds(
    lambda before, text, after: before + text + after,
    st.sampled_from(["", " ", "\n", "\t", "\ufeff"]),
    SENTENCES,
    st.sampled_from(
        [
            " ",
            "\n",
            "\r\n",
            "\u2028",
            "\x85",
            "\x00",
            "\u200b",
            "\u202e",
            "<b>x</b>",
            "---",
            "\ud800",
        ]
    ),
)
USUAL = st.one_of(SENTENCES, GLUED, LETTERS, LOOKALIKES, LONG)
DESCRIPTIONS = st.integers(0, 7).flatmap(lambda number: USUAL if number else SPOILT)

seen: Counter[str] = Counter()


@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(DESCRIPTIONS)
def reads_back(description: str) -> None:
    skill = Skill(name="refund-answers", description=description, body="Be kind.")
    try:
        text = render(skill)
    except SkillDocumentError:
        seen["refused"] += 1
        return
    seen["accepted"] += 1
    expected = {"name": skill.name, "description": description}
    metadata, body = skills_ref.parser.parse_frontmatter(text)
    assert skills_ref.validator.validate_metadata(metadata) == []
    assert metadata == expected
    assert body == "Be kind."
    assert YAML(typ="safe", pure=True).load(text.split("\n---\n", 1)[0][4:]) == expected


def test_every_description_is_read_back_by_others_or_refused_and_most_are_taken() -> None:
    seen.clear()
    reads_back()
    assert seen.total() >= EXAMPLES
    assert seen["accepted"] / seen.total() >= LEAST_ACCEPTED
    assert seen["refused"] > 0
