"""What is in a person's files survives byte for byte, apart from our entry."""

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stash_mcp.agents import jsonc
from stash_mcp.agents.table import AGENTS, Agent, config_file

JSON_FILES = {
    "indented by two": """\
{
  "theme": "dark",
  "KEY": {
    "other": {
      "command": "npx",
      "args": ["-y", "other"],
      "env": {"TOKEN": "s3cret"}
    }
  },
  "after": [1, 2.50, 1e5]
}
""",
    "indented by tabs, Windows line ends": (
        '{\r\n\t"KEY": {\r\n\t\t"other": {"url": "https://x/y"}\r\n\t}\r\n}\r\n'
    ),
    "on one line, no line end": '{"KEY": {"other": {"command": "a"}}, "z": "\\u00e9 ü"}',
    "only ours to come": '{\n    "KEY": {}\n}\n',
    "byte order mark": '\ufeff{\n  "KEY": {\n    "other": {"command": "a"}\n  }\n}\n',
}
COMMENTED_FILES = {
    "comments everywhere": """\
// at the top
{
  // before the servers
  "KEY": { // beside
    /* a block,
       of two lines */
    "other": {
      "command": "npx" // inside "quotes" // twice
    } // after the last one
    // and below it
  },
  "url": "https://not/a/comment", /* ok */
}
// at the end
""",
    "trailing commas": '{\n\t"KEY": {\n\t\t"other": {"command": "a",}, // note\n\t},\n}\n',
    "nothing but a comment": '{\n  "KEY": {\n    // none yet\n  }\n}\n',
    "on one line": '{ "KEY": { "other": { "command": "a" }, /* last */ } }\n',
}
TOML_FILES = {
    "another server below and above": """\
# my settings
model = "gpt-5"    # the best

[KEY.first]
command = "npx"
args = [
  "-y",  # yes
  "first",
]

# about the profiles
[profiles.fast]
model = "o3"
""",
    "Windows line ends": '[KEY.first]\r\ncommand = "npx"\r\n',
    "no servers": 'title = """\n[KEY.stash-skills]\n"""\n',
    "empty": "",
    "inline": 'KEY = { first = { command = "npx" } } # all of them\n',
    "a table with inline ones": '[KEY]\nfirst = { command = "npx" }\n\n[other]\na = 1\n',
    "dotted": 'KEY.first.command = "npx"\nb = 2\n',
}


def cases() -> list[Any]:
    found = []
    for row in AGENTS.values():
        files = TOML_FILES if row.format == "toml" else JSON_FILES
        files = files | (COMMENTED_FILES if row.format == "jsonc" else {})
        found += [
            pytest.param(row, scope, text.replace("KEY", row.key), id=f"{row.id}-{scope}-{name}")
            for name, text in files.items()
            for scope in ("user", "project")
            if not (row.by_command and scope == "user")
        ]
    return found


def says(row: Agent, path: Path) -> Any:
    text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    return tomllib.loads(text) if row.format == "toml" else jsonc.parse(text, comments=True).value


@pytest.mark.parametrize(("row", "scope", "text"), cases())
def test_everything_else_in_a_file_survives(desk, row: Agent, scope: Any, text: str) -> None:
    path = config_file(row, desk.settings, scope)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    before = says(row, path)
    plan = desk.plan(row.id, scope=scope)
    assert path.read_bytes() == text.encode()
    done = desk.do(row.id, scope=scope)
    assert (done.action, done.problem) == ("added", None)
    assert done.diff == plan.diff
    after = says(row, path)
    assert "/opt/env/bin/stash-skills" in str(after[row.key].pop("stash-skills"))
    assert after == {**before, row.key: before.get(row.key, {})} or after == before
    assert lost(text, path.read_bytes().decode()) == ""
    assert done.backup is None or done.backup.read_bytes() == text.encode()

    written = path.read_bytes()
    again = desk.do(row.id, scope=scope)
    assert (again.action, again.backup, path.read_bytes()) == ("unchanged", None, written)

    assert desk.do(row.id, scope=scope, remove=True).action == "removed"
    assert path.read_bytes() == text.encode()
    assert desk.do(row.id, scope=scope, remove=True).action == "absent"


