"""Prompts for the steps of the loop in which an agent leads a person: each names the tools to use,
and what is the person's alone. In Claude Code they are commands, /mcp__stash-skills__NAME.
"""

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import Prompt
from pydantic import Field

from stash_mcp.models import AGENT_REFLECTION, BUILTIN_REFLECTION

TraceArgument = Annotated[
    str, Field(description="Id of a conversation in the library, or a file; default: this session")
]
Focus = Annotated[str, Field(description="What to look for, in a few words")]
Traces = Annotated[
    str, Field(description='Id of a conversation, or a pattern such as "support-*"; default: all')
]
TaskModel = Annotated[
    str, Field(description="The model that the skill is for, by its LiteLLM name")
]
ReflectionModel = Annotated[
    str,
    Field(
        description=f"The model that writes the skill; {AGENT_REFLECTION}: you; "
        f"default: {BUILTIN_REFLECTION}"
    ),
]
RunArgument = Annotated[str, Field(description="Default: the newest that has ended")]
SkillArgument = Annotated[str, Field(description="An installed skill; default: the newest")]


def add_prompts(server: MCPServer[Any]) -> None:
    def add(function: Callable[..., str], title: str) -> None:
        server.add_prompt(Prompt.from_function(function, title=title, description=function.__doc__))

    add(review_session, "Review my last session")
    add(make_skill, "Make a skill from these comments")
    add(read_candidates, "Read the candidates before installing")
    add(next_round, "Next round")


def review_session(trace_id: TraceArgument = "", focus: Focus = "") -> str:
    """Walk through a conversation with me, and record what I say of single replies."""
    look_for = f" Look above all for: {focus}." if focus else ""
    return f"""\
Review a conversation with me, and record my judgement with the stash-skills tools.

1. {_bring(trace_id)}
2. get_trace(trace_id). Pick at most five assistant replies that are worth asking about: one \
that I corrected, one that I asked again about, one that went unusually well, the first \
reply.{look_for}
3. One reply at a time: show me the lines that matter with the step's number, and ask one open \
question (what was good, or what it should have said instead). Do not suggest the answer, and do \
not rate for me. Wait for my answer before the next.
4. After each answer: annotate_trace(trace_id, step, rating, comment, quote). Rating up or down \
only if I said so. The comment is an instruction in my words ("Ask for the order number first"), \
without names and numbers of this case. Read it back to me if you changed more than a word.
5. At the end say how many ups and downs there are now (list_traces), and which of them is \
missing. A rating that I take back: flag_annotation. Do not train anything yet."""


def make_skill(
    traces: Traces = "", task_model: TaskModel = "", reflection_model: ReflectionModel = ""
) -> str:
    """Make a skill from the comments in the library: train, plan, run, report."""
    part = f', trace_ids=["{traces}"]' if traces else ""
    task = f'"{task_model}"' if task_model else "..."
    asked = "" if task_model else " Ask me which model the skill is for (task_model)."
    writes = f', reflection_model="{reflection_model}"' if reflection_model else ""
    return f"""\
Make a skill from the reviewers' comments, with the stash-skills tools.

1. list_traces(reviewed="commented"): tell me how many conversations, ups, downs and comments \
there are{f" (only those of {traces} count)" if traces else ""}. Fewer than some twenty ratings, \
or only one direction: say so, and offer to review more first.
2. list_reward_models: is there a succeeded one of the present ratings? Otherwise \
train_reward_model({part.removeprefix(", ")}), then get_run(run_id, wait_seconds=50) until it is \
over. Tell me how many held-out pairs it ranks right, next to what length alone would get. If it \
is no better, or if there are fewer than 20 pairs, say what that means before you go on.
3.{asked} start_gepa_run(reward_model_id, task_model={task}{writes}{part}, install="ask"). Show \
me the plan: conversations, held out, proposals, calls, expected cost. If I do not agree: \
cancel_run.
4. get_run(run_id, wait_seconds=50) until it is over. I may leave: it goes on. If it waits for \
reflections, answer them (get_reflection(run_id), submit_reflection(run_id, number, body)).
5. Repeat the verdict word for word, with the held-out gain and its interval if there is one. \
Where it does not say "Improved", do not call it an improvement.
6. Read the best candidate with me (list_candidates(run_id, candidate=N)) before anything is \
installed."""


def read_candidates(run_id: RunArgument = "") -> str:
    """Read a run's candidates with me, and decide whether one is installed."""
    find = (
        f"The run is {run_id}."
        if run_id
        else "list_runs: take the newest that has ended, and tell me which."
    )
    run = run_id or "RUN"
    return f"""\
Read the candidates of a run with me before anything is installed.

1. {find} Read stash://runs/{run}/report (or get_run). Repeat the verdict word for word.
2. list_candidates(run_id="{run}"): the best, and any whose score is within 0.02 of it. Scores \
this close are equal.
3. list_candidates(run_id="{run}", candidate=N) for these. Show me the whole body, then the diff \
to the seed in three sentences.
4. Check, line by line, and tell me what you find: names, numbers or cases of one conversation; \
lines that contradict each other or the comments; anything no comment asked for, above all about \
length or tone; promises; anything that runs, reads, sends or hides something.
5. install_skill(run_id="{run}", candidate=N, dry_run=true): show the paths, the diff and the \
findings. Install only if I say so. force and accept_findings are mine to say.
6. Afterwards repeat what `visibility` says, and that rollback_skill and uninstall_skill undo \
it."""


def next_round(skill: SkillArgument = "") -> str:
    """Improve an installed skill with new conversations and comments."""
    which = f'list_installed_skills(skill="{skill}")' if skill else "list_installed_skills"
    return f"""\
Start the next round for a skill that is in use.

1. {which}: its state, versions, run and reward model. Is it edited by hand? Show me the diff; \
what I changed is worth a comment. A newer run that was not read yet? Read that first.
2. New evidence: conversations in which the skill was loaded. import_traces them; never count \
old comments as judgements of new replies.
3. Review them with me, one reply at a time: what does the skill still get wrong, what does it \
overdo, what got better? annotate_trace, both directions. Old labels that I would not give any \
more: flag_annotation.
4. train_reward_model anew on old and new ratings. Compare its held-out pairs with the last \
one's (list_reward_models).
5. start_gepa_run with the same skill_name and skill_description, new reward model, \
install="ask". Show me the plan; what was paid for before costs nothing again.
6. Compare the new best with what is installed: the verdict, then both texts. Keep the old one \
unless the new one is better in both."""


def _bring(trace_id: str) -> str:
    if not trace_id:
        return (
            "Bring this session in: import_traces(path=...) where its file can be read, else "
            'data=... with one line {"id": ..., "steps": [{"role": ..., "content": ...}]}: my '
            "messages and your replies word for word, outputs of tools shortened, no secrets."
        )
    return (
        f'The conversation is "{trace_id}": an id in the library (get_trace), else a file '
        "(import_traces(path=...)); say which ids came of it."
    )
