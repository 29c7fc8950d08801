"""What the real Claude Code runs and reads when a skill loads; the scan stops all of it."""

import json
from pathlib import Path

import pytest
from support.messages_api import Says, messages_api
from support.real_claude import Claude

from stash_mcp.skills.scan import find_active

# `{}` is the name of a file, one for each.
REFERENCES = (
    *("Read @{}", "@{}.", "@{}, then", "@{}#L1-2", "@{}/", '@"{}"', "Ask @{} please"),
    *(
        "x @(/../{}",
        "x @x(/../{}",
        "x @f(1)/../{}",
        "x @`q`/../{}",
        "x @[n]/../{}",
        "x @\u00e9/../{}",
    ),
    *("x @-/../{}", "x @@/../{}", "`npm i @{}`", "```\n@{}\n```", "<!-- @{} -->", "    @{}"),
    *(
        "x\u3002@{}",
        "x\u3001@{}",
        "x\uff1f@{}",
        "x\uff01@{}",
        "x\u2028@{}",
        "x\u00a0@{}",
        "x\ufeff@{}",
    ),
    *("x\v@{}", "x\r@{}", "$ARGUMENTS@{}", "x $ARGUMENTS@{}", 'x $ARGUMENTS@"{}"', "$1 @{}"),
)
NOT_REFERENCES = (
    *("`@{}`", "(@{})", "\\@{}", "a@{}", '"@{}"', "**@{}**", "<b>@{}", "-@{}", "\u2014@{}"),
    *("\u53c2\u7167@{}", "\uff1a@{}", "[@{}]"),
)
# `{}` is a command.
COMMANDS = (
    *("!`{}`", "Now: !`{}`", "```sh\n!`{}`\n```", "~~~\n!`{}`\n~~~", "`` !`{}` ``", "- !`{}`"),
    *("<!-- !`{}` -->", "> !`{}`", "x\u00a0!`{}`", "x\ufeff!`{}`", "$ARGUMENTS!`{}`"),
    *(
        "x $ARGUMENTS!`{}`",
        "x !$ARGUMENTS`{}`",
        "```!\n{}\n```",
        "````!\n{}\n````",
        "x ```! {} ```",
    ),
    *("```$ARGUMENTS!\n{}\n```", "   ```!\n   {}\n   ```"),
)
NOT_COMMANDS = ("a!`{}`", "\\!`{}`", "(!`{}`)", '"!`{}`"', "|!`{}`|", "**!`{}`**", "~~~!\n{}\n~~~")


def high(body: str) -> bool:
    return any(row.severity == "high" for row in find_active(body))


def loaded(root: Path, body: str, files: dict[str, str]) -> str:
    """All that the model got to read, of a session that begins with the skill."""
    root.mkdir()
    with messages_api(lambda _: Says("fine")) as api:
        claude = Claude.at(root, api.base_url, IS_SANDBOX="1")
        for name, text in files.items():
            (claude.project / name).write_text(text, encoding="utf-8")
        skill = claude.project / ".claude" / "skills" / "probe"
        skill.mkdir(parents=True)
        head = "---\nname: probe\ndescription: Probes.\n---\n\n"
        (skill / "SKILL.md").write_bytes((head + body).encode())
        claude.run("-p", "/probe", "--dangerously-skip-permissions")
        return json.dumps([request["messages"] for request in api.requests], ensure_ascii=False)


def test_every_reference_that_reads_a_file_is_stopped_and_no_other(tmp_path: Path) -> None:
    forms = [*REFERENCES, *NOT_REFERENCES]
    names = [f"file{number:02}" for number in range(len(forms))]
    lines = [form.replace("{}", name) for form, name in zip(forms, names, strict=True)]
    got = loaded(tmp_path / "a", "\n\n".join(lines), {name: f"inside-{name}" for name in names})
    read = {form: f"inside-{name}" in got for form, name in zip(forms, names, strict=True)}
    assert read == {form: form in REFERENCES for form in forms}
    assert {form: high(form.replace("{}", "name")) for form in forms} == read


@pytest.mark.parametrize("form", COMMANDS)
def test_every_command_that_is_run_is_stopped(tmp_path: Path, form: str) -> None:
    body = form.replace("{}", "echo M$((40+2))") + "\n"
    assert "M42" in loaded(tmp_path / "a", body, {})
    assert high(body)


def test_what_is_not_run_is_not_stopped(tmp_path: Path) -> None:
    body = "\n\n".join(form.replace("{}", "echo M$((40+2))") for form in NOT_COMMANDS)
    assert "M42" not in loaded(tmp_path / "a", body, {})
    assert not high(body)
