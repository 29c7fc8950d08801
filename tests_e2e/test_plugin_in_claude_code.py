"""The plugin in the real Claude Code: installed from its folder, and led through the whole loop by
a scripted model. The reward model is small and really trained; the task model is scripted.
"""

import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.messages_api import Calls, Result, Says, conversation, messages_api, texts
from support.model_server import Reply, Request, model_server, says
from support.real_claude import Claude
from support.tiny_models import save_tiny_base

from stash_mcp.skills.document import parse

SERVER = "mcp__plugin_stash-skills_stash-skills"
SKILL = "parcel-help"
ASKED = "Ask for the order number first."
GOOD = "sorry that it is late please give me the order number"
BAD = "no idea wait and see"
TOOLS = (
    "import_traces",
    "annotate_trace",
    "train_reward_model",
    "get_run",
    "start_gepa_run",
    "list_candidates",
    "install_skill",
)
Turns = Generator[Calls, Result, str]


def install(claude: Claude, plugin_folder: Path) -> None:
    claude.run("plugin", "install", "stash-skills", "--marketplace", str(plugin_folder))


def test_the_plugin_is_valid_to_the_letter(tmp_path: Path, plugin_folder: Path) -> None:
    claude = Claude.at(tmp_path, "http://127.0.0.1:1")
    for path in (plugin_folder, plugin_folder / ".claude-plugin" / "plugin.json"):
        assert "Validation passed" in claude.run("plugin", "validate", "--strict", str(path))


def test_the_plugin_is_installed_from_its_folder_and_its_server_answers(
    tmp_path: Path, plugin_folder: Path
) -> None:
    claude = Claude.at(tmp_path, "http://127.0.0.1:1", STASH_MCP_HOME=str(tmp_path / "stash"))
    install(claude, plugin_folder)
    [line] = [row for row in claude.run("mcp", "list").splitlines() if "stash-skills" in row]
    assert line.startswith("plugin:stash-skills:stash-skills: ")
    assert line.endswith("Connected")


def test_a_command_brings_its_text_and_what_the_person_wrote_behind_it(
    tmp_path: Path, plugin_folder: Path
) -> None:
    with messages_api(lambda request: Says("Understood.")) as api:
        claude = Claude.at(tmp_path, api.base_url, STASH_MCP_HOME=str(tmp_path / "stash"))
        install(claude, plugin_folder)
        claude.run("--print", "/stash-skills:review talk-03")
    said = texts(api.requests[0])
    assert "Review a conversation with me, as the skill" in said
    assert "ARGUMENTS: talk-03" in said
    # What is for the person alone is not offered to the model; the shipped skills are.
    assert "- stash-skills:review-sessions: " in said
    assert "- stash-skills:train: " not in said


@pytest.mark.timeout(240)
def test_comments_become_a_skill_that_a_new_session_knows(
    tmp_path: Path, plugin_folder: Path
) -> None:
    traces, annotations = conversations(tmp_path)
    base = save_tiny_base(tmp_path / "base", f"{GOOD} {BAD} user assistant where is my parcel")
    seen: list[str] = []
    with model_server(task_model) as models:
        turns = loop(traces, annotations, base, models.base_url, seen)
        with messages_api(conversation(turns)) as api:
            claude = Claude.at(
                tmp_path,
                api.base_url,
                STASH_MCP_HOME=str(tmp_path / "stash"),
                HF_HUB_OFFLINE="1",
            )
            install(claude, plugin_folder)
            (claude.project / ".claude" / "skills").mkdir(parents=True)
            said = claude.run("--print", "Make a skill.", "--allowedTools", SERVER)
    assert said.strip() == "The skill is installed."
    assert seen == list(TOOLS)

    path = claude.project / ".claude" / "skills" / SKILL / "SKILL.md"
    skill = parse(path.read_text("utf-8"))
    assert skill.name == SKILL
    assert ASKED in skill.body
    assert f"- {SKILL}: {skill.description}" in listing_of_a_new_session(tmp_path)


