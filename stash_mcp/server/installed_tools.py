"""Tools for installing a candidate, and for what is installed."""

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from stash_mcp.backends.installations import InstallOrder, RollbackOrder, Scope, UninstallOrder
from stash_mcp.server.installed_results import InstalledList, InstallResult, UninstallResult
from stash_mcp.server.opening import LazyBackend
from stash_mcp.server.parameters import AtLeast0, AtLeast1, Limit, Offset, RunId, given, make_tool

InstalledName = Annotated[str, Field(min_length=1, description="Name, or path if several have it")]
DryRun = Annotated[bool, Field(description="Show the diff and paths; write nothing")]
Force = Annotated[bool, Field(description="Replace what a person made or edited; a backup stays")]
AcceptFindings = Annotated[
    tuple[str, ...], Field(max_length=50, description="Scan rules that the person has accepted")
]


class InstalledTools:
    def __init__(self, backend: LazyBackend) -> None:
        self._backend = backend

    def tools(self) -> list[Tool]:
        return [
            make_tool(self.install_skill, "Install a skill", replaces=True, idempotent=True),
            make_tool(self.list_installed_skills, "List installed skills", reads_only=True),
            make_tool(self.rollback_skill, "Go back to a former version", replaces=True),
            make_tool(self.uninstall_skill, "Take an installed skill away", replaces=True),
        ]

    def install_skill(
        self,
        run_id: RunId,
        candidate: Annotated[
            AtLeast0 | None,
            Field(
                description="Default: the best one",
            ),
        ] = None,
        scope: Annotated[
            Scope, Field(description="For this project, or for all of the user's")
        ] = "project",
        agents: Annotated[
            tuple[str, ...],
            Field(
                min_length=1,
                max_length=20,
                description="claude-code, codex, cursor, gemini-cli, copilot, opencode, goose, "
                "amp, windsurf, agents; or a skills folder's path",
            ),
        ] = ("claude-code",),
        accept_findings: AcceptFindings = (),
        force: Force = False,
        dry_run: DryRun = False,
    ) -> InstallResult:
        """Use this when the person has seen a candidate and wants it: writes its SKILL.md into
        the agents' skills folders, into all or none.

        A file that this tool did not write, or that was edited since, is not touched; the answer
        then shows the difference. Set force or accept_findings only if the person says so.
        """
        order = InstallOrder(
            run_id=run_id,
            candidate=candidate,
            scope=scope,
            agents=agents,
            accept_findings=accept_findings,
            force=force,
            dry_run=dry_run,
        )
        backend = self._backend()
        run = backend.get_run(run_id)
        return InstallResult.of(backend.install_skill(order), run)

    def list_installed_skills(
        self,
        skill: Annotated[
            str, Field(description="Only this one, by name or path, with versions and diff")
        ] = "",
        version: Annotated[
            AtLeast1 | None, Field(description="To compare the file with; default: the last")
        ] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> InstalledList:
        """Use this to see which skills were installed and where, whether a person edited or removed
        them, where they came from, and their versions.
        """
        name = given(skill)
        if name is None:
            return InstalledList.page(self._backend().list_installed_skills(), limit, offset)
        detail = self._backend().get_installed_skill(name, version)
        return InstalledList.one(detail, limit, offset)

    def rollback_skill(
        self,
        skill: InstalledName,
        version: Annotated[
            AtLeast1 | None, Field(description="Default: the newest with another text")
        ] = None,
        accept_findings: AcceptFindings = (),
        force: Force = False,
        dry_run: DryRun = False,
    ) -> InstallResult:
        """Use this when a person wants a former version of an installed skill back, or one that was
        taken away. It becomes the newest version. An edited file is not touched without force.
        """
        order = RollbackOrder(
            skill=skill,
            version=version,
            accept_findings=accept_findings,
            force=force,
            dry_run=dry_run,
        )
        return InstallResult.of([self._backend().rollback_skill(order)])

    def uninstall_skill(
        self, skill: InstalledName, force: Force = False, dry_run: DryRun = False
    ) -> UninstallResult:
        """Use this when a person wants an installed skill gone. Only a file that this tool wrote is
        removed; a backup stays, and rollback_skill brings it back.
        """
        order = UninstallOrder(skill=skill, force=force, dry_run=dry_run)
        return UninstallResult.of(self._backend().uninstall_skill(order))
