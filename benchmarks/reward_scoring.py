"""How fast the reward model scores texts of mixed lengths, beside the plain way with transformers.

The plain way: batches of 4 in the order given, each padded to its longest, float32, one checkpoint
for both. Also how far the scores of the two lie apart.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, set_seed

from benchmarks.benchmark import Benchmark, Row
from benchmarks.sample_texts import SHORTEST, mixed_lengths
from benchmarks.timing import compared, interleaved, per_second, timed
from stash_mcp.checkpoints import RewardStats, write_stats
from stash_mcp.demo.embedded import minilm_folder
from stash_mcp.reward.loading import load_base
from stash_mcp.reward.score import RewardScorer

_PLAIN_BATCH = 4
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Size:
    texts: int
    longest: int
    repetitions: int


def run(size: Size) -> list[Row]:
    texts = mixed_lengths(size.texts, size.longest)
    with tempfile.TemporaryDirectory() as folder:
        stats = _save_checkpoint(Path(folder), texts[:16])
        ours = RewardScorer(Path(folder), _CPU)
        plain = _Plain(Path(folder), ours.max_length, stats)
        ours.score(texts[:_PLAIN_BATCH])
        plain.score(texts[:_PLAIN_BATCH])
        pairs = interleaved(
            lambda: len(texts) / timed(lambda: ours.score(texts)),
            lambda: len(texts) / timed(lambda: plain.score(texts)),
            size.repetitions,
        )
        our_scores, plain_scores = ours.score(texts), plain.score(texts)
    apart = max(abs(one - other) for one, other in zip(our_scores, plain_scores, strict=True))
    spread = pstdev(plain_scores)
    what = f"texts of {SHORTEST} to {size.longest} tokens"
    return [
        compared(f"{what} scored, MiniLM; reference: batches of 4", pairs, per_second),
        Row(
            "largest difference of a score; reference: their sd",
            f"{apart:.1e}",
            f"{spread:.3f}",
            apart / spread,
            len(texts),
        ),
    ]


def _save_checkpoint(folder: Path, texts: Sequence[str]) -> RewardStats:
    """An untrained one: what it says is of no use, and takes the same time to say."""
    set_seed(0)
    network = load_base(minilm_folder(), "MiniLM", _CPU)
    rewards = list(network.rewards(texts).values())
    stats = RewardStats(mean=fmean(rewards), std=pstdev(rewards))
    network.model.save_pretrained(str(folder))
    network.tokenizer.save_pretrained(str(folder))
    write_stats(folder, stats)
    return stats


class _Plain:
    def __init__(self, folder: Path, max_length: int, stats: RewardStats) -> None:
        self._model: Any = AutoModelForSequenceClassification.from_pretrained(
            str(folder), dtype=torch.float32
        ).eval()
        self._tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
        self._max_length = max_length
        self._stats = stats

    def score(self, texts: Sequence[str]) -> list[float]:
        return [
            1 / (1 + math.exp((self._stats.mean - reward) / self._stats.std))
            for start in range(0, len(texts), _PLAIN_BATCH)
            for reward in self._rewards(texts[start : start + _PLAIN_BATCH])
        ]

    def _rewards(self, texts: Sequence[str]) -> list[float]:
        encoded = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            rewards: list[float] = self._model(**encoded).logits[:, 0].tolist()
        return rewards


BENCHMARK = Benchmark(run, smallest=Size(6, 40, 1), quick=Size(32, 500, 1), full=Size(96, 500, 3))
