"""Small conversations and stand-ins that several tests use."""

from collections.abc import Sequence

from stash_mcp.models import Candidate, Example, Message
from stash_mcp.optimization.identity import Identity


def example(number: int, *comments: str, system: str | None = "You help.") -> Example:
    return Example(
        trace_id=f"t{number:02d}",
        system=system,
        messages=(Message(role="user", content=f"Question {number}: where is my parcel?"),),
        feedback=comments,
    )


class WordScorer:
    """Stands in for a reward model: a reply scores higher the more of `words` it holds."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.texts: list[str] = []

    def score(self, texts: Sequence[str]) -> list[float]:
        self.texts += texts
        return [
            0.2 + 0.6 * sum(word in text for word in self.words) / len(self.words) for text in texts
        ]


class RecordingMonitor:
    """Keeps what a run reported."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.candidates: list[Candidate] = []
        self.refusals: list[str] = []
        self.rejections: list[tuple[int, int]] = []
        self.proposals = 0
        self.metric_calls = 0
        self.turned_down_proposals = 0
        self.identity: Identity | None = None
        self._counting = False

    def phase(self, name: str, metric_calls: bool = False) -> None:
        self.phases.append(name)
        self._counting = metric_calls

    def replied(self, done: int, total: int) -> None:
        self.metric_calls += self._counting

    def identified(self, identity: Identity) -> None:
        self.identity = identity

    def proposed(self, number: int) -> None:
        self.proposals = number

    def refused(self, reason: str) -> None:
        self.refusals.append(reason)

    def turned_down(self, before: float, after: float) -> None:
        self.turned_down_proposals += 1

    def scored(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)

    def rejected(self, count: int, total: int, words: str) -> None:
        self.rejections.append((count, total))

    def log(self, message: str) -> None:
        pass
