"""`candidates`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_raw, print_table, print_text, score
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.models import Candidate, Run
from stash_mcp.server.skill_results import CandidateRow, best_first, diff_to_seed, find
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
    as_json: Json = False,
) -> None:
    """List a run's candidates, best score first; or show one.

    The scores are of the conversations that were optimised on; `status` has the held-out ones.
    """
    session = session_of(context)
    run, listed = session.backend.get_run(run_id), session.backend.list_candidates(run_id)
    if run.partial and not as_json:
        print_text(session.err, PARTIAL)
    if show is None and (not diff or not listed):
        _print_list(session, run, listed, as_json)
        return
    chosen = best_first(listed)[0] if show is None else find(listed, run_id, show)
    if as_json:
        changes = diff_to_seed(chosen, listed[0])
        print_json(session.out, {**_as_json(chosen, run), "diff_to_seed": changes})
        return
    _print_one(session, chosen, listed[0], diff=diff)


def _as_json(candidate: Candidate, run: Run) -> dict[str, object]:
    return {**candidate.model_dump(mode="json"), "partial": run.partial}


def _print_list(session: Session, run: Run, listed: Sequence[Candidate], as_json: bool) -> None:
    if as_json:
        print_json(session.out, [_as_json(candidate, run) for candidate in best_first(listed)])
        return
    rows = [CandidateRow.of(candidate, listed[0]) for candidate in best_first(listed)]
    print_table(
        session.out,
        ("candidate", "score", "gain", "parents", "first line"),
        [
            (
                row.candidate,
                score(row.score),
                f"{row.gain:+.3f}",
                " ".join(str(parent) for parent in row.parents) or None,
                row.first_line,
            )
            for row in rows
        ],
    )


def _print_one(session: Session, chosen: Candidate, seed: Candidate, *, diff: bool) -> None:
    if diff:
        changes = diff_to_seed(chosen, seed)
        print_raw(session.out, changes or f"Candidate {chosen.number} is the same as the seed.")
    else:
        print_raw(session.out, chosen.skill)
