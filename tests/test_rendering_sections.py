"""Input version 3: what of a conversation stands in which section."""

import json

from stash_mcp.models import Example, InputFormat, Message
from stash_mcp.rendering import SECTIONS_PREFIX, render_for, render_reply, render_sections


def user(text: str) -> Message:
    return Message(role="user", content=text)


def sections(*messages: Message, system: str | None = None, reply: str = "Done.") -> dict[str, str]:
    text = render_sections(system, messages, reply, ["Be kind.", "Be brief."])
    assert text.startswith(SECTIONS_PREFIX)
    assert text.isascii()
    return json.loads(text.removeprefix(SECTIONS_PREFIX))


def test_the_first_request_is_the_task_and_the_last_one_the_request() -> None:
    found = sections(user("Fix it"), Message(role="tool", content="log"), user("Keep the ids"))
    assert (found["task"], found["request"]) == ("Fix it", "Keep the ids")
    assert found["history"] == "user: Fix it\n\ntool: log\n\nuser: Keep the ids"
    assert found["action"] == "assistant: Done."
    assert found["rubric"] == "Be kind.\nBe brief."


def test_the_newest_rules_of_a_repository_stand_before_the_system_message() -> None:
    old, new = "# AGENTS.md instructions\nold", "# AGENTS.md instructions\nnew"
    found = sections(user(old), user("Fix it"), user(new), system="System.")
    assert found["instructions"] == f"{new}\n\nSystem."
    assert (found["task"], found["history"]) == ("Fix it", "user: Fix it")


def test_what_programs_put_into_the_users_mouth_is_no_request() -> None:
    found = sections(
        user("<teammate-message>Idle</teammate-message>"),
        user("<external_codex_apps_open_page>x</external_codex_apps_open_page>"),
        user("Fix it"),
        user("  <heartbeat>Check</heartbeat>"),
    )
    assert found["task"] == found["request"] == "Fix it"
    assert "<heartbeat>" in found["history"]


def test_an_assignment_by_another_agent_is_the_task_where_nobody_else_asks() -> None:
    assignment = "<teammate-message>Do it</teammate-message>"
    ping = "<teammate-message>Status?</teammate-message>"
    found = sections(user("<heartbeat>x</heartbeat>"), user(assignment), user(ping))
    assert found["task"] == found["request"] == assignment


def test_long_sections_lose_their_middle_and_the_history_its_start() -> None:
    found = sections(
        user("a" * 20_000 + "z"), user("b" * 20_000), system="s" * 20_000, reply="r" * 20_000
    )
    gap = "\n[earlier or intervening content omitted]\n"
    assert found["instructions"] == "s" * 8_000 + gap + "s" * 8_000
    assert found["task"] == "a" * 4_000 + gap + "a" * 3_999 + "z"
    assert len(found["action"]) == 12_000 + len(gap)
    first, second = found["history"].split("\n\n")
    assert first == gap + "a" * (24_000 - 20_006 - 1) + "z"
    assert second == "user: " + "b" * 20_000


def test_one_function_renders_by_the_checkpoints_version() -> None:
    example = Example(trace_id="t", system="S", messages=(user("Hi"),), feedback=("No.",))
    assert render_for(InputFormat(), example, "Hello") == render_reply(example.messages, "Hello")
    third = render_for(InputFormat(version=3, rubric=("R",)), example, "Hello")
    assert third == render_sections("S", example.messages, "Hello", ["R"])
    assert "No." not in third
