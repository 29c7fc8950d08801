"""What is active in a body, what is not, and words made inert."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stash_mcp.skills.document import problems_with_body
from stash_mcp.skills.scan import RULES, find_active, find_constructs, neutralise

COMMANDS = [
    "!`id`",
    "Run this: !`id`",
    "\t!`id`",
    "```sh\n!`id`\n```",
    "    !`id`",
    "`` !`id` ``",
    "<!-- !`id` -->",
    "- !`id`",
    "1. !`id`",
    "> !`id`",
    "!`id\nwhoami`",
    "a\u00a0!`id`",
    "a\ufeff!`id`",
    "x\u2028!`id`",
]
FENCES = [
    "```!\nid\n```",
    "````!\nid\n````",
    "   ```!\nid\n```",
    "- ```!\n  id",
    "```!bash\nid",
    "``` !\nid",
]
SURE_REFERENCES = [
    "@/etc/passwd",
    "See @~/.ssh/id_rsa",
    "@../secret",
    "@./notes",
    "@.env",
    "@src/",
    "@src/config",
    "@README.md",
    "Read @notes.txt.",
    "@notes.md#L10-20",
    "@notes.md's end",
    "```\n@/etc/hosts\n```",
    "<!-- @/etc/hosts -->",
    "- @~/x",
    "@C:\\Users\\x",
    '@"/etc/a b"',
    "@id_rsa.key, please",
    "@property",
    "@app.route('/x')",
    "Ask @alice",
    "npm install @types/node",
    "@x(/../../etc/hostname",
    "`npm i @scope/name`",
    "x\u3002@secret",
    "$1@secret",
    "@$1",
    "@" + "\u00e9" * 400 + "/../secret",
]
HIDDEN = [
    *("a\u202eb", "a\u200bb", "\ufeffa", "a\u2066b", "a\U000e0041b"),
    *("a\u200db", "a\ufe01", "x\u2060y", "a\ufe0f", "\U0001f44d\ufe0f\ufe0e", "-\u00ad-"),
    *("\u304b\u200c\u304b", "\U0001f44d\u200c\U0001f44d", "a\u00ad"),
]

INERT = [
    "Great!",
    "Great! `code` follows",
    "a!`id`",
    "\\!`id`",
    "(!`id`)",
    '"!`id`"',
    "|!`id`|",
    "**!`id`**",
    "x=!`id`",
    "~~~!\nid\n~~~",
    "![image](a.png)",
    "if (!ready) { }",
    "```sh\necho hi!\n```",
    "mail a@b.com",
    "`@path/to`",
    "(@path/to)",
    "\\@path/to",
    "me@../x",
    "at @ noon",
    "costs 5$ or US$ 5",
    "$HOME and $x",
    "$(date)",
    "a -- b --> c",
    "👩‍💻 ❤️ 🏳️‍🌈",
    "می‌خواهم",
    "क्‍ष",
    "co\u00adoperate",
    "1\ufe0f\u20e3 \u2139\ufe0f \u203c\ufe0f",
]

FRAGMENTS = [
    *("!", "`", "```", "````", "@", "/", "~", "..", "$", "1", "{", "}", "ARGUMENTS", "a", ".md"),
    *(
        "<",
        "!--",
        "-->",
        " ",
        "\n",
        "\t",
        "\r",
        "\\",
        "(",
        "\u2028",
        "\u00a0",
        "\0",
        "\x1c",
        "\x85",
    ),
    *("[", "]:", "#", "\u3002", "\u00ad", "\u200c", "\u0645", "[0]"),
    *("\u200b", "\u200d", "\ufe01", "\ufe0f", "👩", "\u202e", "\ufeff", "\U000e0041", "\uffff"),
]


def rules(text: str, severity: str | None = None) -> set[str]:
    return {f.rule for f in find_active(text) if severity in (None, f.severity)}


@pytest.mark.parametrize("body", COMMANDS)
def test_a_command_is_found_wherever_it_would_run(body: str) -> None:
    assert "shell-command" in rules(body, "high")


@pytest.mark.parametrize("body", FENCES)
def test_a_fence_that_runs_is_found(body: str) -> None:
    assert "shell-fence" in rules(body, "high")


@pytest.mark.parametrize("body", SURE_REFERENCES)
def test_a_reference_to_a_file_or_folder_is_high(body: str) -> None:
    assert "file-reference" in rules(body, "high")


@pytest.mark.parametrize("body", ["@\u00e9", "@\u65e5\u672c", "@-"])
def test_an_at_sign_before_what_names_no_file_is_low(body: str) -> None:
    assert [(f.rule, f.severity) for f in find_active(body)] == [("file-reference", "low")]


@pytest.mark.parametrize("body", ["npm i @/etc/passwd", "yarn @.env", "npx @src/keys.pem"])
def test_a_package_managers_name_does_not_excuse_a_file(body: str) -> None:
    assert "file-reference" in rules(body, "high")


@pytest.mark.parametrize(
    "body", ["$ARGUMENTS", "x$ARGUMENTS[0]y", "${CLAUDE_SKILL_DIR}", "${ARGUMENTS}", "${1}"]
)
def test_a_substitution_that_is_meant_for_the_agent_is_high(body: str) -> None:
    assert [(f.rule, f.severity) for f in find_active(body)] == [("substitution", "high")]


@pytest.mark.parametrize("body", ["x$1y", "${HOME}", "`$0`", "costs $5.00", "`/orders/${id}`"])
def test_a_price_and_a_variable_that_nothing_replaces_are_low(body: str) -> None:
    assert [(f.rule, f.severity) for f in find_active(body)] == [("substitution", "low")]


BESIDE = ["$ARGUMENTS", "$1", "$12", "$ARGUMENTS[0]", "${CLAUDE_EFFORT}", "${x}", "$1$2"]


@pytest.mark.parametrize("replaced", BESIDE)
@pytest.mark.parametrize(
    ("rule", "form"),
    [
        ("shell-command", "{}!`id`"),
        ("shell-command", "x{}!`id`"),
        ("shell-command", "x !{}`id`"),
        ("shell-command", "x{}!{}`id`"),
        ("shell-fence", "```{}!\nid\n```"),
        ("shell-fence", "`{}``!\nid\n```"),
        ("file-reference", "{}@secret"),
        ("file-reference", "x{}@/etc/hostname"),
        ("file-reference", 'x{}@"/etc/hostname"'),
    ],
)
def test_what_is_replaced_on_load_hides_no_construct_beside_it(
    rule: str, form: str, replaced: str
) -> None:
    assert rule in rules(form.replace("{}", replaced), "high")
    assert find_constructs(neutralise(form.replace("{}", replaced))) == ()


@pytest.mark.parametrize("body", HIDDEN)
def test_hidden_characters_are_high(body: str) -> None:
    assert rules(body) == {"hidden-unicode"}
    assert rules(body, "high") == {"hidden-unicode"}


def test_an_html_comment_is_low() -> None:
    assert [(f.rule, f.severity) for f in find_active("a <!-- b -->")] == [("html-comment", "low")]


@pytest.mark.parametrize("body", INERT)
def test_what_does_not_run_is_not_flagged(body: str) -> None:
    assert find_active(body) == ()


def test_findings_have_their_line_the_reason_and_come_in_order() -> None:
    found = find_active("fine\n@bob and @/etc/x\n\n!`a` !`b`\n")
    assert [(f.line, f.rule, f.severity) for f in found] == [
        (2, "file-reference", "high"),
        (4, "shell-command", "high"),
    ]
    assert all(finding.why.endswith(".") for finding in found)
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("comment", "inert"),
    [
        ("Great! Mail a@b.com.", "Great! Mail a@b.com."),
        ("Wow!!! `x` isn't (@bob)", "Wow!!! `x` isn't (@bob)"),
        ("Run !`id` now", "Run \\!`id` now"),
        ("ask @alice", "ask \\@alice"),
        ("it is $5", "it is $ 5"),
        ("```!\nid\n```", "```text !\nid\n```"),
        ("```!`id`", "```text \\!`id`"),
        ("[//]: # (x)", "\\[//]: # (x)"),
        ("$ARGUMENTS!`id`", "$ ARGUMENTS!`id`"),
        ("x\u3002@bob", "x\u3002\\@bob"),
        ("see <!-- x -->", "see <\\!-- x -->"),
        ("a\u200bb\r\nc\rd\0", "ab\nc\nd"),
        ("!\u200b`id`", "\\!`id`"),
        ("👩‍💻 fine", "👩‍💻 fine"),
    ],
)
def test_a_comment_is_made_inert_with_the_least_change(comment: str, inert: str) -> None:
    assert neutralise(comment) == inert


@pytest.mark.parametrize("text", INERT)
def test_inert_words_are_not_touched(text: str) -> None:
    assert neutralise(text) == text


@given(st.one_of(st.lists(st.sampled_from(FRAGMENTS)).map("".join), st.text()))
@example("`" * 3 + "!" * 3 + "`" * 3 + "!")
@example("👩\u200d\u200b💻")
@example("👩\ufe01\u200d💻")
def test_nothing_is_active_after_neutralising_and_doing_it_twice_changes_nothing(text: str) -> None:
    inert = neutralise(text)
    assert find_constructs(inert) == ()
    assert neutralise(inert) == inert
    assert not any("control character" in problem for problem in problems_with_body(inert))
