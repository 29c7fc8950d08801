"""A run's report as Markdown: what it says for itself, its numbers, candidates, spend and diff.

It adds no judgement: the verdict stands as the run wrote it, and a number that was not measured on
held-out conversations is called that.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from stash_mcp.models import (
    AGENT_REFLECTION,
    BUILTIN_REFLECTION,
    Candidate,
    JobStatus,
    RewardModel,
    Run,
)
from stash_mcp.server.candidates import best_first, body_of, changes
from stash_mcp.server.counting import count, duration
from stash_mcp.server.fences import cell, fenced
from stash_mcp.server.money import spent
from stash_mcp.server.shortening import (
    MODEL_CHARACTERS,
    REASON_CHARACTERS,
    one_line,
    shorten,
    shorten_within,
)
from stash_mcp.server.wording import (
    accuracy_in_words,
    at_the_end,
    elapsed_seconds,
    next_for_run,
    partial_in_words,
    stop_in_words,
)

CANDIDATES_SHOWN = 20
LINE_CHARACTERS = 100
DIFF_BYTES = 14_000


def report(
    run: Run, candidates: Sequence[Candidate], judge: RewardModel | None, now: datetime
) -> str:
    """At most about 24,000 bytes. judge: the reward model; None where it is gone."""
    parts = [
        f"# Run {run.id}: {run.skill_name or 'its skill has no name yet'}",
        _outcome(run),
        _section("Numbers", "\n".join(f"- {line}" for line in _numbers(run, candidates, judge))),
        _section("Candidates", _table(candidates)),
        _section("Spent", "\n".join(f"- {line}" for line in _spent(run, now))),
        _section("From the seed to the best", _diff(run, candidates)),
        _section("Next", next_for_run(run)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _outcome(run: Run) -> str:
    lines = [f"**{run.status.capitalize()}.** {run.verdict or ''}".rstrip()]
    stuck = run.reason if run.status is JobStatus.FAILED else run.stalled or run.as_seen
    if stuck:
        lines.append(shorten(stuck, REASON_CHARACTERS))
    partial = partial_in_words(run)
    if partial and run.seed_score is not None:
        lines.append(partial)
    if run.stop_reason is not None:
        lines.append(stop_in_words(run.stop_reason))
    lines.append(run.install_note or at_the_end(run.install))
    return "\n\n".join(lines)


def _numbers(run: Run, candidates: Sequence[Candidate], judge: RewardModel | None) -> Iterator[str]:
    heldout = run.heldout
    if heldout is not None:
        yield (
            f"On {count(heldout.examples, 'held-out conversation')}: seed "
            f"{heldout.seed_score:.3f}, best {heldout.best_score:.3f}, gain {heldout.gain:+.3f} "
            f"(95 % interval {heldout.low:+.3f} to {heldout.high:+.3f})."
        )
    elif candidates:
        yield "Nothing was measured on held-out conversations."
    if run.seed_score is not None and run.best_score is not None:
        plan = run.plan
        where = "conversations" if plan is None else count(plan.examples, "conversation")
        yield (
            f"In-sample, on the {where} that it was optimised on: seed "
            f"{run.seed_score:.3f}, best {run.best_score:.3f} (candidate {run.best_candidate}). "
            "The best of several looks better there than it is."
        )
    yield _judge(run, judge)


def _judge(run: Run, judge: RewardModel | None) -> str:
    name = run.request.reward_model_id
    if judge is None or judge.metrics is None:
        return f"The judge, {name}: how well it ranks replies is not known here."
    return f"The judge, {name}: {accuracy_in_words(judge.metrics)}."


def _table(candidates: Sequence[Candidate]) -> str:
    if not candidates:
        return ""
    seed = candidates[0]
    rows = ["| candidate | in-sample score | gain | parents | begins |", "|---|---|---|---|---|"]
    for row in best_first(candidates)[:CANDIDATES_SHOWN]:
        name = f"{row.number} (seed)" if row.number == seed.number else str(row.number)
        parents = ", ".join(str(number) for number in row.parents)
        begins = cell(one_line(body_of(row.skill), LINE_CHARACTERS))
        gain = row.score - seed.score
        rows.append(f"| {name} | {row.score:.3f} | {gain:+.3f} | {parents} | {begins} |")
    more = len(candidates) - CANDIDATES_SHOWN
    return "\n".join(rows) + (f"\n\n{more} more: list_candidates." if more > 0 else "")


def _spent(run: Run, now: datetime) -> Iterator[str]:
    request, progress = run.request, run.progress
    if progress is None:
        yield f"At Stash, which does not tell it; {request.max_metric_calls} metric calls at most"
        return
    task = shorten(request.task_model, MODEL_CHARACTERS)
    yield f"Task model {task}: {spent(progress.task_usage)}"
    if request.reflection_model == BUILTIN_REFLECTION:
        yield "Reflection: built in, calls no model"
    elif request.reflection_model == AGENT_REFLECTION:
        yield f"Reflection by the connected agent: {spent(progress.reflection_usage)}"
    else:
        reflection = shorten(request.reflection_model, MODEL_CHARACTERS)
        yield f"Reflection model {reflection}: {spent(progress.reflection_usage)}"
    yield (
        f"{progress.metric_calls} of {count(request.max_metric_calls, 'metric call')}, "
        f"{count(progress.proposals, 'proposal')}"
    )
    elapsed = elapsed_seconds(run, now)
    if elapsed is not None:
        yield f"Time: {duration(elapsed)}"


def _diff(run: Run, candidates: Sequence[Candidate]) -> str:
    for row in candidates:
        if row.number == run.best_candidate and row.number != candidates[0].number:
            diff = changes(row, candidates[0])
            return fenced(shorten_within(diff, DIFF_BYTES), "diff")
    return "The seed is the best so far." if candidates else ""
