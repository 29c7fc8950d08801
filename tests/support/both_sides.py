"""A library here and a Stash there, for what goes between them."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from stand_in_stash import StandIn

from stash_mcp.backends.hybrid import Hybrid, SyncReport
from stash_mcp.backends.local import LocalBackend
from stash_mcp.models import Annotation
from stash_mcp.stash import Limits, StashClient
from stash_mcp.stash.sent import AnnotationStart
from support.staging import Stage
from support.stash_calls import client_of

QUICK = Limits(connect_seconds=5, read_seconds=10, total_seconds=20)


class BothSides:
    def __init__(self, root: Path, stash: StandIn) -> None:
        self.stage = Stage(root)
        self.stash = stash
        self._client: StashClient | None = None

    @property
    def backend(self) -> LocalBackend:
        return self.stage.backend

    @contextlib.contextmanager
    def client(self) -> Iterator[StashClient]:
        """The same one all along: opening one takes longer than what it is used for."""
        if self._client is None:
            self._client = client_of(self.stash, self.stash.key, QUICK)
        yield self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def pull(self, *patterns: str, **options: object) -> SyncReport:
        with self.client() as client:
            return self.hybrid(client).pull(patterns or None, **options)  # type: ignore[arg-type]

    def push(self, *patterns: str, **options: object) -> SyncReport:
        with self.client() as client:
            return self.hybrid(client).push(patterns or None, **options)  # type: ignore[arg-type]

    def hybrid(self, client: StashClient) -> Hybrid:
        return Hybrid(client, self.stage.settings, self.stage.clock)

    # --- this side ---

    def import_here(self, *rows: dict[str, object]) -> None:
        self.backend.import_traces(jsonl(rows))

    def notes_here(self, trace_id: str) -> tuple[Annotation, ...]:
        return self.backend.get_trace(trace_id).annotations

    def texts_here(self, trace_id: str) -> list[str]:
        return [step.content for step in self.backend.get_trace(trace_id).trace.steps]

    # --- that side ---

    def import_there(self, *rows: dict[str, object]) -> tuple[str, ...]:
        with self.client() as client:
            return client.import_traces(jsonl(rows).decode()).trace_ids

    def annotate_there(self, remote_id: str, step: int | None = None, **said: object) -> str:
        with self.client() as client:
            steps = {row.index: row.id for row in client.get_trace(remote_id).steps}
            order = AnnotationStart(step_id=None if step is None else steps[step], **said)
            return client.annotate(remote_id, order).id

    def said_there(self) -> list[tuple[str | None, int | None, str | None]]:
        """External id, rating and comment of each annotation of Stash, sorted."""
        world = self.stash.world
        said = (
            (world.traces[row.trace_id].external_id, row.rating, row.comment)
            for row in world.annotations.values()
        )
        return sorted(said, key=str)

    def texts_there(self, external_id: str) -> list[list[str]]:
        """The steps' texts of each trace of Stash with this external id."""
        return [
            [step.content for step in trace.steps]
            for trace in self.stash.world.traces.values()
            if trace.external_id == external_id
        ]

    def writes(self) -> list[str]:
        """Paths of what was sent to Stash so far."""
        return [a.path for a in self.stash.asked if a.method != "GET"]


def talk(id: str | None, *texts: str) -> dict[str, object]:
    texts = texts or ("Where is my parcel?", "On its way.")
    steps = [
        {"role": ("user", "assistant")[index % 2], "content": text}
        for index, text in enumerate(texts)
    ]
    row: dict[str, object] = {"title": "A talk", "steps": steps}
    return row if id is None else {"id": id, **row}


def jsonl(rows: Sequence[dict[str, object]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
