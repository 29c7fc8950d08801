"""SKILL.md: exact text, round trips, the rules, and other parsers reading what we write."""

import contextlib

import pytest
import skills_ref.parser
import skills_ref.validator
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from stash_mcp.errors import SkillDocumentError
from stash_mcp.models import Skill
from stash_mcp.skills import document

PLAIN = Skill(
    name="refund-answers", description="Answer refund questions.", body="# Refunds\n\nBe kind."
)

NASTY_DESCRIPTIONS = [
    "Refunds: what to say",
    "Refunds # and returns",
    "It's 100% fine",
    "The customer's order: late",
    'Say "no" politely',
    'Don\'t say "no": explain',
    "C:\\temp is where it's kept: look",
    "yes",
    "Null",
    "12",
    "1e3",
    "0b1",
    "2024-01-01",
    "~",
    "- a list item",
    "? a key",
    "[a, b] and {c: d}",
    "&anchor *alias !tag %directive @at `tick`",
    "ends with a colon:",
    "| block",
    "> folded",
    "Grüße, 你好, 👩‍💻 🇫🇷 😀: ok",
    "'quoted'",
    '"quoted"',
    "'",
    "word " * 200 + "end: # '",
    "a  b   c",
    "\u00a0inside\u00a0spaces".strip(),
    "x: 'y' \"z\" 😀 \\n",
]


def assert_refused(text: str, *words: str) -> None:
    with pytest.raises(SkillDocumentError) as caught:
        document.parse(text)
    for word in words:
        assert word in str(caught.value)


# --- exact text ---


def test_the_document_is_frontmatter_a_blank_line_and_the_body_without_a_line_end_added() -> None:
    assert document.render(PLAIN) == (
        "---\nname: refund-answers\ndescription: Answer refund questions.\n---\n\n"
        "# Refunds\n\nBe kind."
    )


def test_whitespace_at_the_end_of_the_body_is_dropped_and_nothing_else() -> None:
    skill = PLAIN.model_copy(
        update={"body": "  indented\n\n````md\n```py\nx = 1\n```\n````\t\n\n "}
    )
    assert document.render(skill).endswith("---\n\n  indented\n\n````md\n```py\nx = 1\n```\n````")


def test_the_system_message_is_the_examples_own_prompt_then_the_skill_in_its_tags() -> None:
    block = f'<skill name="refund-answers">\n{document.render(PLAIN)}\n</skill>'
    assert document.system_message("You are helpful.", PLAIN) == f"You are helpful.\n\n{block}"
    assert block.endswith("\n\n# Refunds\n\nBe kind.\n</skill>")


@pytest.mark.parametrize("system", [None, ""])
def test_without_a_system_prompt_the_message_is_the_skill_alone(system: str | None) -> None:
    assert document.system_message(system, PLAIN).startswith('<skill name="refund-answers">\n---\n')


@pytest.mark.parametrize(
    ("description", "line"),
    [
        ("Answer: briefly", "description: 'Answer: briefly'"),
        ("It's about: orders", 'description: "It\'s about: orders"'),
        ('It\'s "it": really', "description: 'It''s \"it\": really'"),
        ("It's fine", "description: It's fine"),
        ("yes", "description: 'yes'"),
        ("Über 😀 alles", "description: Über 😀 alles"),
    ],
)
def test_a_description_is_quoted_only_where_it_must_be(description: str, line: str) -> None:
    text = document.render(PLAIN.model_copy(update={"description": description}))
    assert text.split("\n")[2] == line


# --- other parsers read the same ---

names = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,4}", fullmatch=True).filter(
    lambda name: not document.problems_with_name(name)
)
descriptions = st.one_of(
    st.sampled_from(NASTY_DESCRIPTIONS),
    st.text(min_size=1, max_size=1024),
    st.lists(
        st.sampled_from([": ", "#", "'", '"', "\\", "é", "😀", "- ", "x", "no", "{", "|", "%"])
    ).map("".join),
).filter(lambda text: not document.problems_with_description(text))
bodies = (
    st.one_of(
        st.text(min_size=1),
        st.lists(st.sampled_from(["---\n", "```\n", "````\n", "\n", " ", "a", "\t", "# b\n"])).map(
            "".join
        ),
    )
    .map(str.rstrip)
    .filter(lambda text: not document.problems_with_body(text))
)
skills = st.builds(Skill, name=names, description=descriptions, body=bodies)


