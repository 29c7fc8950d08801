"""Where a run's reflections wait for the agent, for as long as this worker can wait.

The reward model stays loaded meanwhile, so that an agent that answers soon is not kept waiting;
after that, or sooner where another job is in the queue, the run is parked.
"""

import asyncio
from collections.abc import Awaitable, Callable

from stash_mcp.models import Reflection
from stash_mcp.runs.reflections import Parked, Question, ReflectionStore
from stash_mcp.worker.tracker import Tracker

PHASE = "waiting for the agent's reflection"
POLL_SECONDS = 0.5
PATIENCE_SECONDS = 120.0
SHORT_PATIENCE_SECONDS = 15.0
"""While another job is in the queue."""


class AgentDesk:
    """others_wait: whether another job is in the queue. fresh: take no answer of another run."""

    def __init__(
        self,
        store: ReflectionStore,
        run_id: str,
        tracker: Tracker,
        others_wait: Callable[[], bool],
        monotonic: Callable[[], float],
        *,
        fresh: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._tracker = tracker
        self._others_wait = others_wait
        self._monotonic = monotonic
        self._fresh = fresh
        self._sleep = sleep
        self._asked: set[int] = set()
        self._waiting = 0
        self._since = 0.0
        self._phase = ""
        self.usage = store.usage(run_id)
        # What was done up to the last answer is done again now, from what is remembered: it takes
        # no limit of the run's, and its time was counted before.
        self._last_answered = store.last_answered(run_id)
        self.is_replaying = self._last_answered > 0
        if self.is_replaying:
            tracker.pause()

    async def ask(self, question: Question) -> str:
        """The agent's answer. All that is asked at once is there for the agent before the first
        of it is waited for. Raises Parked where the agent takes longer than this worker waits."""
        reflection = self._store.ask(self._run_id, question, fresh=self._fresh)
        self._asked.add(reflection.number)
        if reflection.answer is None or reflection.number >= self._last_answered:
            self._end_replay()
        answer = reflection.answer
        if answer is None:
            self._begin_waiting()
            answer = await self._answer(reflection)
            self._end_waiting()
        self.usage = self._store.usage(self._run_id)
        return answer

    async def _answer(self, reflection: Reflection) -> str:
        # What is asked beside this one comes to the store first.
        await self._sleep(0)
        self._store.close_others(self._run_id, self._asked)
        while True:
            answer = self._store.get(self._run_id, reflection.number).answer
            if answer is not None:
                self._since = self._monotonic()
                return answer
            if self._monotonic() - self._since >= self._patience():
                raise Parked
            await self._sleep(POLL_SECONDS)

    def _patience(self) -> float:
        return SHORT_PATIENCE_SECONDS if self._others_wait() else PATIENCE_SECONDS

    def _begin_waiting(self) -> None:
        self._waiting += 1
        if self._waiting > 1:
            return
        self._since = self._monotonic()
        self._tracker.pause()
        self._phase = self._tracker.progress.phase
        self._tracker.update(at_once=True, phase=PHASE, done=0, total=0)

    def _end_waiting(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._tracker.go_on()
            self._tracker.update(at_once=True, phase=self._phase)

    def _end_replay(self) -> None:
        if self.is_replaying:
            self.is_replaying = False
            self._tracker.go_on()
