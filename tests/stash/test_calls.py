"""The client's calls against the stand-in: what goes out is accepted, what comes back is read."""

import json
import time
from datetime import UTC

import pytest
from stand_in_stash import Odd, StandIn
from stand_in_stash.world import OTHER
from support.stash_calls import client_of, commented, conversations, evolved, trained

from stash_mcp import __version__
from stash_mcp.errors import (
    NotFoundError,
    NotReadyError,
    StashAnswerError,
    StashNotFoundError,
    StashNotReadyError,
    StashOutdatedError,
    StashRejectedError,
    UnsupportedError,
)
from stash_mcp.stash import StashClient
from stash_mcp.stash.client import MAX_PAGE
from stash_mcp.stash.sent import AnnotationChange, AnnotationStart, RunStart, Training
from stash_mcp.stash.shapes import QuoteShape


def test_formats_are_those_that_an_import_takes(client: StashClient) -> None:
    assert client.formats()[0].name == "stash"
    assert all(known.description for known in client.formats())


def test_imported_conversations_come_back_whole(client: StashClient) -> None:
    imported = client.import_traces(conversations(2))
    assert (imported.format, imported.imported) == ("stash", 2)
    trace = client.get_trace(imported.trace_ids[1])
    assert (trace.external_id, trace.title) == ("c1", "Order 1")
    assert [(step.index, step.role) for step in trace.steps] == [(0, "user"), (1, "assistant")]
    assert trace.created_at is not None
    assert trace.created_at.utcoffset() == UTC.utcoffset(None)


def test_what_cannot_be_imported_is_refused_with_its_reason(client: StashClient) -> None:
    with pytest.raises(StashRejectedError, match=r"none of the \d+ formats"):
        client.import_traces('{"no": "conversation"}')
    assert client.list_traces().total == 0


def test_half_a_character_is_refused_before_anything_is_sent(
    client: StashClient, stash: StandIn
) -> None:
    with pytest.raises(StashRejectedError, match="lone surrogate"):
        client.import_traces('{"steps": "\ud800"}')
    assert stash.asked == []


def test_ten_thousand_conversations_are_paged_and_exported_as_they_come(
    client: StashClient,
) -> None:
    begun = time.monotonic()
    client.import_traces(conversations(10_000))
    seen = [
        trace.external_id
        for offset in range(0, 10_000, MAX_PAGE)
        for trace in client.list_traces(limit=MAX_PAGE, offset=offset).traces
    ]
    assert seen == [f"c{number}" for number in reversed(range(10_000))]
    assert sum(1 for _ in client.export_traces()) == 10_000
    assert time.monotonic() - begun < 30


def test_an_export_that_is_not_read_to_its_end_leaves_the_client_usable(
    client: StashClient,
) -> None:
    client.import_traces(conversations(500))
    export = client.export_traces()
    assert '"id": "c0"' in next(export)
    export.close()  # type: ignore[attr-defined]
    assert client.list_traces().total == 500


def test_a_line_separator_inside_a_message_does_not_cut_the_export(client: StashClient) -> None:
    client.import_traces('{"id": "a", "steps": [{"role": "user", "content": "one\u2028two"}]}')
    assert len(list(client.export_traces())) == 1


def test_annotations_are_added_changed_and_taken_away(client: StashClient) -> None:
    trace = client.get_trace(client.import_traces(conversations(1)).trace_ids[0])
    quote = QuoteShape(text="on its way", prefix="is ", suffix=".")
    step = trace.steps[1].id
    made = client.annotate(trace.id, AnnotationStart(step_id=step, comment="When?", quote=quote))
    assert (made.step_id, made.rating, made.quote) == (step, None, quote)
    changed = client.change_annotation(made.id, AnnotationChange(rating=-1, comment=None))
    assert (changed.rating, changed.comment) == (-1, None)
    assert [line.step_index for line in client.export_annotations()] == [1]
    client.delete_annotation(made.id)
    assert client.get_trace(trace.id).annotations == ()


def test_an_annotation_that_stash_refuses_says_why(client: StashClient) -> None:
    trace_id = client.import_traces(conversations(1)).trace_ids[0]
    with pytest.raises(StashRejectedError, match="needs a rating, a comment, or both"):
        client.annotate(trace_id, AnnotationStart())


def test_a_training_goes_from_queued_to_its_metrics(client: StashClient) -> None:
    imported = commented(client)
    model = client.train(Training(name="tone", trace_ids=imported.trace_ids, epochs=2))
    assert (model.status, model.trace_count, model.metrics) == ("queued", 3, None)
    assert client.get_reward_model(model.id).status == "running"
    done = client.get_reward_model(model.id)
    assert (done.status, done.num_pairs, done.epochs) == ("succeeded", 2, 2)
    assert done.trace_ids == imported.trace_ids
    assert len(list(client.export_pairs())) == 2


