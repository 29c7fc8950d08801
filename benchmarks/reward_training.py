"""How long one step of training takes, beside the same step with the base's attention dropout.

Training sets attention dropout to 0, because any other value forces a slow way of computing
attention. Everything else of a step is the same in both: pairs, loss, optimiser, lengths.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, set_seed

from benchmarks.benchmark import Benchmark, Row
from benchmarks.sample_texts import conversation
from benchmarks.timing import compared, interleaved, seconds, timed
from stash_mcp.demo.embedded import minilm_folder
from stash_mcp.reward.loading import load_base
from stash_mcp.reward.network import RewardNetwork, TokenIds

_CPU = torch.device("cpu")
_LEARNING_RATE = 1e-5


@dataclass(frozen=True)
class Size:
    pairs: int
    tokens: int
    steps: int


def run(size: Size) -> list[Row]:
    set_seed(0)
    folder = minilm_folder()
    ours = _Training(load_base(folder, "MiniLM", _CPU))
    reference = _Training(_with_default_dropout(folder, ours.network))
    # The first step also makes the optimiser's state.
    ours.step(_texts(Size(1, 16, 1)))
    reference.step(_texts(Size(1, 16, 1)))
    texts = _texts(size)
    pairs = interleaved(
        lambda: timed(lambda: ours.step(texts)),
        lambda: timed(lambda: reference.step(texts)),
        size.steps,
    )
    what = f"a step of {size.pairs} pairs of {size.tokens} tokens, MiniLM"
    return [compared(f"{what}; reference: default attention dropout", pairs, seconds)]


def _with_default_dropout(folder: Path, like: RewardNetwork) -> RewardNetwork:
    model = AutoModelForSequenceClassification.from_pretrained(
        str(folder), num_labels=1, dtype=torch.float32
    )
    return RewardNetwork(model, like.tokenizer, like.device, like.max_length)


def _texts(size: Size) -> list[str]:
    choose = random.Random(0)
    return [conversation(size.tokens, choose) for _ in range(2 * size.pairs)]


class _Training:
    def __init__(self, network: RewardNetwork) -> None:
        self.network = network
        network.model.train()
        self._optimizer = torch.optim.AdamW(network.model.parameters(), lr=_LEARNING_RATE)

    def step(self, texts: Sequence[str]) -> None:
        """The first half of the texts is better than the second, one with one."""
        encoded = self.network.encode(texts)
        inputs: list[TokenIds] = [encoded[text] for text in texts]
        chosen, rejected = self.network.forward(inputs).chunk(2)
        loss = -torch.nn.functional.logsigmoid(chosen - rejected).mean()
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad()


BENCHMARK = Benchmark(run, smallest=Size(1, 24, 1), quick=Size(2, 256, 1), full=Size(2, 512, 5))
