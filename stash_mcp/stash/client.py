"""The calls of Stash's contract, one method each. Plain methods, from any thread."""

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from stash_mcp.errors import (
    StashError,
    StashKeyError,
    StashMisfitError,
    StashNotFoundError,
    StashNotReadyError,
    StashRejectedError,
    StashUncertainError,
)
from stash_mcp.settings import StashAccess
from stash_mcp.stash import shapes
from stash_mcp.stash.address import address_of, checked_id
from stash_mcp.stash.answers import read_text
from stash_mcp.stash.connection import Answer, Call, Connection
from stash_mcp.stash.http_client import DEFAULT_LIMITS, Limits
from stash_mcp.stash.lines import Odd, lines
from stash_mcp.stash.matching import is_annotation_of, is_start_of, is_training_of
from stash_mcp.stash.rows import Rows, read_line
from stash_mcp.stash.sender import Look, Sender, Sleep, Uniform
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart, RunStart, Training
from stash_mcp.stash.shapes import (
    AnnotationShape,
    ExportedAnnotationShape,
    FormatShape,
    Holding,
    ImportShape,
    Listed,
    RewardModelShape,
    RunShape,
    TracePageShape,
    TraceShape,
    Unread,
)
from stash_mcp.stash.states import not_there, not_trained
from stash_mcp.stash.wording import left_out

T = TypeVar("T")
H = TypeVar("H", bound=Holding)
One = TypeVar("One", RunShape, RewardModelShape, TraceShape)

MAX_PAGE = 500
"""Traces that one page may have."""

_RUNS = Rows(shapes.RUNS, shapes.RUN, "rows")
_REWARD_MODELS = Rows(shapes.REWARD_MODELS, shapes.REWARD_MODEL, "rows")
_TRACES = Rows(shapes.TRACE_PAGE, shapes.TRACE_SUMMARY, "traces")
_TRACE = Rows(shapes.TRACE, shapes.ANNOTATION, "annotations")


def open_client(
    access: StashAccess,
    limits: Limits = DEFAULT_LIMITS,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Sleep = time.sleep,
    uniform: Uniform = random.uniform,
) -> "StashClient":
    """A client for this access; nothing is sent yet.

    StashAddressError for a URL that is not used, StashKeyError where there is no key.
    """
    address = address_of(access)
    if access.api_key is None:
        raise StashKeyError(
            f"There is no key for {address.base.host}: {access.key_from}.",
            "Put one into STASH_API_KEY, or sign in with the stashai command.",
        )
    connection = Connection(address, access.api_key, limits, clock)
    return StashClient(Sender(connection, sleep, uniform))


