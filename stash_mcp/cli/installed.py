"""`install`, `installed`, `rollback`, `uninstall`, `targets`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from stash_mcp.backends.installations import (
    InstalledDetail,
    InstalledSkill,
    InstallOrder,
    InstallOutcome,
    RollbackOrder,
    Scope,
    UninstallOrder,
)
from stash_mcp.cli.printing import print_json, print_raw, print_table, print_text, score
from stash_mcp.cli.session import Json, Session, session_of
from stash_mcp.server.installed_results import (
    findings_in_words,
    gain,
    gain_kind,
    gone_in_words,
    notes_in_words,
)
from stash_mcp.server.wording import partial_in_words

Skill = Annotated[
    str, typer.Argument(metavar="SKILL", help="Its name; or its path, if several have the name.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace what is not ours or was edited; a backup is kept.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the diff and the paths; write nothing.")
]
AcceptFinding = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="A finding of the scan that you accept; may be given again."),
]


def register(app: typer.Typer) -> None:
    app.command("install")(install)
    app.command("installed")(installed)
    app.command("rollback")(rollback)
    app.command("uninstall")(uninstall)
    app.command("targets")(targets)


def install(
    context: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Its id, as `runs` shows it.")],
    candidate: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Default: the best one.")
    ] = None,
    scope: Annotated[
        Scope, typer.Option(help="For this project, or for all of yours.")
    ] = "project",
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT",
            help="As `targets` lists them, or a skills folder's path; may be given again. "
            "Default: claude-code.",
        ),
    ] = None,
    accept_finding: AcceptFinding = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a candidate's SKILL.md into the skills folders of agents: into all of them or none."""
    session = session_of(context)
    order = InstallOrder(
        run_id=run_id,
        candidate=candidate,
        scope=scope,
        agents=tuple(agent or ["claude-code"]),
        accept_findings=tuple(accept_finding or ()),
        force=force,
        dry_run=dry_run,
    )
    run = session.backend.get_run(run_id)
    outcomes = session.backend.install_skill(order)
    if as_json:
        rows = [outcome.model_dump(mode="json") for outcome in outcomes]
        partial = partial_in_words(run) is not None
        print_json(session.out, {"installed": rows, "partial": partial, "dry_run": dry_run})
        return
    if warning := partial_in_words(run):
        print_text(session.out, warning)
    _print_outcomes(session, outcomes)


def _print_outcomes(session: Session, outcomes: Sequence[InstallOutcome]) -> None:
    for line in findings_in_words(outcomes[0].findings):
        print_text(session.out, f"Finding: {line}")
    for outcome in outcomes:
        _print_outcome(session, outcome)


def _print_outcome(session: Session, outcome: InstallOutcome) -> None:
    done, action = outcome.installation, outcome.action.capitalize()
    if outcome.dry_run:
        action = "Nothing was written. To be " + outcome.action + ":"
    print_text(session.out, f"{action} {done.path} (candidate {done.candidate}).")
    if outcome.backup:
        kept = "would be kept" if outcome.dry_run else "is kept"
        print_text(session.out, f"What was there before {kept} in {outcome.backup}.")
    if outcome.dry_run and outcome.diff:
        print_raw(session.out, outcome.diff)
    print_text(session.out, outcome.visibility)


def installed(
    context: typer.Context,
    skill: Annotated[
        str | None,
        typer.Argument(metavar="[SKILL]", help="Only this one, by name or path, with versions."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="To compare the file with. Default: the last one."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the skills that were installed, and how each stands; or one, with its versions and the
    diff from the file to a version.
    """
    session = session_of(context)
    if skill is None:
        _print_list(session, session.backend.list_installed_skills(), as_json)
        return
    detail = session.backend.get_installed_skill(skill, version)
    if as_json:
        print_json(session.out, detail)
    else:
        _print_detail(session, detail)


def _print_list(session: Session, skills: Sequence[InstalledSkill], as_json: bool) -> None:
    if as_json:
        print_json(session.out, skills)
        return
    print_table(
        session.out,
        ("skill", "state", "version", "agent", "in-sample score", "gain", "run", "when", "path"),
        [
            (
                row.installation.name,
                row.state,
                row.installation.version,
                ", ".join(row.agents) or row.installation.agent,
                score(row.origin.score),
                _gain(row),
                row.installation.run_id,
                f"{row.installation.installed_at:%Y-%m-%d %H:%M}",
                row.installation.path,
            )
            for row in skills
        ],
    )


def _gain(row: InstalledSkill) -> str | None:
    """`+0.170 held-out`; None where it is not known."""
    gained = gain(row)
    return None if gained is None else f"{gained:+.3f} {gain_kind(row)}"


def _print_detail(session: Session, detail: InstalledDetail) -> None:
    skill = detail.skill
    print_text(session.out, f"{skill.installation.path}: {skill.state}", style="bold")
    for note in notes_in_words(skill):
        print_text(session.out, note)
    if skill.origin.reward_model_id:
        print_text(session.out, f"Scored by the reward model {skill.origin.reward_model_id}.")
    if skill.newer_run:
        print_text(session.out, f"The run {skill.newer_run} has a newer one.")
    print_table(
        session.out,
        ("version", "how", "run", "candidate", "when"),
        [
            (row.version, row.kind, row.run_id, row.candidate, f"{row.installed_at:%Y-%m-%d %H:%M}")
            for row in reversed(detail.versions)
        ],
    )
    print_raw(session.out, detail.diff or f"The file is the same as version {detail.version}.")


def rollback(
    context: typer.Context,
    skill: Skill,
    version: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Default: the newest with another text."),
    ] = None,
    accept_finding: AcceptFinding = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Bring a former version of an installed skill back; it becomes the newest version."""
    session = session_of(context)
    order = RollbackOrder(
        skill=skill,
        version=version,
        accept_findings=tuple(accept_finding or ()),
        force=force,
        dry_run=dry_run,
    )
    outcome = session.backend.rollback_skill(order)
    if as_json:
        print_json(session.out, outcome)
    else:
        _print_outcomes(session, [outcome])


def uninstall(
    context: typer.Context,
    skill: Skill,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove an installed SKILL.md. Only one that stash-skills wrote; a backup is kept."""
    session = session_of(context)
    order = UninstallOrder(skill=skill, force=force, dry_run=dry_run)
    outcome = session.backend.uninstall_skill(order)
    if as_json:
        print_json(session.out, outcome)
        return
    done = "Nothing was removed. To be removed:" if dry_run else "Removed"
    print_text(session.out, f"{done} {outcome.installation.path}.")
    if outcome.backup:
        print_text(session.out, f"A copy {'would be' if dry_run else 'is'} in {outcome.backup}.")
    if gone := gone_in_words(outcome):
        print_text(session.out, gone)
    if dry_run:
        print_raw(session.out, outcome.diff)


def targets(context: typer.Context, as_json: Json = False) -> None:
    """List the agents and their skills folders, and which of them are here."""
    session = session_of(context)
    found = session.backend.targets()
    if as_json:
        print_json(session.out, found)
        return
    print_table(
        session.out,
        ("agent", "seems used", "scope", "there", "folder"),
        [
            (row.agent, _yes(row.agent_found), row.scope, _yes(row.exists), row.path)
            for row in found.folders
        ],
    )
    print_text(session.out, f"The project is {found.project_dir}: {found.project_from}.")


def _yes(value: bool) -> str:
    return "yes" if value else "no"
