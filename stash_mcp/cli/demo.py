"""`demo`: the whole job, from commented conversations to an installed skill, without a key.

Everything goes into a scratch folder: a library of its own, and a project to install into. The
models are real and small. What they stand in for is said at the end.
"""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from stash_mcp.backends.base import RunOrder, TrainOrder
from stash_mcp.backends.installations import InstallOrder
from stash_mcp.cli.following import follow
from stash_mcp.cli.jobs import print_model, print_run
from stash_mcp.cli.printing import print_raw, print_table, print_text, score
from stash_mcp.cli.session import Session, session_of
from stash_mcp.demo.conversations import annotations, conversations
from stash_mcp.demo.embedded import EmbeddedTaskServer, minilm_folder
from stash_mcp.errors import RunError
from stash_mcp.models import BUILTIN_REFLECTION, JobStatus, RewardModel, Run
from stash_mcp.server.candidates import best_first, changes
from stash_mcp.server.jobs import Job
from stash_mcp.server.wording import start_in_words

# The default rate is for models of 0.6 billion parameters and more; at it, one pass hardly moves
# so small a one. One pass over all pairs takes about 75 s on two cores.
TRAINING_RATE = 5e-5


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


@dataclass(frozen=True)
class _Task:
    model: str
    api_base: str | None
    embedded: bool


def demo(
    context: typer.Context,
    task_model: Annotated[
        str | None, typer.Option(help="A real task model; default: the embedded SmolLM2-135M.")
    ] = None,
    task_api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the task model.")
    ] = None,
    reflection_model: Annotated[
        str, typer.Option(help="The model that writes the skill; the default needs none.")
    ] = BUILTIN_REFLECTION,
    max_metric_calls: Annotated[
        int | None, typer.Option(min=1, help="Budget. Default: enough for 6 proposals.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Scratch folder to work in. Default: a new temporary one.")
    ] = None,
) -> None:
    """Run the whole job on conversations that ship with this package, without a key.

    Your own library, projects and skills are not touched.
    """
    session = _scratch(session_of(context), folder)
    _heading(session, "1. Conversations with reviewers' comments")
    _import(session)
    _heading(session, "2. A reward model, trained on the reviewers' ratings")
    model = _train(session)
    _heading(session, "3. GEPA evolves the skill")
    with _task(session, task_model, task_api_base) as task:
        run = _run(session, model, task, reflection_model, max_metric_calls)
    _heading(session, "4. What came of it")
    _show(session, run)
    _heading(session, "5. Installed")
    _install(session, run)
    _heading(session, "What this shows, and what it does not")
    _stand_ins(session, task, reflection_model)
    print_text(
        session.out,
        f"\nTo look around: set STASH_MCP_HOME to {session.settings.home} and use stash-skills "
        "runs, candidates, logs. Nothing else uses that folder; delete it when you are done.",
    )


def _heading(session: Session, text: str) -> None:
    print_text(session.out, f"\n{text}", style="bold")


def _scratch(session: Session, folder: Path | None) -> Session:
    root = (folder or Path(tempfile.mkdtemp(prefix="stash-skills-demo-"))).absolute()
    project = root / "project"
    # Made beforehand, as in a project where Claude Code is at home.
    (project / ".claude" / "skills").mkdir(parents=True, exist_ok=True)
    settings = dataclasses.replace(
        session.settings,
        home=root / "library",
        project_dir=project,
        claude_config_dir=root / "claude",
        backend="local",
    )
    print_text(session.out, f"Everything goes into {root}")
    return Session(settings=settings, out=session.out, err=session.err)


def _import(session: Session) -> None:
    report = session.backend.import_traces(conversations(), annotations=annotations())
    print_text(
        session.out,
        f"{report.imported} support conversations and {report.annotations_added} annotations are "
        "in the library. One of them:",
    )
    detail = session.backend.get_trace(report.trace_ids[1])
    print_raw(
        session.out, "\n".join(f"  {step.role}: {step.content}" for step in detail.trace.steps[1:3])
    )
    for annotation in detail.annotations[:2]:
        print_raw(session.out, f"  -> reviewer ({annotation.rating:+d}): {annotation.comment}")


def _train(session: Session) -> RewardModel:
    order = TrainOrder(
        name="demo",
        base_model=str(minilm_folder()),
        learning_rate=TRAINING_RATE,
    )
    trained = _followed(session, session.backend.train_reward_model(order))
    assert isinstance(trained, RewardModel)
    print_model(session, trained)
    return trained


@contextlib.contextmanager
def _task(session: Session, model: str | None, api_base: str | None) -> Iterator[_Task]:
    if model is not None:
        yield _Task(model, api_base, embedded=False)
        return
    print_text(session.out, "Starting SmolLM2-135M behind an OpenAI-compatible server ...")
    with EmbeddedTaskServer() as server:
        yield _Task(server.model, server.base_url, embedded=True)


def _run(
    session: Session,
    model: RewardModel,
    task: _Task,
    reflection_model: str,
    max_metric_calls: int | None,
) -> Run:
    order = RunOrder(
        reward_model_id=model.id,
        task_model=task.model,
        task_api_base=task.api_base,
        reflection_model=reflection_model,
        max_metric_calls=max_metric_calls,
        max_concurrency=1 if task.embedded else 8,
        # Installing is shown as a step of its own.
        install="off",
    )
    started = session.backend.start_run(order).run
    for sentence in start_in_words(started):
        print_text(session.out, f"- {sentence}")
    finished = _followed(session, started)
    assert isinstance(finished, Run)
    return finished


def _followed(session: Session, job: Job) -> Job:
    ended = follow(session, job.id)
    if ended.status is not JobStatus.SUCCEEDED:
        raise RunError(f"The demonstration's job {job.id} {ended.status}: {ended.reason}", "")
    return ended


def _show(session: Session, run: Run) -> None:
    print_run(session, run)
    candidates = session.backend.list_candidates(run.id)
    print_table(
        session.out,
        ("candidate", "in-sample score", "parents"),
        [
            (row.number, score(row.score), " ".join(map(str, row.parents)) or None)
            for row in candidates
        ],
    )
    best = best_first(candidates)[0]
    print_text(session.out, f"From the seed to candidate {best.number}:")
    print_raw(session.out, changes(best, candidates[0]) or "(no difference: the seed is best)")


def _install(session: Session, run: Run) -> None:
    [outcome] = session.backend.install_skill(InstallOrder(run_id=run.id))
    print_text(session.out, f"{outcome.action.capitalize()} {outcome.installation.path}")
    print_text(session.out, outcome.visibility)


def _stand_ins(session: Session, task: _Task, reflection_model: str) -> None:
    lines = [
        "Real: the training on the ratings, GEPA's search, every score, the held-out measure, the "
        "file on disk.",
        "Stand-in: the reward model's base is MiniLM (22 million parameters) where you would take "
        "Qwen3-0.6B or larger; it judges tone and wording more than truth.",
    ]
    if task.embedded:
        lines.append(
            "Stand-in: the task model is SmolLM2-135M, which hardly follows a skill. The scores "
            "say how its replies changed, not how your agent's would. "
            "TASK_MODEL=provider/name make demo takes a real one."
        )
    if reflection_model == BUILTIN_REFLECTION:
        lines.append(
            "Stand-in: the skill was composed from the reviewers' own sentences, without a model "
            "(builtin/comments). REFLECTION_MODEL=provider/name make demo has a model write it."
        )
    for line in lines:
        print_text(session.out, f"- {line}")
