"""Annotated traces -> the conversations that GEPA replays, and those kept for the last measure."""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from stash_mcp.errors import ExamplesError
from stash_mcp.models import Annotation, Example, Message, Skipped, Trace

LEAST_FOR_HELDOUT = 20
HELDOUT_DIVISOR = 4


@dataclass(frozen=True)
class BuiltExamples:
    """`examples` by trace id, at least one; `skipped` by reason, the most frequent first."""

    examples: tuple[Example, ...]
    skipped: tuple[Skipped, ...]


def build_examples(traces: Iterable[Trace], annotations: Sequence[Annotation]) -> BuiltExamples:
    """Each trace up to its first assistant step, with the unflagged comments on all of it.

    A trace with nothing but system steps before that is skipped. ExamplesError where none is left.
    """
    feedback = _feedback(annotations)
    examples: list[Example] = []
    skipped: Counter[str] = Counter()
    for trace in traces:
        messages = _messages(trace)
        if messages:
            examples.append(
                Example(
                    trace_id=trace.id,
                    system=_system(trace),
                    messages=messages,
                    feedback=tuple(feedback[trace.id]),
                )
            )
        else:
            skipped[_reason(trace)] += 1
    if not examples:
        raise _none_left(skipped)
    return BuiltExamples(
        examples=tuple(sorted(examples, key=lambda example: example.trace_id)),
        skipped=tuple(Skipped(reason=reason, count=n) for reason, n in skipped.most_common()),
    )


def asked_alike(example: Example) -> Hashable:
    """Equal for examples that ask the task model the very same."""
    return (example.system, example.messages)


def split_heldout(examples: Sequence[Example], seed: int) -> tuple[tuple[Example, ...], int]:
    """The examples with the held-out ones last, and how many those are.

    None below 20 different questions, else a quarter of them, rounded down, chosen by a seeded
    shuffle. Conversations that begin alike stay on one side: the other one would have been seen.
    Both parts keep the order of the trace ids, and neither depends on the order given.
    """
    ordered = sorted(examples, key=lambda example: example.trace_id)
    questions = list(dict.fromkeys(asked_alike(example) for example in ordered))
    if len(questions) < LEAST_FOR_HELDOUT:
        return tuple(ordered), 0
    random.Random(seed).shuffle(questions)
    chosen = set(questions[: len(questions) // HELDOUT_DIVISOR])
    kept = [example for example in ordered if asked_alike(example) not in chosen]
    heldout = [example for example in ordered if asked_alike(example) in chosen]
    return (*kept, *heldout), len(heldout)


def _feedback(annotations: Sequence[Annotation]) -> dict[str, list[str]]:
    """The unflagged comments on each trace and its steps, oldest first."""
    comments: dict[str, list[str]] = defaultdict(list)
    for annotation in sorted(annotations, key=lambda annotation: annotation.created_at):
        if annotation.comment and annotation.comment.strip() and not annotation.label_error:
            comments[annotation.trace_id].append(annotation.comment)
    return comments


def _messages(trace: Trace) -> tuple[Message, ...]:
    before = takewhile(lambda step: step.role != "assistant", trace.steps)
    return tuple(
        Message(role=step.role, content=step.content) for step in before if step.role != "system"
    )


def _system(trace: Trace) -> str | None:
    system = [step.content for step in trace.steps if step.role == "system"]
    return "\n\n".join(system) if system else None


def _reason(trace: Trace) -> str:
    if any(step.role == "assistant" for step in trace.steps):
        return "starts with the assistant"
    return "has only system steps"


def _none_left(skipped: Counter[str]) -> ExamplesError:
    if not skipped:
        return ExamplesError(
            "No conversation was chosen for the run.",
            "Import some, or name those of the library (list_traces).",
        )
    reasons = ", ".join(f"{reason} ({count})" for reason, count in skipped.most_common())
    return ExamplesError(
        f"None of the {skipped.total()} conversations can be replayed: {reasons}.",
        "Choose conversations in which the user speaks before the assistant does.",
    )
