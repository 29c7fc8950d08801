"""Whatever is done on both sides in whatever order, and wherever an answer is lost: in the end both
say the same, or a report says what they do not agree on.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from stand_in_stash import Odd, StandIn, stand_in
from stand_in_stash.world import StoredAnnotation, StoredTrace
from support.both_sides import BothSides, talk

from stash_mcp.backends.base import AnnotationDraft
from stash_mcp.errors import NotFoundError, StashError
from stash_mcp.models import Annotation

ID = "a"
STEPS = (None, 0, 1)


class Agreement:
    """One conversation and its comments. Each comment is written once, under words of its own, so
    that a lost one and a second one are both seen. Every action takes a number from 0 to 5, which
    says how it is done."""

    def __init__(self, root: Path, stash: StandIn) -> None:
        self.sides = BothSides(root, stash)
        self.written = 0
        self.been_here: set[str] = set()
        self.been_there: set[str] = set()
        self.deleted_here: set[str] = set()
        """Words of comments that somebody lost here with steps that he replaced here."""
        self.deleted_there: set[str] = set()
        """The same at Stash, and of those that he deleted there."""

    # --- what people do ---

    def import_here(self, number: int) -> None:
        before = self._here()
        self.sides.import_here(talk(ID, *_words(2 + number % 2)))
        self.deleted_here |= before.keys() - self._here().keys()

    def import_there(self, number: int) -> None:
        before = self._there()
        self.sides.import_there(talk(ID, *_words(2 + number % 2)))
        self.deleted_there |= before.keys() - self._there().keys()

    def comment_here(self, number: int) -> None:
        if self._is_here():
            words = self._new_words()
            draft = AnnotationDraft(trace_id=ID, step_index=STEPS[number % 3], comment=words)
            self.sides.backend.annotate(draft)

    def comment_there(self, number: int) -> None:
        for trace in self._traces_there():
            self.sides.annotate_there(trace.id, STEPS[number % 3], comment=self._new_words())

    def flag_here(self, number: int) -> None:
        for known in self._notes_here()[number % 2 :][:1]:
            self.sides.backend.flag_annotation(known.id, None, flagged=not known.label_error)

    def flag_there(self, number: int) -> None:
        for known in self._notes_there()[number % 2 :][:1]:
            known.label_error = not known.label_error

    def delete_there(self, number: int) -> None:
        for known in self._notes_there()[number % 2 :][:1]:
            self.deleted_there.add(str(known.comment))
            with self.sides.client() as client:
                client.delete_annotation(known.id)

    # --- what goes between the sides ---

    def push(self, number: int) -> None:
        self.sides.push()

    def pull(self, number: int) -> None:
        self.sides.pull()

    def break_off(self, number: int) -> None:
        """After so many requests; the last one has its effect or not."""
        stash = self.sides.stash
        stash.odd.extend([None] * (1 + number % 5))
        stash.always = Odd(after_effect=number % 2 == 0, reset=True)
        try:
            self.sides.push()
        except StashError as error:
            note(str(error))
        stash.always = None
        stash.odd.clear()

    # --- what must hold ---

    def nothing_is_lost_or_there_twice(self) -> None:
        here, there = self._here(), self._there()
        assert {1} >= set(here.values()) | set(there.values()), "a comment is there twice"
        self.been_here |= here.keys()
        self.been_there |= there.keys()
        assert self.been_here - here.keys() <= self.deleted_here, "one is lost here"

    def they_agree(self) -> None:
        self.sides.pull()
        self.sides.push()
        reports = [self.sides.pull(), self.sides.push()]
        self.nothing_is_lost_or_there_twice()
        here, there = self._here().keys(), self._there().keys()
        # A push that broke off between the steps and their comments has done the rest by now.
        assert self.been_there - there <= self.deleted_there, "one is lost at Stash"
        assert all(report.annotations.new == 0 for report in reports)
        if any(report.conflicts for report in reports):
            return
        assert here - there <= self.deleted_there
        assert there - here <= self.deleted_here
        [trace] = self._traces_there()
        assert self.sides.texts_here(ID) == [step.content for step in trace.steps]
        flags = {str(known.comment): known.label_error for known in self._notes_there()}
        for known in self._notes_here():
            assert known.label_error == flags.get(str(known.comment), known.label_error)

    # --- how ---

    def _new_words(self) -> str:
        self.written += 1
        return f"Comment {self.written}."

    def _is_here(self) -> bool:
        try:
            self.sides.backend.get_trace(ID)
        except NotFoundError:
            return False
        return True

    def _notes_here(self) -> tuple[Annotation, ...]:
        return self.sides.notes_here(ID) if self._is_here() else ()

    def _traces_there(self) -> list[StoredTrace]:
        return list(self.sides.stash.world.traces.values())

    def _notes_there(self) -> list[StoredAnnotation]:
        return list(self.sides.stash.world.annotations.values())

    def _here(self) -> Counter[str]:
        return Counter(str(known.comment) for known in self._notes_here())

    def _there(self) -> Counter[str]:
        return Counter(str(known.comment) for known in self._notes_there())


def _words(length: int) -> list[str]:
    return [f"Step {number} of {length}" for number in range(length)]


Action = Callable[[Agreement, int], None]
ACTIONS: tuple[Action, ...] = (
    Agreement.import_here,
    Agreement.import_there,
    Agreement.comment_here,
    Agreement.comment_there,
    Agreement.flag_here,
    Agreement.flag_there,
    Agreement.delete_there,
    Agreement.push,
    Agreement.push,
    Agreement.pull,
    Agreement.break_off,
)
DONE = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5)), min_size=6, max_size=14)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(DONE)
def test_both_sides_agree_in_the_end(
    done: list[tuple[Callable[[Agreement, int], None], int]],
) -> None:
    with TemporaryDirectory() as root, stand_in() as stash:
        both = Agreement(Path(root), stash)
        both.import_here(0)
        both.comment_here(2)
        try:
            for action, number in done:
                note(f"{action.__name__} {number}")
                action(both, number)
                both.nothing_is_lost_or_there_twice()
            both.they_agree()
        finally:
            both.sides.close()