@given(skills)
@example(Skill(name="null", description="No", body="\n\n--- x\n---"))
@example(Skill(name="0x1f", description="a" * 1024, body="---- \n---"))
def test_every_valid_skill_comes_back_as_it_was(skill: Skill) -> None:
    text = document.render(skill)
    assert document.parse(text) == skill
    assert document.parse(document.render(document.parse(text))) == skill


@given(skills)
def test_the_reference_validator_accepts_every_valid_skill(skill: Skill) -> None:
    metadata, body = skills_ref.parser.parse_frontmatter(document.render(skill))
    assert skills_ref.validator.validate_metadata(metadata) == []
    assert metadata == {"name": skill.name, "description": skill.description}
    assert body == skill.body.strip()


@given(skills)
def test_yaml_1_2_and_1_1_parsers_read_the_same_two_texts(skill: Skill) -> None:
    frontmatter = document.render(skill).split("---", 2)[1]
    expected = {"name": skill.name, "description": skill.description}
    assert YAML(typ="safe", pure=True).load(frontmatter) == expected
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(frontmatter) == expected


@given(skills)
def test_a_parser_that_reads_line_by_line_finds_the_description_on_one_line(skill: Skill) -> None:
    lines = document.render(skill).split("\n")
    assert [line.split(":")[0] for line in lines[1:3]] == ["name", "description"]
    assert lines[3] == "---"
    value = lines[2].removeprefix("description: ")
    if value[0] == value[-1] == "'":
        value = value[1:-1].replace("''", "'")
    elif value[0] == value[-1] == '"':
        value = value[1:-1]
    assert value == skill.description


# --- reading ---


def test_other_keys_are_named_and_never_written_again() -> None:
    text = (
        "---\nname: x\nlicense: MIT\ndescription: y\nmetadata:\n  a: b\nhooks: [z]\n---\n\nBody\n"
    )
    read = document.read_document(text)
    assert read.other_keys == ("license", "metadata", "hooks")
    assert document.render(read.skill) == "---\nname: x\ndescription: y\n---\n\nBody"


def test_a_document_from_windows_and_one_without_the_blank_line_are_read() -> None:
    expected = Skill(name="x", description="y", body="One\n\nTwo")
    assert (
        document.parse("---\r\nname: x\r\ndescription: y\r\n---\r\n\r\nOne\r\n\r\nTwo\r\n")
        == expected
    )
    assert document.parse("---\nname: x\ndescription: >-\n  y\n--- \nOne\n\nTwo") == expected


def test_a_number_as_a_name_is_text() -> None:
    assert document.parse("---\nname: 123\ndescription: 1e3\n---\n\nx").name == "123"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no frontmatter"),
        ("# Just Markdown", "no frontmatter"),
        ("\ufeff---\nname: x\ndescription: y\n---\n\nb", "byte order mark"),
        ("\n---\nname: x\ndescription: y\n---\n\nb", "blank line"),
        ("---\nname: x\ndescription: y\n---\n\nb\0", "NUL"),
        ("---\nname: x\ndescription: y\n\nb", "between two lines"),
        ("---\nname: x\ndescription: a: b\n---\n\nb", "line 3"),
        ("---\nname: x\nname: y\n---\n\nb", "YAML"),
        ("---\n- a\n---\n\nb", "key: value"),
        ("---\n---\n\nb", "key: value"),
        ("---\ndescription: y\n---\n\nb", "'name'"),
        ("---\nname: x\n---\n\nb", "'description'"),
        ("---\nname: [x]\ndescription: y\n---\n\nb", "'name'"),
        ("---\nname: x\ndescription: y\n---\n\n", "body is empty"),
        ("---\nname: x\ndescription: y\n---\n\na\ud800b", "U+D800"),
        (f"---\nname: {'[' * 400}\n---\n\nb", "YAML"),
        (f"---\nname: {'[' * 5000}\n---\n\nb", "brackets"),
        (f"---\nname: x\nmore: {'{a: [' * 400}\n---\n\nb", "brackets"),
    ],
)
def test_a_text_that_is_no_skill_is_refused_with_the_reason(text: str, word: str) -> None:
    assert_refused(text, word)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert_refused(
        "---\nname: -Bad_\ndescription: <b>x</b>\n---\n\n---\na: b\n---\n",
        "'B', '_'",
        "starts or ends with a hyphen",
        "'<b>'",
        "starts with a line '---'",
    )


