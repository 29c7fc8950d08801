"""The API: who may ask, what is asked, and the answer."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs
from uuid import UUID

from pydantic import BaseModel, ValidationError

from stand_in_stash import jobs, requests, views
from stand_in_stash.world import (
    KEYS,
    Account,
    StoredAnnotation,
    StoredJob,
    StoredTrace,
    World,
)
from stash_mcp.datasets.pairs import build_pairs
from stash_mcp.errors import PairsError, TraceFormatError
from stash_mcp.models import Trace
from stash_mcp.traces.formats import FORMATS, parse_traces

PREFIX = "/api/v1/rm"

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: str
    authorization: str | None
    body: bytes
    accept_encoding: str | None = None


@dataclass(frozen=True)
class Reply:
    """`chunked`: sent without its length, as a stream is."""

    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    chunked: bool = False


class Refused(Exception):
    def __init__(self, status: int, detail: object) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def answer(world: World, asked: Asked, signed_url: Callable[[str], str]) -> Reply:
    """signed_url: where the archive of a model lies, by its id, for some minutes."""
    try:
        with world.lock:
            account = _account(asked)
            return _route(_Desk(world, account, asked, signed_url))
    except Refused as refused:
        return _json({"detail": refused.detail}, refused.status)


def _account(asked: Asked) -> Account:
    scheme, _, value = (asked.authorization or "").partition(" ")
    if scheme != "Bearer" or not value:
        raise Refused(401, "Not authenticated")
    key = KEYS.get(value)
    if key is None:
        raise Refused(401, "Invalid API key")
    if key.expired:
        raise Refused(401, "Token expired")
    if not key.account.has_feature:
        raise Refused(404, "Reward models are not enabled for this account")
    if key.read_only and asked.method != "GET":
        raise Refused(403, "This API key is read-only")
    return key.account


def _route(desk: "_Desk") -> Reply:
    method, path = desk.asked.method, desk.asked.path.removeprefix(PREFIX)
    fitting = [(known, found) for known, pattern in ROUTES if (found := pattern.fullmatch(path))]
    for known, found in fitting:
        handle = ROUTES[known, found.re] if known == method else None
        if handle is not None:
            return handle(desk, *(_uuid(value) for value in found.groups()))
    raise Refused(405, "Method Not Allowed") if fitting else Refused(404, "Not Found")


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        problem = {"type": "uuid_parsing", "loc": ["path", "id"], "msg": "not a valid UUID"}
        raise Refused(422, [problem]) from None


def _json(value: object, status: int = 200) -> Reply:
    return Reply(json.dumps(value).encode(), status)


def _ndjson(rows: Iterable[object]) -> Reply:
    body = "".join(json.dumps(row) + "\n" for row in rows)
    return Reply(body.encode(), content_type="application/x-ndjson")


@dataclass(frozen=True)
class _Desk:
    """One request of one account."""

    world: World
    account: Account
    asked: Asked
    signed_url: Callable[[str], str]

    def body(self, shape: type[M]) -> M:
        return self._valid(shape.model_validate_json, self.asked.body, "body")

    def query(self, shape: type[M]) -> M:
        values = {name: found[-1] for name, found in parse_qs(self.asked.query).items()}
        return self._valid(shape.model_validate, values, "query")

    @staticmethod
    def _valid(validate: Callable[[Any], M], value: object, place: str) -> M:
        try:
            return validate(value)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            raise Refused(422, [{**p, "loc": [place, *p["loc"]]} for p in problems]) from None

    def mine(self, stored: dict[str, Any]) -> list[Any]:
        """Newest first."""
        owned = [thing for thing in stored.values() if thing.owner == self.account]
        return owned[::-1]

    def one(self, stored: dict[str, Any], id: str, problem: str) -> Any:
        thing = stored.get(id)
        if thing is None or thing.owner != self.account:
            raise Refused(404, problem)
        return thing

    def trace(self, id: str) -> StoredTrace:
        return self.one(self.world.traces, id, "Trace not found")

    def annotation(self, id: str) -> StoredAnnotation:
        return self.one(self.world.annotations, id, "Annotation not found")

    def model(self, id: str) -> StoredJob:
        return self.one(self.world.models, id, "Reward model not found")

    def run(self, id: str) -> StoredJob:
        return self.one(self.world.runs, id, "GEPA run not found")


# --- traces ---


def _formats(desk: _Desk) -> Reply:
    return _json([{"name": known.name, "description": known.description} for known in FORMATS])


def _import(desk: _Desk) -> Reply:
    asked = desk.body(requests.ImportRequest)
    try:
        found = parse_traces(asked.data.encode(), asked.format)
    except TraceFormatError as error:
        raise Refused(422, str(error)) from None
    given = _given_ids(asked.data)
    known = {old.external_id: old for old in desk.mine(desk.world.traces) if old.external_id}
    ids = []
    for trace in found.traces:
        has_id = trace.id in given
        old = known.get(trace.id) if has_id else None
        ids.append(_store(desk, trace, found.format, has_id, old))
    return _json({"format": found.format, "imported": len(ids), "trace_ids": ids})


def _given_ids(data: str) -> set[str]:
    """The ids that the payload has itself; a conversation without one gets none of these."""
    return set(re.findall(r'"(?:id|traceId|trace_id|sessionId)"\s*:\s*"([^"]*)"', data))


def _store(desk: _Desk, trace: Trace, format: str, has_id: bool, old: StoredTrace | None) -> str:
    world = desk.world
    stored = StoredTrace(
        id=old.id if old else world.new_id(),
        owner=desk.account,
        external_id=trace.id if has_id else None,
        title=trace.title,
        source_format=format,
        metadata=dict(trace.metadata),
        steps=trace.steps,
        step_ids=tuple(world.new_id() for _ in trace.steps),
        created_at=old.created_at if old else world.clock(),
    )
    world.traces[stored.id] = stored
    for known in views.annotations_of(world, stored) if old else ():
        if known.step_id is not None:
            del world.annotations[known.id]
    return stored.id


def _list_traces(desk: _Desk) -> Reply:
    page = desk.query(requests.PageRequest)
    owned = desk.mine(desk.world.traces)
    shown = owned[page.offset : page.offset + page.limit]
    rows = [views.summary(t, views.annotations_of(desk.world, t)) for t in shown]
    return _json({"traces": rows, "total": len(owned)})


def _get_trace(desk: _Desk, id: str) -> Reply:
    return _json(views.detail(desk.world, desk.trace(id)))


def _delete_trace(desk: _Desk, id: str) -> Reply:
    trace = desk.trace(id)
    for known in views.annotations_of(desk.world, trace):
        del desk.world.annotations[known.id]
    del desk.world.traces[id]
    return Reply(status=204)


# --- annotations ---


def _annotate(desk: _Desk, trace_id: str) -> Reply:
    asked = desk.body(requests.AnnotationRequest)
    trace = desk.trace(trace_id)
    step_id = None if asked.step_id is None else str(asked.step_id)
    _check_said(asked.rating, asked.comment)
    _check_step(trace, step_id, asked)
    known = StoredAnnotation(
        id=desk.world.new_id(),
        owner=desk.account,
        trace_id=trace_id,
        step_id=step_id,
        rating=asked.rating,
        comment=asked.comment,
        quote=None if asked.quote is None else asked.quote.model_dump(),
        created_at=desk.world.clock(),
    )
    desk.world.annotations[known.id] = known
    return _json(views.annotation(known))


def _check_said(rating: int | None, comment: str | None) -> None:
    if rating is None and not comment:
        raise Refused(422, "an annotation needs a rating, a comment, or both")


def _check_step(trace: StoredTrace, step_id: str | None, asked: requests.AnnotationRequest) -> None:
    if step_id is None:
        if asked.quote is not None:
            raise Refused(422, "a quote needs a step_id")
        return
    if step_id not in trace.step_ids:
        raise Refused(422, "step_id is not a step of this trace")
    step = trace.steps[trace.step_ids.index(step_id)]
    if asked.rating is not None and step.role == "system":
        raise Refused(422, "system steps can be commented on but not rated")
    if asked.quote is not None and asked.quote.text not in step.content:
        raise Refused(422, "quote text does not appear in the step's content")


def _change_annotation(desk: _Desk, id: str) -> Reply:
    asked = desk.body(requests.AnnotationUpdate)
    known = desk.annotation(id)
    changes = asked.model_dump(exclude_unset=True)
    merged = {"rating": known.rating, "comment": known.comment, **changes}
    _check_said(merged["rating"], merged["comment"])
    for name, value in changes.items():
        setattr(known, name, value)
    return _json(views.annotation(known))


def _delete_annotation(desk: _Desk, id: str) -> Reply:
    desk.annotation(id)
    del desk.world.annotations[id]
    return Reply(status=204)


# --- exports ---


def _export_traces(desk: _Desk) -> Reply:
    return _ndjson(views.exported_trace(t) for t in reversed(desk.mine(desk.world.traces)))


def _export_annotations(desk: _Desk) -> Reply:
    owned = reversed(desk.mine(desk.world.annotations))
    return _ndjson(views.exported_annotation(desk.world, known) for known in owned)


def _export_pairs(desk: _Desk) -> Reply:
    owned = desk.mine(desk.world.traces)
    try:
        annotations = jobs.annotations_on(desk.world, owned)
        pairs = build_pairs([t.as_model() for t in owned], annotations, 4000)
    except PairsError:
        pairs = ()
    return _ndjson(pair.model_dump() for pair in pairs)


# --- reward models ---


def _train(desk: _Desk) -> Reply:
    asked = desk.body(requests.TrainRequest)
    ids = list(dict.fromkeys(str(id) for id in asked.trace_ids))
    for id in ids:
        desk.one(desk.world.traces, id, f"Trace {id} not found")
    given = {**asked.model_dump(exclude={"trace_ids"}), "trace_ids": ids}
    return _json(views.model(_queued(desk, desk.world.models, given)))


def _queued(desk: _Desk, jobs: dict[str, StoredJob], given: dict[str, Any]) -> StoredJob:
    world = desk.world
    job = StoredJob(world.new_id(), desk.account, given, world.clock(), world.next_fate())
    jobs[job.id] = job
    return job


def _list_models(desk: _Desk) -> Reply:
    owned = desk.mine(desk.world.models)
    jobs.looked_at(desk.world, owned)
    return _json([views.model(job) for job in owned])


def _get_model(desk: _Desk, id: str) -> Reply:
    job = desk.model(id)
    jobs.looked_at(desk.world, [job])
    return _json(views.model_detail(job))


def _weights(desk: _Desk, id: str) -> Reply:
    job = desk.world.models.get(id)
    if job is None or job.owner != desk.account or job.status != "succeeded":
        raise Refused(404, "No trained weights for this reward model")
    if desk.world.streams_weights:
        return Reply(desk.world.weights, content_type="application/gzip", chunked=True)
    return _json({"url": desk.signed_url(id)})


# --- runs ---


def _start_run(desk: _Desk) -> Reply:
    older = desk.world.wants_skill_name
    asked = desk.body(requests.OlderRunRequest if older else requests.RunRequest)
    model = desk.model(str(asked.reward_model_id))
    if model.status != "succeeded":
        raise Refused(422, "Reward model has not finished training")
    given = {**asked.model_dump(), "reward_model_id": model.id}
    return _json(views.run(_queued(desk, desk.world.runs, given)))


def _list_runs(desk: _Desk) -> Reply:
    owned = desk.mine(desk.world.runs)
    jobs.looked_at(desk.world, owned)
    return _json([views.run(job) for job in owned])


def _get_run(desk: _Desk, id: str) -> Reply:
    job = desk.run(id)
    jobs.looked_at(desk.world, [job])
    return _json(views.run(job))


def _skill(desk: _Desk, id: str) -> Reply:
    job = desk.world.runs.get(id)
    if job is None or job.owner != desk.account or job.status != "succeeded":
        raise Refused(404, "No finished skill for this GEPA run")
    return Reply(
        job.results["best_skill"].encode(),
        content_type="text/markdown; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="SKILL.md"'},
    )


ROUTES: dict[tuple[str, re.Pattern[str]], Callable[..., Reply]] = {
    (method, re.compile(path.replace("{id}", "([^/]+)"))): handle
    for method, path, handle in (
        ("GET", "/formats", _formats),
        ("POST", "/traces/import", _import),
        ("GET", "/traces", _list_traces),
        ("GET", "/traces/{id}", _get_trace),
        ("DELETE", "/traces/{id}", _delete_trace),
        ("POST", "/traces/{id}/annotations", _annotate),
        ("PATCH", "/annotations/{id}", _change_annotation),
        ("DELETE", "/annotations/{id}", _delete_annotation),
        ("GET", "/export/traces", _export_traces),
        ("GET", "/export/annotations", _export_annotations),
        ("GET", "/export/pairs", _export_pairs),
        ("POST", "/reward-models", _train),
        ("GET", "/reward-models", _list_models),
        ("GET", "/reward-models/{id}", _get_model),
        ("GET", "/reward-models/{id}/weights", _weights),
        ("POST", "/gepa-runs", _start_run),
        ("GET", "/gepa-runs", _list_runs),
        ("GET", "/gepa-runs/{id}", _get_run),
        ("GET", "/gepa-runs/{id}/skill", _skill),
    )
}
