"""`candidates`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_raw, print_table, print_text, score
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.models import Candidate, Run
from stash_mcp.server.candidates import Order, best_first, changes, find, lineage, parent_of, select
from stash_mcp.server.skill_results import CandidateRow, example_scores
from stash_mcp.server.wording import PARTIAL

RunId = Annotated[str, typer.Argument(metavar="RUN", help="Its id, as `runs` shows it.")]


def register(app: typer.Typer) -> None:
    app.command("candidates")(candidates)


def candidates(
    context: typer.Context,
    run_id: RunId,
    show: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Print this one's whole SKILL.md.")
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Print its diff to the seed; default: the best one's.")
    ] = False,
    parent: Annotated[
        bool, typer.Option("--parent", help="With --diff: to the one it was made from.")
    ] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print its score on each conversation.")
    ] = False,
    sort: Annotated[Order, typer.Option(help="Which come first.")] = "best",
    better_only: Annotated[
        bool, typer.Option("--better-only", help="Only those with a higher score than the seed.")
    ] = False,
    contains: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those with this in their body.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List a run's candidates, best score first; or show one.

    The scores are in-sample, of the conversations that were optimised on; `status` has the
    held-out ones, where some were measured.
    """
    session = session_of(context)
    run, listed = session.backend.get_run(run_id), session.backend.list_candidates(run_id)
    if run.partial and not as_json:
        print_text(session.err, PARTIAL)
    if show is None and (not (diff or scores) or not listed):
        selected = select(listed, order=sort, better_only=better_only, contains=contains)
        _print_list(session, run, listed, selected, as_json)
        return
    chosen = best_first(listed)[0] if show is None else find(listed, run_id, show)
    other = parent_of(listed, chosen) if parent else listed[0]
    if as_json:
        print_json(session.out, _shown_as_json(run, listed, chosen, other))
    elif scores:
        _print_scores(session, chosen, listed[0])
    else:
        _print_one(session, chosen, other, diff=diff)


def _as_json(candidate: Candidate, run: Run) -> dict[str, object]:
    kind = {"score_kind": "in-sample", "partial": run.partial}
    return {**candidate.model_dump(mode="json"), **kind}


def _shown_as_json(
    run: Run, listed: Sequence[Candidate], chosen: Candidate, other: Candidate
) -> dict[str, object]:
    return {
        **_as_json(chosen, run),
        "lineage": lineage(listed, chosen),
        "diff_to": other.number,
        "diff": changes(chosen, other),
    }


def _print_list(
    session: Session,
    run: Run,
    listed: Sequence[Candidate],
    selected: Sequence[Candidate],
    as_json: bool,
) -> None:
    if as_json:
        print_json(session.out, [_as_json(candidate, run) for candidate in selected])
        return
    rows = [CandidateRow.of(candidate, listed) for candidate in selected]
    print_table(
        session.out,
        ("candidate", "in-sample score", "gain", "parents", "what is new"),
        [
            (
                row.candidate,
                score(row.score),
                f"{row.gain:+.3f}",
                " ".join(str(parent) for parent in row.parents) or None,
                row.line,
            )
            for row in rows
        ],
    )


def _print_scores(session: Session, chosen: Candidate, seed: Candidate) -> None:
    print_table(
        session.out,
        ("conversation", "in-sample score", "gain"),
        [
            (row.trace_id, score(row.score), None if row.gain is None else f"{row.gain:+.3f}")
            for row in example_scores(chosen, seed)
        ],
    )


def _print_one(session: Session, chosen: Candidate, other: Candidate, *, diff: bool) -> None:
    if not diff:
        print_raw(session.out, chosen.skill)
        return
    name = "the seed" if other.number == 0 else f"candidate {other.number}"
    same = f"Candidate {chosen.number} is the same as {name}."
    print_raw(session.out, changes(chosen, other) or same)
