"""What a training says while it works, and how long it will take."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

SMALLER_BASE = "sentence-transformers/all-MiniLM-L6-v2"
_SMALL_PARAMETERS = 50_000_000
_STEPS_BEFORE_ESTIMATE = 3
# A pace that is worth a warning: so many steps, or so many seconds, have shown it.
_STEPS_BEFORE_NOTE = 10
_SECONDS_BEFORE_NOTE = 60
_LONG_SECONDS = 3600

Phase = Literal["loading", "training", "measuring", "saving"]


@dataclass(frozen=True)
class TrainProgress:
    """`step` of `steps` is done; times in seconds.

    epoch: from 1; 0 before the first step. loss: of the last step. seconds_left: of the training
    steps, from the pace so far; null before the third. note: a sentence for the person, once.
    """

    phase: Phase
    step: int
    steps: int
    epoch: int
    loss: float | None
    seconds_elapsed: float
    seconds_left: float | None
    note: str | None = None


class Reporter:
    """Turns the events of a training into `TrainProgress`, one for each step."""

    def __init__(
        self, on_progress: Callable[[TrainProgress], None], clock: Callable[[], float]
    ) -> None:
        self._on_progress = on_progress
        self._clock = clock
        self._started = clock()
        self._first_step_done = 0.0
        self._last = TrainProgress("loading", 0, 0, 0, None, 0.0, None)
        self._hint = ""
        self._noted = False

    @property
    def seconds(self) -> float:
        return self._clock() - self._started

    def phase(self, phase: Phase, note: str | None = None) -> None:
        self._send(phase=phase, note=note)

    def begin(self, steps: int, parameters: int, note: str | None = None) -> None:
        """The training starts: so many steps with a model of so many parameters."""
        self._hint = _hint(parameters)
        self._send(phase="training", steps=steps, note=note)

    def step(self, epoch: int, loss: float) -> None:
        """One more step, of epoch `epoch` (from 1), is done."""
        step = self._last.step + 1
        if step == 1:
            self._first_step_done = self._clock()
        left = self._seconds_left(step, self._last.steps)
        note = self._note(step, left)
        self._send(step=step, epoch=epoch, loss=loss, seconds_left=left, note=note)

    def _seconds_left(self, step: int, steps: int) -> float | None:
        # The first step also warms up memory and caches, and says little of the others.
        if step < _STEPS_BEFORE_ESTIMATE:
            return None
        return (self._clock() - self._first_step_done) / (step - 1) * (steps - step)

    def _note(self, step: int, left: float | None) -> str | None:
        watched = self._clock() - self._first_step_done
        is_sure = step >= _STEPS_BEFORE_NOTE or watched >= _SECONDS_BEFORE_NOTE
        if self._noted or left is None or not is_sure:
            return None
        self._noted = True
        if left < _LONG_SECONDS:
            return None
        return f"This training takes about {left / _LONG_SECONDS:.1f} hours here. {self._hint}"

    def _send(self, note: str | None, **changes: Any) -> None:
        elapsed = self.seconds
        self._last = replace(self._last, seconds_elapsed=elapsed, note=note, **changes)
        self._on_progress(self._last)


def _hint(parameters: int) -> str:
    if parameters <= _SMALL_PARAMETERS:
        return "Fewer pairs (max_pairs) or fewer epochs make it shorter."
    return f"A smaller base model is faster, for example {SMALLER_BASE} (22 M parameters)."