def loop(traces: Path, annotations: Path, base: Path, task_api_base: str, seen: list[str]) -> Turns:
    """What the model does; `seen` gets the tools that answered, in order."""
    yield from load_tools()
    imported = yield from use(
        seen, "import_traces", path=str(traces), annotations_path=str(annotations)
    )
    assert imported["added"] == 12
    yield from use(seen, "annotate_trace", trace_id="talk-11", step=2, rating="down", comment=ASKED)
    training = yield from use(seen, "train_reward_model", base_model=str(base), learning_rate=0.01)
    trained = yield from to_the_end(seen, training["reward_model_id"])
    assert trained["status"] == "succeeded"
    run = yield from use(
        seen,
        "start_gepa_run",
        reward_model_id=training["reward_model_id"],
        task_model="openai/polite",
        task_api_base=task_api_base,
        skill_name=SKILL,
        skill_description="How to answer about late parcels.",
        install="off",
    )
    done = yield from to_the_end(seen, run["run_id"])
    assert done["status"] == "succeeded"
    listed = yield from use(seen, "list_candidates", run_id=run["run_id"])
    best = max(listed["candidates"], key=lambda row: row["score"])
    assert best["candidate"] > 0
    yield from use(seen, "install_skill", run_id=run["run_id"], candidate=best["candidate"])
    return "The skill is installed."


def load_tools() -> Turns:
    """Claude Code names the tools first and shows them on request; the server may still start."""
    wanted = {f"{SERVER}__{name}" for name in TOOLS}
    pause = threading.Event()
    for _ in range(60):
        found = yield Calls("ToolSearch", {"query": f"select:{','.join(sorted(wanted))}"})
        if wanted <= found.tools:
            return ""
        pause.wait(0.5)
    raise AssertionError(f"not all tools came: {sorted(found.tools)}")


def use(seen: list[str], tool: str, **arguments: Any) -> Generator[Calls, Result, dict[str, Any]]:
    result = yield Calls(f"{SERVER}__{tool}", arguments)
    assert not result.is_error, result.text
    if tool not in seen:
        seen.append(tool)
    return json.loads(result.text)  # type: ignore[no-any-return]


def to_the_end(seen: list[str], job: str) -> Generator[Calls, Result, dict[str, Any]]:
    for _ in range(6):
        state = yield from use(seen, "get_run", run_id=job, wait_seconds=30, until="end")
        if state["status"] in ("succeeded", "failed"):
            return state
    raise AssertionError(f"{job} is not over: {state}")


def listing_of_a_new_session(tmp_path: Path) -> str:
    """All that a session of the same person in the same project tells its model at the start."""
    with messages_api(lambda request: Says("Hello.")) as api:
        claude = Claude.at(tmp_path, api.base_url, STASH_MCP_HOME=str(tmp_path / "stash"))
        claude.run("--print", "Hello.")
    return texts(api.requests[0])


def task_model(request: Request) -> Reply:
    """Polite once its skill says so."""
    return says(GOOD if ASKED in request["messages"][0]["content"] else BAD)


def conversations(folder: Path) -> tuple[Path, Path]:
    """Twelve, half of them good, and what a reviewer said of all but the last."""
    traces, annotations = [], []
    for number in range(12):
        good = number % 2 == 0
        name = f"talk-{number:02d}"
        steps = [
            {"role": "system", "content": "You answer customers."},
            {"role": "user", "content": f"where is my parcel {number}"},
            {"role": "assistant", "content": GOOD if good else BAD},
        ]
        traces.append({"id": name, "steps": steps})
        annotations.append(
            {
                "trace_id": name,
                "step_index": 2,
                "rating": 1 if good else -1,
                "comment": ASKED,
                "created_at": "2026-01-01T00:00:00+00:00",
            }
        )
    paths = (folder / "traces.jsonl", folder / "annotations.jsonl")
    for path, rows in zip(paths, (traces, annotations[:-1]), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return paths