YAML_PIECES = [
    *("---", "\n", "name: x", "description: ", "&a ", "*a", "[", "{", ": ", "!!int ", "'", "? "),
    *("\r", "\x85", "<<", "- ", "#", "\t", "%YAML 9", "\ud800"),
]


@given(st.lists(st.sampled_from(YAML_PIECES)).map("".join))
def test_no_frontmatter_raises_anything_but_our_own_error(text: str) -> None:
    with contextlib.suppress(SkillDocumentError):
        document.parse(f"---\n{text}")


# --- the rules ---


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        ("a" * 65, "65 characters"),
        ("Refunds", "'R'"),
        ("a b", "' '"),
        ("a_b", "'_'"),
        ("../a", "'.', '/'"),
        ("a\n", r"'\n'"),
        ("é", "'é'"),
        ("\u0661", "only a-z"),
        ("-a", "hyphen"),
        ("a-", "hyphen"),
        ("a--b", "two hyphens"),
        ("my-claude-helper", "'claude'"),
        ("anthropic", "'anthropic'"),
        ("synced", "reserved"),
        ("con", "reserved"),
        ("aux", "reserved"),
        ("lpt1", "reserved"),
    ],
)
def test_a_bad_name_is_refused_in_words(name: str, word: str) -> None:
    assert any(word in problem for problem in document.problems_with_name(name))
    with pytest.raises(SkillDocumentError, match="lower-case letters"):
        document.check_name(name)


@pytest.mark.parametrize("name", ["a", "0", "a-b-c", "a" * 64, "console", "com10", "nul-values"])
def test_a_good_name_is_taken(name: str) -> None:
    document.check_name(name)
    assert document.problems_with_name(name) == ()


@pytest.mark.parametrize(
    ("description", "word"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a" * 1025, "1025 characters"),
        ("a\nb", "line break"),
        ("a\u2028b", "line break"),
        ("a\tb", "tab"),
        (" a", "space"),
        ("a\n", "space"),
        ("use <skill name='x'>", "XML tag"),
        ("</p> x", "XML tag"),
        ("a --- b", "'---'"),
        ("a\x07b", "U+0007"),
        ("a\x85b", "U+0085"),
        ("a\uffffb", "U+FFFF"),
        ("\u200bhidden", "invisible"),
        ("a\u202eb", "invisible"),
        ("a\U000e0041b", "invisible"),
    ],
)
def test_a_bad_description_is_refused_in_words(description: str, word: str) -> None:
    assert any(word in problem for problem in document.problems_with_description(description))
    with pytest.raises(SkillDocumentError, match="one line"):
        document.check_description(description)


@pytest.mark.parametrize("description", [*NASTY_DESCRIPTIONS, "x < y", "a" * 1024, "a -- b -> c"])
def test_a_good_description_is_taken(description: str) -> None:
    document.check_description(description)
    assert document.problems_with_description(description) == ()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("a\n" * 500 + "a", "501 lines"),
        ("a" * 20_001, "20001 characters"),
        ("---\nname: x\n---\n\nBody", "'---'"),
        ("\n\n--- \nname: x", "'---'"),
        ("a\0b", "U+0000"),
        ("a\rb", "U+000D"),
        ("a\x1bb", "U+001B"),
    ],
)
def test_a_bad_body_is_refused_in_words(body: str, word: str) -> None:
    assert any(word in problem for problem in document.problems_with_body(body))
    with pytest.raises(SkillDocumentError, match="Markdown"):
        document.check_body(body)


@pytest.mark.parametrize("body", ["a\n" * 500, "a" * 20_000, "# A\n\n---\n\nb\tc", "--- a", "----"])
def test_a_good_body_is_taken(body: str) -> None:
    document.check_body(body)
    assert document.problems_with_body(body) == ()


def test_a_skill_that_breaks_a_rule_is_not_written() -> None:
    with pytest.raises(SkillDocumentError, match="two hyphens"):
        document.render(PLAIN.model_copy(update={"name": "a--b"}))
