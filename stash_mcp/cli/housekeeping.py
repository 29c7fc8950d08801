"""`cache`, `prune`, `disk`: what is kept, how much room it takes, and taking away what is old."""

from typing import Annotated

import typer

from stash_mcp.cli.printing import print_json, print_table, print_text
from stash_mcp.cli.session import Json, session_of
from stash_mcp.server.counting import count, size


def register(app: typer.Typer) -> None:
    app.command("cache")(cache)
    app.command("prune")(prune)
    app.command("disk")(disk)


def cache(
    context: typer.Context,
    clear: Annotated[bool, typer.Option("--clear", help="Forget them.")] = False,
    as_json: Json = False,
) -> None:
    """Show how many answers of models are kept, so that no run pays for them again."""
    session = session_of(context)
    report = session.backend.clear_cache() if clear else session.backend.cache()
    if as_json:
        print_json(session.out, {**report.model_dump(), "cleared": clear})
        return
    kept = f"{count(report.entries, 'answer')} ({size(report.bytes)})"
    print_text(session.out, f"Forgot {kept}." if clear else f"{kept} kept; --clear forgets them.")


def prune(
    context: typer.Context,
    older_than_days: Annotated[
        int, typer.Option(min=0, max=36_500, metavar="DAYS", help="Since the run ended.")
    ] = 30,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove the inputs and logs of runs that ended long ago.

    Their results and candidates stay in the library, and so does everything of a run whose skill
    is installed. A run that failed or was cancelled cannot be resumed after this.
    """
    session = session_of(context)
    report = session.backend.prune(older_than_days=older_than_days, dry_run=dry_run)
    if as_json:
        print_json(session.out, report)
        return
    done = "Would remove" if report.dry_run else "Removed"
    folders = count(len(report.run_ids), "run")
    print_text(session.out, f"{done} the folders of {folders} ({size(report.bytes)}).")
    for run_id in report.run_ids:
        print_text(session.out, f"  {run_id}")
    if report.kept_installed:
        kept = count(report.kept_installed, "run")
        print_text(session.out, f"Kept {kept} with an installed skill.")


def disk(context: typer.Context, as_json: Json = False) -> None:
    """Show how much room the data takes on the disk, and where it is."""
    session = session_of(context)
    use = session.backend.disk_use()
    if as_json:
        print_json(session.out, use)
        return
    parts = (
        ("library", use.library, "conversations, comments, candidates"),
        ("calls", use.calls, "answers paid for: stash-skills cache --clear"),
        ("runs", use.runs, "inputs and logs: stash-skills prune"),
        ("reward models", use.reward_models, "checkpoints and logs"),
        ("backups", use.backups, "replaced skills, and all versions"),
    )
    total = sum(bytes for _, bytes, _ in parts)
    print_table(
        session.out,
        ("what", "size", "holds"),
        [(name, size(bytes), holds) for name, bytes, holds in parts] + [("all", size(total), "")],
    )
    print_text(session.out, f"In {use.home}")