def test_training_on_somebody_elses_trace_names_it(client: StashClient, stash: StandIn) -> None:
    with client_of(stash, OTHER) as other:
        foreign = other.import_traces(conversations(1)).trace_ids[0]
    with pytest.raises(NotFoundError, match=foreign):
        client.train(Training(name="tone", trace_ids=(foreign,)))


def test_a_run_ends_with_candidates_and_a_skill(client: StashClient) -> None:
    run = evolved(client)
    assert run.status == "succeeded"
    assert run.candidates is not None
    assert [found.skill for found in run.candidates] == [run.seed_skill, run.best_skill]
    assert client.skill(run.id) == run.best_skill
    assert client.list_runs().rows == (run,)
    assert (run.task_model, run.max_metric_calls) == ("anthropic/claude-haiku-4-5", 40)


def test_a_run_of_an_untrained_model_names_its_state(client: StashClient, stash: StandIn) -> None:
    stash.world.polls = 0
    model = client.train(Training(name="tone", trace_ids=commented(client).trace_ids))
    with pytest.raises(StashNotReadyError, match=f"reward model {model.id} is queued") as caught:
        client.start_run(RunStart(reward_model_id=model.id))
    assert isinstance(caught.value, NotReadyError)
    assert stash.world.runs == {}


def test_a_skill_of_an_unfinished_run_names_its_state(client: StashClient, stash: StandIn) -> None:
    run = client.start_run(RunStart(reward_model_id=trained(client)))
    stash.world.polls = 0
    with pytest.raises(StashNotReadyError, match=f"run {run.id} is queued"):
        client.skill(run.id)


def test_a_failed_run_says_why_there_is_no_skill(client: StashClient, stash: StandIn) -> None:
    stash.world.fates = [None, "the budget was too small"]
    run = evolved(client)
    assert (run.status, run.candidates) == ("failed", None)
    with pytest.raises(StashNotReadyError, match="the budget was too small"):
        client.skill(run.id)


def test_a_skill_of_an_unknown_run_is_not_found(client: StashClient) -> None:
    with pytest.raises(StashNotFoundError, match="not found"):
        client.skill("00000000-0000-4000-8000-000000000000")


def test_an_older_server_that_wants_the_skills_name_is_explained(
    client: StashClient, stash: StandIn
) -> None:
    model = trained(client)
    stash.world.wants_skill_name = True
    with pytest.raises(StashOutdatedError, match="name and description") as caught:
        client.start_run(RunStart(reward_model_id=model))
    assert isinstance(caught.value, UnsupportedError)


@pytest.mark.parametrize("id", ["../../users/me", "..", "a/b", "", "a\n", "x" * 200, "é"])
def test_what_cannot_be_an_id_is_not_found_without_asking(
    client: StashClient, stash: StandIn, id: str
) -> None:
    with pytest.raises(StashNotFoundError, match="no id of a run"):
        client.get_run(id)
    assert stash.asked == []


def test_an_id_of_another_kind_is_not_found(client: StashClient) -> None:
    with pytest.raises(StashNotFoundError, match="does not know such an id"):
        client.get_run("not-a-uuid")


def test_somebody_elses_objects_are_not_found(client: StashClient, stash: StandIn) -> None:
    run = evolved(client)
    with client_of(stash, OTHER) as other:
        assert other.list_runs().rows == ()
        with pytest.raises(StashNotFoundError, match="another account"):
            other.get_run(run.id)
        with pytest.raises(StashNotFoundError):
            other.get_reward_model(run.reward_model_id)


def test_requests_share_one_connection_and_name_our_version(
    client: StashClient, stash: StandIn
) -> None:
    for _ in range(5):
        client.list_runs()
    assert stash.connections == 1
    assert set(stash.user_agents) == {f"stash-skills/{__version__}"}


@pytest.mark.parametrize("noun", ["run", "reward model", "trace"])
def test_an_answer_about_another_one_is_refused_with_both_named(
    client: StashClient, stash: StandIn, noun: str
) -> None:
    run = evolved(client)
    calls = {
        "run": (client.get_run, run.id),
        "reward model": (client.get_reward_model, run.reward_model_id),
        "trace": (client.get_trace, client.list_traces(limit=1).traces[0].id),
    }
    get, right = calls[noun]
    assert get(right.upper()).id == right, "another spelling is the same one"
    body = json.loads(get(right).model_dump_json())
    other = "0" * 8 + right[8:]
    stash.odd.append(Odd(body=json.dumps({**body, "id": other}).encode()))
    with pytest.raises(StashAnswerError, match=f"{noun} {right} and answered with .* {other}"):
        get(right)
