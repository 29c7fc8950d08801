"""Runs that have ended, made without searching for anything: what installing by itself starts from.

Every run has a skill of its own name, in one skills folder. A worker that would look at the queue
meanwhile is kept away by the lock that a living worker holds.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from stash_mcp.backends.local import LocalBackend, open_local_backend
from stash_mcp.models import (
    Candidate,
    InstallTarget,
    InstallWish,
    JobKind,
    Plan,
    RunRequest,
    RunResult,
    Skill,
)
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.skills.document import render
from stash_mcp.storage.database import Database
from stash_mcp.storage.files import private_dir, write_json

_SEED_SCORE, _BEST_SCORE = 0.4, 0.6
_PLAN = Plan(
    examples=4,
    heldout_examples=0,
    skipped=(),
    commented_examples=4,
    max_metric_calls=20,
    proposals_at_best=2,
    proposals_at_worst=2,
    task_calls_at_most=20,
    reflection_calls_at_most=4,
    prompt_tokens_estimate=1000,
)


@dataclass(frozen=True)
class FinishedRuns:
    """Below `root`: the library, and the skills folder of a project."""

    root: Path

    @property
    def settings(self) -> Settings:
        return Settings(
            self.root / "home",
            self.root / "project",
            self.root / "claude",
            user_home=self.root / "user",
        )

    @property
    def environment(self) -> dict[str, str]:
        """For a command that is to work with the same library."""
        settings = self.settings
        return {
            "STASH_MCP_HOME": str(settings.home),
            "CLAUDE_PROJECT_DIR": str(settings.project_dir),
            "CLAUDE_CONFIG_DIR": str(settings.claude_config_dir),
        }

    @property
    def skills_dir(self) -> Path:
        return self.settings.project_dir / ".claude" / "skills"

    def backend(self) -> LocalBackend:
        return open_local_backend(self.settings, start_worker=lambda settings: False)

    def store(self) -> JobStore:
        return JobStore(Database(self.settings.library_path), lambda: datetime.now(UTC))

    def queue(self, number: int) -> None:
        """A run that waits for its worker, with the candidates that it will have."""
        self.settings.project_dir.mkdir(exist_ok=True)
        store, run_id = self.store(), id_of(number)
        target = InstallTarget(
            agent="claude-code", scope="project", skills_dir=str(self.skills_dir)
        )
        request = RunRequest(
            reward_model_id="rm",
            task_model="openai/task",
            reflection_model="builtin/comments",
            max_metric_calls=20,
            skill_name=name_of(number),
        )
        wish = InstallWish(targets=(target,))
        store.create(run_id, JobKind.GEPA, run_id, request, _PLAN, install=wish)
        store.put_candidate(run_id, Candidate(number=0, skill=text_of(number), score=_SEED_SCORE))
        best = Candidate(number=1, skill=text_of(number, best=True), score=_BEST_SCORE)
        store.put_candidate(run_id, best)
        private_dir(self.folder(number).path)

    def finish(self, store: JobStore, number: int) -> None:
        """What a worker does at a run's end, but for the installing."""
        result = result_of(number).model_dump(mode="json")
        write_json(self.folder(number).result_path, result)
        store.succeed(id_of(number), result_of(number).model_dump_json())

    def folder(self, number: int) -> JobFolder:
        return JobFolder(self.settings.runs_dir / id_of(number))

    def skill_file(self, number: int) -> Path:
        return self.skills_dir / name_of(number) / "SKILL.md"


def id_of(number: int) -> str:
    return f"run-{number:04}"


def number_of(run_id: str) -> int:
    return int(run_id.removeprefix("run-"))


def name_of(number: int) -> str:
    return f"skill-{number:04}"


def text_of(number: int, *, best: bool = False) -> str:
    body = f"Answer politely, in case {number}." + " Ask for the order number first." * best
    return render(Skill(name=name_of(number), description="Answers customers.", body=body))


def result_of(number: int) -> RunResult:
    candidates = [
        {"skill": text_of(number), "score": _SEED_SCORE},
        {"skill": text_of(number, best=True), "score": _BEST_SCORE},
    ]
    return RunResult.model_validate(
        {
            "skill_name": name_of(number),
            "skill_description": "Answers customers.",
            "best_skill": text_of(number, best=True),
            "best_score": _BEST_SCORE,
            "seed_skill": text_of(number),
            "seed_score": _SEED_SCORE,
            "candidates": candidates,
            "best_candidate": 1,
            "heldout": None,
            "verdict": "The skill helped; how far is uncertain.",
        }
    )
