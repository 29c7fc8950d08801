"""Wherever the numbers of a run of Stash stand, the same answer says that they are in-sample."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from mcp import Client
from mcp.types import TextContent, TextResourceContents
from stand_in_stash import jobs as stand_in_jobs
from support.doors import Doors
from support.two_sides import TwoSides, trained_at_stash, two_sides

from stash_mcp.backends.base import RunOrder
from stash_mcp.backends.installations import InstallOrder
from stash_mcp.cli.app import app
from stash_mcp.models import Run
from stash_mcp.server import resource_uris as uris
from stash_mcp.server.app import SkillServer, build_server

pytestmark = pytest.mark.anyio

# Of no other number of the library, so that they are seen wherever they stand.
SEED, BEST = 0.5273, 0.6184
NUMBERS = re.compile(r"(?<![\d.])0\.(527|618|091)\d*")


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoSides]:
    monkeypatch.setattr(stand_in_jobs, "SEED_SCORE", SEED)
    monkeypatch.setattr(stand_in_jobs, "BEST_SCORE", BEST)
    with two_sides(tmp_path) as opened:
        yield opened


@pytest.fixture
def doors(both: TwoSides, capsys: pytest.CaptureFixture[str]) -> Doors:
    doors = Doors(both.stage, capsys)
    doors.session.open_backend = lambda _settings: both.backend
    return doors


@pytest.fixture
def run(both: TwoSides) -> Run:
    """Of Stash, finished; its skill is installed, and nobody was told yet."""
    model = trained_at_stash(both)
    order = RunOrder(reward_model_id=model, task_model="openai/small")
    started = both.backend.start_run(order).run
    both.end_run("stash")
    both.stage.now += 10**7 * both.stage.now.resolution
    both.backend.reconcile()
    return both.backend.get_run(started.id)


def honest(said: str) -> bool:
    """Whether it has any of the numbers; asserts that it says then what they are."""
    if NUMBERS.search(said) is None:
        return False
    assert "in-sample" in said.lower(), said
    return True


def server_of(both: TwoSides) -> SkillServer:
    stage = both.stage
    return build_server(
        lambda: both.backend, stage.settings.project_dir, clock=stage.clock, poll_seconds=0.01
    )


def calls(run: Run, trace: str) -> dict[str, dict[str, object]]:
    """Every tool, with what it takes to answer about this run, or for a refusal of it."""
    skill = {"skill": run.skill_name, "dry_run": True}
    model = run.request.reward_model_id
    return {
        "import_traces": {"data": "[]"},
        "list_traces": {"backend": "stash"},
        "get_trace": {"trace_id": trace},
        "annotate_trace": {"trace_id": trace, "rating": "up"},
        "flag_annotation": {"annotation_id": "none"},
        "train_reward_model": {"trace_ids": [trace]},
        "list_reward_models": {},
        "start_gepa_run": {"reward_model_id": model, "task_model": "openai/small"},
        "get_run": {"run_id": run.id},
        "cancel_run": {"run_id": run.id},
        "resume_run": {"run_id": run.id},
        "list_runs": {},
        "get_reflection": {"run_id": run.id},
        "submit_reflection": {"run_id": run.id, "number": 1, "body": "x"},
        "list_candidates": {"run_id": run.id},
        "install_skill": {"run_id": run.id, "dry_run": True},
        "list_installed_skills": {},
        "rollback_skill": skill,
        "uninstall_skill": skill,
        "doctor": {},
        "sync_with_stash": {"action": "pull", "dry_run": True},
    }


async def test_every_tool_says_so_in_text_and_in_structured_content(
    both: TwoSides, run: Run
) -> None:
    [summary, *_] = both.backend.at("stash").list_traces(limit=1, offset=0).traces
    wanted = calls(run, summary.id)
    async with Client(server_of(both)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(wanted)
        assert any(honest(note) for note in await _news(client)), "the notice has its gain"
        showing = set()
        for tool, arguments in wanted.items():
            answer = await client.call_tool(tool, arguments)
            texts = [block.text for block in answer.content if isinstance(block, TextContent)]
            for said in (*texts, json.dumps(answer.structured_content or {})):
                if honest(said):
                    showing.add(tool)
        one = await client.call_tool("list_candidates", {"run_id": run.id, "candidate": 1})
        assert honest(json.dumps(one.structured_content))
    assert {"get_run", "list_runs", "list_candidates", "list_installed_skills"} <= showing


async def _news(client: Client) -> list[str]:
    answer = await client.call_tool("list_traces", {})
    return list((answer.structured_content or {})["notices"])


async def test_every_resource_says_so(both: TwoSides, run: Run) -> None:
    filled = {"run_id": run.id, "candidate": "1", "skill": str(run.skill_name)}
    showing = set()
    async with Client(server_of(both)) as client:
        for template in (await client.list_resource_templates()).resource_templates:
            names = set(re.findall(r"\{([^}]+)\}", template.uri_template))
            if not names <= set(filled):
                continue
            address = template.uri_template
            for name in names:
                address = address.replace(f"{{{name}}}", filled[name])
            [content] = (await client.read_resource(address)).contents
            assert isinstance(content, TextResourceContents)
            if honest(content.text):
                showing.add(template.uri_template)
    assert {uris.RUN, uris.REPORT, uris.INSTALLED} <= showing


def _commands(run: Run, trace: str, folder: Path) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Every command but those that serve, install or call a program of this machine."""
    model, skill = run.request.reward_model_id, str(run.skill_name)
    start = ("--reward-model", model, "--task-model", "openai/small", "--no-wait")
    return {
        "import": (("missing.jsonl",),),
        "export": ((),),
        "annotate": ((trace, "--rating", "up"),),
        "flag": (("none",),),
        "traces": (("--backend", "stash"),),
        "trace": ((trace,),),
        "train": (("--trace", trace, "--no-wait"),),
        "models": ((),),
        "import-model": (("missing",),),
        "export-model": ((model, str(folder / "m.tar.gz")),),
        "run": (start,),
        "status": ((run.id,), (run.id, "--follow"), ()),
        "runs": ((),),
        "reflection": ((run.id,),),
        "submit": ((run.id, "1"),),
        "cancel": ((run.id,),),
        "resume": ((run.id,),),
        "logs": ((run.id,),),
        "pull": (("--dry-run",),),
        "push": (("--dry-run",),),
        "rescore": ((run.id, "--no-wait"),),
        "candidates": (
            (run.id,),
            (run.id, "--scores"),
            (run.id, "--diff"),
            (run.id, "--show", "1"),
        ),
        "install": ((run.id, "--dry-run"),),
        "installed": ((), (skill,)),
        "rollback": ((skill, "--dry-run"),),
        "uninstall": ((skill, "--dry-run"),),
        "targets": ((),),
        "watch": (("--once",),),
        "cache": ((),),
        "prune": (("--dry-run",),),
        "disk": ((),),
        "doctor": ((),),
        "setup": (("--dry-run",),),
        "version": ((),),
    }


_ELSEWHERE = {"serve", "demo"}


def test_every_command_says_so_for_people_and_for_programs(
    both: TwoSides, doors: Doors, run: Run, tmp_path: Path
) -> None:
    [summary, *_] = both.backend.at("stash").list_traces(limit=1, offset=0).traces
    wanted = _commands(run, summary.id, tmp_path)
    assert set(typer.main.get_command(app).commands) - _ELSEWHERE == set(wanted)
    showing = set()
    for command, ways in wanted.items():
        for arguments in ways:
            for form in ((), ("--json",)):
                said = doors.command(command, *arguments, *form)
                # What programs read is standard output alone.
                if honest(said.out if form else said.out + said.err):
                    showing.add((command, bool(form)))
    shown = {
        (name, form)
        for name in ("status", "runs", "installed", "candidates")
        for form in (False, True)
    }
    assert shown <= showing


def test_an_installed_skill_says_of_what_kind_its_gain_is(both: TwoSides, doors: Doors) -> None:
    local = both.stage.finished(("Be polite.", 0.4), ("Ask first.", 0.6))
    both.backend.install_skill(InstallOrder(run_id=local.id))
    assert "+0.170 held-out" in doors.command("installed").out
