"""A library on disk whose jobs a test moves by hand: everything is real but the worker."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from stash_mcp.backends.base import RunOrder, TrainOrder
from stash_mcp.backends.local import LocalBackend
from stash_mcp.checkpoints import RewardStats, write_stats
from stash_mcp.models import Candidate, Heldout, Job, Progress, RewardModel, Run, Skill
from stash_mcp.runs.folder import JobFolder
from stash_mcp.runs.store import JobStore
from stash_mcp.settings import Settings
from stash_mcp.skills.document import render
from stash_mcp.storage.database import Database

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DESCRIPTION = "Use it to answer the customers of the shop."


class Stage:
    def __init__(self, root: Path) -> None:
        self.settings = Settings(
            home=root / "home",
            project_dir=root / "project",
            claude_config_dir=root / "claude",
            user_home=root / "user",
        )
        self.settings.project_dir.mkdir(parents=True)
        self.now = START
        self.backend = self.open(self.settings)
        self.store = JobStore(Database(self.settings.library_path), self.clock)

    def open(self, settings: Settings) -> LocalBackend:
        numbers = itertools.count(1)
        return LocalBackend(
            settings,
            clock=self.clock,
            new_id=lambda: str(next(numbers)),
            start_worker=lambda _settings: False,
        )

    def clock(self) -> datetime:
        return self.now

    # --- conversations ---

    def conversations(self, count: int = 12) -> None:
        """c-00 and so on: a question and an answer; every second one is rated down, all have a
        comment.
        """
        rows = [
            conversation(
                f"c-{number:02}",
                "Where is my parcel?" + f" It is number {number}." * bool(number),
                "Tell me the order number, please.",
            )
            for number in range(count)
        ]
        notes = [
            {
                "trace_id": row["id"],
                "rating": -1 if number % 2 else 1,
                "comment": f"Ask for the order number first, case {number}.",
                "created_at": START.isoformat(),
            }
            for number, row in enumerate(rows)
        ]
        self.backend.import_traces(jsonl(rows), annotations=jsonl(notes))

    # --- jobs ---

    def train(self) -> RewardModel:
        """A queued training on everything in the library."""
        return self.backend.train_reward_model(TrainOrder(name="reviews"))

    def begin(self) -> Job:
        """The oldest queued job, now running."""
        job = self.store.claim_next()
        assert job is not None
        self.store.add_event(job.id, "Started.")
        return job

    def trained(self) -> RewardModel:
        """A reward model that has succeeded, one minute after it was begun."""
        self.train()
        job = self.begin()
        self.now += timedelta(seconds=60)
        write_checkpoint(JobFolder(self.settings.reward_models_dir / job.id).model_path)
        self.store.succeed(job.id, json.dumps({"metrics": METRICS}))
        return self.backend.get_reward_model(job.id)

    def start(self, reward_model_id: str) -> Run:
        """A queued run."""
        order = RunOrder(
            new=True,
            reward_model_id=reward_model_id,
            task_model="openai/small",
            reflection_model="builtin/comments",
        )
        return self.backend.start_run(order).run

    def running(self, *scored: tuple[str, float]) -> Run:
        """A run under way that has scored these candidates, on a model trained for it."""
        if not self.backend.list_traces(limit=1, offset=0).total:
            self.conversations()
        run = self.start(self.trained().id)
        self.begin()
        self.score(run.id, *scored)
        return self.backend.get_run(run.id)

    def report(self, job_id: str, **progress: object) -> None:
        self.store.report(job_id, Progress.model_validate(progress))

    def score(self, run_id: str, *scored: tuple[str, float]) -> None:
        """Candidates of the run: body and score, the seed first."""
        for number, (body, score) in enumerate(scored):
            parents = (0,) if number else ()
            candidate = Candidate(number=number, skill=skill(body), score=score, parents=parents)
            self.store.put_candidate(run_id, candidate)

    def finished(self, *scored: tuple[str, float]) -> Run:
        """A run that has succeeded with these candidates."""
        run = self.running(*scored)
        self.now += timedelta(seconds=90)
        self.store.succeed(run.id, json.dumps(result(scored)))
        return self.backend.get_run(run.id)

    def cancelled(self, *scored: tuple[str, float]) -> Run:
        """A run that was cancelled when it had scored these candidates."""
        run = self.running(*scored)
        self.backend.cancel(run.id)
        return self.backend.get_run(run.id)

    def failed(self, *scored: tuple[str, float]) -> Run:
        run = self.running(*scored)
        self.store.fail(run.id, reason="The task model refused the key.", error="...\nlog")
        return self.backend.get_run(run.id)

    def write_log(self, job_id: str, text: str) -> None:
        """Add to the log of a run's worker."""
        with JobFolder(self.settings.runs_dir / job_id).log_path.open("a", encoding="utf-8") as log:
            log.write(text)


METRICS = {
    "train_pairs": 10,
    "eval_pairs": 2,
    "eval_accuracy": 0.75,
    "final_loss": 0.5,
    "epochs": 1,
    "device": "cpu",
    "seconds": 12.5,
}


def conversation(trace_id: str, *contents: str) -> dict[str, object]:
    """Steps of user and assistant in turn."""
    texts = contents or ("Where is my parcel?", "Tell me the order number, please.")
    steps = [
        {"role": ("user", "assistant")[index % 2], "content": text}
        for index, text in enumerate(texts)
    ]
    return {"id": trace_id, "title": f"Conversation {trace_id}", "steps": steps}


def jsonl(rows: list[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def skill(body: str) -> str:
    return render(Skill(name="polite-support", description=DESCRIPTION, body=body))


def result(scored: tuple[tuple[str, float], ...]) -> dict[str, object]:
    best = max(scored, key=lambda pair: pair[1])
    heldout = Heldout(examples=4, seed_score=0.41, best_score=0.58, gain=0.17, low=-0.02, high=0.36)
    return {
        "skill_name": "polite-support",
        "skill_description": DESCRIPTION,
        "best_skill": skill(best[0]),
        "best_score": best[1],
        "seed_skill": skill(scored[0][0]),
        "seed_score": scored[0][1],
        "candidates": [{"skill": skill(body), "score": score} for body, score in scored],
        "best_candidate": scored.index(best),
        "heldout": heldout.model_dump(),
        "verdict": "The skill helped; how far is uncertain.",
    }


def write_checkpoint(folder: Path) -> None:
    """Files that pass every check of a checkpoint, around weights of one number."""
    folder.mkdir(parents=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(4)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text(json.dumps({"num_labels": 1}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    write_stats(folder, RewardStats(mean=0.0, std=1.0))