def lost(before: str, after: str) -> str:
    """Characters of `before` that are gone from `after`."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    return "".join(
        before[start:end]
        for what, start, end, _, _ in matcher.get_opcodes()
        if what != "insert" and what != "equal"
    )


@pytest.mark.parametrize("row", AGENTS.values(), ids=lambda row: row.id)
def test_a_missing_file_is_made_with_the_entry_alone(desk, row: Agent) -> None:
    done = desk.do(row.id, scope="project")
    assert (done.action, done.backup) == ("added", None)
    [(key, servers)] = says(row, done.path).items()
    assert (key, list(servers)) == (row.key, ["stash-skills"])
    assert done.path.stat().st_mode & 0o600 == 0o600
    assert desk.do(row.id, scope="project").action == "unchanged"


def test_the_first_and_the_middle_entry_go_without_a_trace(desk) -> None:
    path = desk.settings.user_home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    ours = '"stash-skills": {"command": "x"}'
    for text, rest in {
        f'{{"mcpServers": {{{ours}, "b": 1}}}}': '{"mcpServers": { "b": 1}}',
        f'{{\n  "mcpServers": {{\n    {ours},\n    "b": 1 // b\n  }}\n}}\n': (
            '{\n  "mcpServers": {\n    "b": 1 // b\n  }\n}\n'
        ),
        f'{{"mcpServers": {{"a": 0, {ours}, "b": 1}}}}': '{"mcpServers": {"a": 0, "b": 1}}',
        f'{{\n  "mcpServers": {{\n    "a": 0,\n    {ours}, // why\n    "b": 1\n  }}\n}}': (
            '{\n  "mcpServers": {\n    "a": 0,\n    // why\n    "b": 1\n  }\n}'
        ),
    }.items():
        path.write_text(text, "utf-8")
        assert desk.do("cursor", remove=True).action == "removed"
        assert path.read_text("utf-8") == rest


def test_a_comment_above_the_next_table_stays_when_ours_goes(desk) -> None:
    path = desk.settings.user_home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(
        'a = 1\n\n[mcp_servers.stash-skills] # ours\ncommand = "x"\n\n'
        '[mcp_servers.stash-skills.env]\nA = "b"\n\n# about b\n[b]\nc = 1\n',
        "utf-8",
    )
    assert desk.do("codex", remove=True).action == "removed"
    assert path.read_text("utf-8") == "a = 1\n\n# about b\n[b]\nc = 1\n"


def test_entries_in_other_forms_are_edited_or_left_but_never_at_a_cost(desk) -> None:
    path = desk.settings.user_home / ".codex" / "config.toml"
    path.parent.mkdir()
    inline = '# top\n[mcp_servers]\na = {command = "a"} # a\nstash-skills = {command = "x"} # b\n'
    path.write_text(inline, "utf-8")
    assert desk.do("codex", force=True).action == "replaced"
    assert '\na = {command = "a"} # a\n' in path.read_text("utf-8")
    assert desk.do("codex", remove=True).action == "removed"
    assert path.read_text("utf-8") == '# top\n[mcp_servers]\na = {command = "a"} # a\n'
    apart = (
        '[mcp_servers.stash-skills]\ncommand = "x"\n[b]\nc = 1 # c\n'
        '[mcp_servers.stash-skills.env]\nD = "e"\n# at the end\n'
    )
    path.write_text(apart, "utf-8")
    for order in ({"force": True}, {"remove": True}):
        step = desk.do("codex", **order)
        text = path.read_text("utf-8")
        assert step.action == "refused" or ("# c" in text and "# at the end" in text)
    last = 'a = 1\n\n[mcp_servers.stash-skills]\ncommand = "x"\n\n# at the end\n'
    path.write_text(last, "utf-8")
    assert desk.do("codex", remove=True).action == "removed"
    assert path.read_text("utf-8") == "a = 1\n\n# at the end\n"


def test_opencode_2_gets_its_entry_where_that_version_looks(desk) -> None:
    path = desk.settings.config_home / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    inner = '"a": {"type": "local", "command": ["a"]},'
    text = f'{{\n  "mcp": {{\n    "servers": {{\n      {inner}\n    }},\n  }},\n}}\n'
    path.write_text(text, "utf-8")
    done = desk.do("opencode")
    assert done.path == path
    entry = jsonc.parse(path.read_text("utf-8"), comments=True).value["mcp"]["servers"]
    assert entry["stash-skills"] == {
        "type": "local",
        "command": ["/opt/env/bin/stash-skills", "serve"],
    }
    assert desk.do("opencode").action == "unchanged"
    assert desk.do("opencode", remove=True).action == "removed"
    assert path.read_text("utf-8") == text


def test_each_agent_gets_the_shape_that_it_documents(desk) -> None:
    shapes = {
        "cursor": {"command": "/opt/env/bin/stash-skills", "args": ["serve"]},
        "vscode": {"type": "stdio", "command": "/opt/env/bin/stash-skills", "args": ["serve"]},
        "opencode": {
            "type": "local",
            "command": ["/opt/env/bin/stash-skills", "serve"],
            "enabled": True,
        },
    }
    for agent_id, expected in shapes.items():
        path = desk.do(agent_id).path
        assert json.loads(path.read_bytes())[AGENTS[agent_id].key]["stash-skills"] == expected
    codex = tomllib.loads(desk.do("codex").path.read_text())["mcp_servers"]["stash-skills"]
    assert "STASH_API_KEY" in codex["env_vars"]
    gemini = json.loads(desk.do("gemini-cli").path.read_bytes())["mcpServers"]["stash-skills"]
    assert gemini["env"]["OPENAI_API_KEY"] == "${OPENAI_API_KEY}"
