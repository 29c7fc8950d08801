"""A reward model that remembers what it scored."""

from collections.abc import Sequence

from stash_mcp.optimization.adapter import Scorer
from stash_mcp.storage.calls import CallStore, call_key


class RememberingScorer:
    """checkpoint: digest of the reward model. only_for: as in optimization.memory.Memory."""

    def __init__(
        self, scorer: Scorer, store: CallStore, checkpoint: str, only_for: str | None = None
    ) -> None:
        self._scorer = scorer
        self._store = store
        self._checkpoint = checkpoint
        self._only_for = only_for

    def score(self, texts: Sequence[str]) -> list[float]:
        keys = {text: self._key(text) for text in texts}
        known = self._store.get_many(list(keys.values()))
        missing = [text for text, key in keys.items() if key not in known]
        if missing:
            scores = self._scorer.score(missing)
            # All at once: after a kill the same texts are missing again, and are scored in the
            # same company, which a score depends on in its last digits.
            new = {keys[text]: repr(score) for text, score in zip(missing, scores, strict=True)}
            self._store.put_many(new)
            known = {**known, **new}
        return [float(known[keys[text]]) for text in texts]

    def _key(self, text: str) -> str:
        return call_key(
            kind="score", checkpoint=self._checkpoint, text=text, only_for=self._only_for
        )