class StashClient:
    """Every method raises a StashError where it does not return; `close` ends its thread.

    GETs, changes and deletions are repeated where an error passes. What makes something new is
    looked for before it is sent again, so that it is made once.
    """

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.address = sender.connection.address

    def __enter__(self) -> "StashClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.sender.connection.close()

    # --- runs ---

    def start_run(self, order: RunStart) -> RunShape:
        """Start one run, once. StashNotReadyError names the state of an untrained model."""
        look = Look(
            self._call("GET", "/gepa-runs"),
            _RUNS,
            lambda runs, since: _first(runs.rows, lambda run: is_start_of(order, run, since)),
            "runs",
        )
        try:
            return self.sender.post_once(self._post("/gepa-runs", order), shapes.RUN, look)
        except StashNotReadyError as error:
            raise not_trained(self.get_reward_model(order.reward_model_id)) from error

    def get_run(self, run_id: str) -> RunShape:
        path = f"/gepa-runs/{checked_id(run_id, 'run')}"
        return _as_asked(run_id, "run", self._get(path, shapes.RUN))

    def list_runs(self) -> Listed[RunShape]:
        """Newest first."""
        return self._get_rows("/gepa-runs", _RUNS)

    def skill(self, run_id: str) -> str:
        """The best candidate's SKILL.md; StashNotReadyError with the state of an unfinished run."""
        call = self._call("GET", f"/gepa-runs/{checked_id(run_id, 'run')}/skill")
        try:
            return self.sender.ask(call, self._text, repeatable=True)
        except StashNotFoundError as error:
            raise not_there(self.get_run(run_id), "run", "skill") or error from None

    # --- reward models ---

    def train(self, order: Training) -> RewardModelShape:
        """Start one training, once."""
        look = Look(
            self._call("GET", "/reward-models"),
            _REWARD_MODELS,
            lambda models, since: _first(models.rows, lambda m: is_training_of(order, m, since)),
            "reward models",
        )
        return self.sender.post_once(self._post("/reward-models", order), shapes.REWARD_MODEL, look)

    def get_reward_model(self, model_id: str) -> RewardModelShape:
        path = f"/reward-models/{checked_id(model_id, 'reward model')}"
        return _as_asked(model_id, "reward model", self._get(path, shapes.REWARD_MODEL))

    def list_reward_models(self) -> Listed[RewardModelShape]:
        """Newest first."""
        return self._get_rows("/reward-models", _REWARD_MODELS)

    def weights_call(self, model_id: str) -> Call:
        """The request that answers with the archive or with where it lies; see weights.py."""
        return self._call("GET", f"/reward-models/{checked_id(model_id, 'reward model')}/weights")

    # --- traces ---

    def formats(self) -> tuple[FormatShape, ...]:
        return self._get("/formats", shapes.FORMATS)

    def import_traces(
        self, data: str, format: str = "auto", *, repeatable: bool = False
    ) -> ImportShape:
        """Store conversations, all or none.

        repeatable: every conversation has an `id`, so that sending them twice makes none twice.
        Without it a lost answer is a StashUncertainError.
        """
        call = self._call("POST", "/traces/import", _import_body(data, format))
        try:
            return self.sender.ask(call, self.sender.reader(shapes.IMPORT), repeatable=repeatable)
        except StashError as error:
            if repeatable or not (error.reached and error.passing):
                raise
            raise StashUncertainError(
                f"{error.problem} Whether the conversations were stored is not known.",
                "List the traces before you send them again.",
                reached=True,
            ) from error

    def list_traces(self, *, limit: int = 50, offset: int = 0) -> TracePageShape:
        """Newest first; `limit` from 1 to MAX_PAGE."""
        call = self._call("GET", "/traces", limit=limit, offset=offset)
        return self.sender.ask(call, self.sender.rows_reader(_TRACES), repeatable=True)

    def get_trace(self, trace_id: str) -> TraceShape:
        """StashMisfitError where it cannot be read; annotations that cannot are in `unread`."""
        path = f"/traces/{checked_id(trace_id, 'trace')}"
        return _as_asked(trace_id, "trace", self._get_rows(path, _TRACE))

    def delete_trace(self, trace_id: str) -> None:
        self._delete(f"/traces/{checked_id(trace_id, 'trace')}")

    # --- annotations ---

    def annotate(self, trace_id: str, order: AnnotationStart) -> AnnotationShape:
        """Add one annotation, once."""
        path = f"/traces/{checked_id(trace_id, 'trace')}"
        look = Look(
            self._call("GET", path),
            _TRACE,
            lambda trace, since: _first(
                trace.annotations, lambda known: is_annotation_of(order, known, since)
            ),
            "trace's annotations",
        )
        call = self._post(f"{path}/annotations", order)
        return self.sender.post_once(call, shapes.ANNOTATION, look)

    def change_annotation(self, annotation_id: str, change: AnnotationChange) -> AnnotationShape:
        path = f"/annotations/{checked_id(annotation_id, 'annotation')}"
        call = self._call("PATCH", path, change.model_dump_json(exclude_unset=True).encode())
        return self.sender.ask(call, self.sender.reader(shapes.ANNOTATION), repeatable=True)

    def delete_annotation(self, annotation_id: str) -> None:
        self._delete(f"/annotations/{checked_id(annotation_id, 'annotation')}")

    # --- exports: read as they come, never held whole ---
    # A line that cannot be read is told to `odd`; without that, a StashMisfitError at the end.

    def export_traces(self, odd: Odd | None = None) -> Iterator[str]:
        """Lines of the Stash Trace Format, without line ends."""
        return self._lines("/export/traces", odd)

    def export_annotations(self, odd: Odd | None = None) -> Iterator[ExportedAnnotationShape]:
        shape, secrets = shapes.EXPORTED_ANNOTATION, self.sender.connection.secrets
        with _odd_ones(odd) as told:
            for line in self._lines("/export/annotations", told):
                row = read_line(line, shape, told, secrets)
                if row is not None:
                    yield row

    def export_pairs(self, odd: Odd | None = None) -> Iterator[str]:
        """Lines of preference pairs as JSON, without line ends."""
        return self._lines("/export/pairs", odd)

    def rest(self, attempt: int, error: StashError) -> None:
        """Before an export that broke off is begun again, as after a request that failed."""
        self.sender.sleep(self.sender.pause_after(attempt, error) or 0.0)

    # --- how ---

    def _get(self, path: str, shape: TypeAdapter[T]) -> T:
        return self.sender.ask(self._call("GET", path), self.sender.reader(shape), repeatable=True)

    def _get_rows(self, path: str, rows: Rows[H, Any]) -> H:
        call = self._call("GET", path)
        return self.sender.ask(call, self.sender.rows_reader(rows), repeatable=True)

    def _text(self, answer: Answer) -> str:
        return read_text(answer, self.sender.connection.secrets)

    def _delete(self, path: str) -> None:
        call = self._call("DELETE", path)
        try:
            self.sender.ask(call, _nothing, repeatable=False)
            return
        except StashError as error:
            if not (error.reached and error.passing):
                raise
        try:
            self.sender.ask(call, _nothing, repeatable=True)
        except StashNotFoundError:
            # The answer to the first request was lost, and it had taken effect.
            return

    def _lines(self, path: str, odd: Odd | None) -> Iterator[str]:
        connection = self.sender.connection
        longest, secrets = connection.limits.answer_bytes, connection.secrets
        with _odd_ones(odd) as told, self.sender.stream_begun(self._call("GET", path)) as stream:
            yield from lines(stream, longest, told, secrets)

    def _post(self, path: str, order: BaseModel) -> Call:
        # What is left out takes the server's default; null would be a value.
        return self._call("POST", path, order.model_dump_json(exclude_none=True).encode())

    def _call(self, method: str, path: str, body: bytes | None = None, **query: int) -> Call:
        url = self.address.url(path)
        headers = {} if body is None else {"content-type": "application/json"}
        return Call(method, url.copy_merge_params(query) if query else url, body, headers)


