"""Prompts: each names tools and addresses that there are, and fills its arguments in."""

import re
from typing import Literal

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, TextContent

from stash_mcp.server.app import SkillServer

pytestmark = pytest.mark.anyio

Mode = Literal["auto", "legacy"]
_CALL = re.compile(r"\b([a-z]+(?:_[a-z]+)+)\b(?=\()")


async def prompt_text(client: Client, name: str, **arguments: str) -> str:
    answer = await client.get_prompt(name, arguments)
    [message] = answer.messages
    assert message.role == "user"
    assert isinstance(message.content, TextContent)
    return message.content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_prompt_is_short_and_calls_only_tools_and_arguments_that_there_are(
    mode: Mode, server: SkillServer
) -> None:
    async with Client(server, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for prompt in (await client.list_prompts()).prompts:
            assert prompt.title
            assert prompt.description
            assert all(argument.description for argument in prompt.arguments or ())
            assert not any(argument.required for argument in prompt.arguments or ())
            text = await prompt_text(client, prompt.name)
            assert len(text) < 2500
            assert set(_CALL.findall(text)) <= set(tools)
            for name, given in re.findall(r"\b([a-z]+(?:_[a-z]+)+)\(([^()]*)\)", text):
                named = set(re.findall(r"\b([a-z_]+)=", given))
                assert named <= set(tools[name].input_schema["properties"]), (name, given)


async def test_arguments_are_filled_in_and_what_is_left_out_is_asked_for(
    server: SkillServer,
) -> None:
    async with Client(server) as client:
        bare = await prompt_text(client, "make_skill")
        filled = await prompt_text(
            client, "make_skill", traces="support-*", task_model="openai/small"
        )
        read = await prompt_text(client, "read_candidates", run_id="run-7")
        review = await prompt_text(client, "review_session", trace_id="t-1", focus="tone")
        present = await prompt_text(client, "review_session")
        again = await prompt_text(client, "next_round", skill="polite-support")
    assert "Ask me which model" in bare
    assert 'task_model="openai/small", trace_ids=["support-*"], install="ask"' in filled
    assert 'train_reward_model(trace_ids=["support-*"])' in filled
    assert "Ask me which model" not in filled
    assert "stash://runs/run-7/report" in read
    assert 'The conversation is "t-1"' in review
    assert "Look above all for: tone." in review
    assert "Bring this session in" in present
    assert 'list_installed_skills(skill="polite-support")' in again


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_unknown_prompt_or_argument_is_refused_with_those_that_there_are(
    mode: Mode, server: SkillServer
) -> None:
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError, match=r"no prompt 'install'. There are: review_session") as no:
            await client.get_prompt("install")
        with pytest.raises(MCPError, match=r"no argument run. Its arguments are: run_id") as odd:
            await client.get_prompt("read_candidates", {"run": "run-1"})
    assert (no.value.code, odd.value.code) == (INVALID_PARAMS, INVALID_PARAMS)
