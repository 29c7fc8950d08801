"""What the stand-in knows: accounts, traces, annotations, reward models and runs."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from stash_mcp.models import Step, Trace


@dataclass(frozen=True)
class Account:
    name: str
    has_feature: bool = True


@dataclass(frozen=True)
class Key:
    account: Account
    read_only: bool = False
    expired: bool = False


_OWNER, _OTHER, _PLAIN = Account("ada"), Account("bob"), Account("eve", has_feature=False)

KEYS = {
    "mc_good_0123456789abcdef": Key(_OWNER),
    "mc_reader_0123456789abcd": Key(_OWNER, read_only=True),
    "mc_expired_0123456789abc": Key(_OWNER, expired=True),
    "mc_other_0123456789abcde": Key(_OTHER),
    "mc_plain_0123456789abcde": Key(_PLAIN),
}
GOOD, READER, EXPIRED, OTHER, PLAIN = KEYS


@dataclass
class StoredTrace:
    id: str
    owner: Account
    external_id: str | None
    title: str | None
    source_format: str
    metadata: dict[str, Any]
    steps: tuple[Step, ...]
    step_ids: tuple[str, ...]
    created_at: datetime

    def as_model(self) -> Trace:
        return Trace(id=self.id, title=self.title, metadata=self.metadata, steps=self.steps)


@dataclass
class StoredAnnotation:
    id: str
    owner: Account
    trace_id: str
    step_id: str | None
    rating: Literal[1, -1] | None
    comment: str | None
    quote: dict[str, str] | None
    created_at: datetime
    label_error: bool = False
    label_error_note: str | None = None


@dataclass
class StoredJob:
    """`fate` is the error it will fail with, if it will. `polls` counts the looks at it."""

    id: str
    owner: Account
    given: dict[str, Any]
    created_at: datetime
    fate: str | None
    status: str = "queued"
    polls: int = 0
    error: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    results: dict[str, Any] = field(default_factory=dict)


@dataclass
class World:
    """clock: the server's time, its Date header included.

    polls: looks at a job until it goes on by one state; 0 leaves that to `jobs.advance`.
    fates: errors of the jobs that come next, in order; None for one that succeeds.
    weights: the archive of every reward model. streams_weights: as older servers did.
    wants_skill_name: as older servers did.
    """

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    polls: int = 1
    fates: list[str | None] = field(default_factory=list)
    weights: bytes = b""
    streams_weights: bool = False
    wants_skill_name: bool = False
    traces: dict[str, StoredTrace] = field(default_factory=dict)
    annotations: dict[str, StoredAnnotation] = field(default_factory=dict)
    models: dict[str, StoredJob] = field(default_factory=dict)
    runs: dict[str, StoredJob] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _count: int = 0

    def new_id(self) -> str:
        self._count += 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"stand-in/{self._count}"))

    def next_fate(self) -> str | None:
        return self.fates.pop(0) if self.fates else None