def _as_asked(id: str, noun: str, found: One) -> One:
    """StashMisfitError where what came is another one: a proxy or a cache mixes up answers."""
    # A server may spell an id otherwise than it was asked by.
    if found.id.lower().replace("-", "") == id.lower().replace("-", ""):
        return found
    raise StashMisfitError(
        f"Stash was asked for the {noun} {id} and answered with the {noun} {found.id}.",
        "Nothing was taken from it. Try again; if it stays, look for a proxy or a cache on the way "
        "to Stash that mixes up answers.",
        passing=True,
        reached=True,
    )


def _first(items: Sequence[T], fits: Callable[[T], bool]) -> T | None:
    return next((item for item in items if fits(item)), None)


@contextlib.contextmanager
def _odd_ones(odd: Odd | None) -> Iterator[Odd]:
    """`odd`; where there is none, what is told is an error at the end of the block."""
    told: list[Unread] = []
    yield odd or told.append
    missing = left_out(told, "exported line")
    if missing is not None:
        raise StashMisfitError(missing, "All the others came.", reached=True)


def _nothing(answer: Answer) -> None:
    return None


def _import_body(data: str, format: str) -> bytes:
    try:
        return json.dumps({"format": format, "data": data}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise StashRejectedError(
            "The conversations hold half of a character (a lone surrogate).",
            "Save them as UTF-8. Nothing was sent.",
        ) from None
