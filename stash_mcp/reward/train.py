"""A reward model trained on preference pairs (Bradley-Terry), written as a checkpoint.

On a processor two runs with the same pairs, base and seed give identical weights.
"""

import contextlib
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
import transformers
from safetensors import SafetensorError

from stash_mcp.checkpoints import (
    RewardStats,
    require_room,
    staged_folder,
    verify_checkpoint,
    write_stats,
)
from stash_mcp.datasets.pairs import Split, split_pairs
from stash_mcp.errors import StorageError, TrainingError
from stash_mcp.models import PreferencePair, TrainMetrics
from stash_mcp.reward.base_model import base_model_folder
from stash_mcp.reward.calibration import accuracy, length_accuracy, reward_stats
from stash_mcp.reward.device import best_device, needs_checkpointing
from stash_mcp.reward.loading import MAX_LENGTH, load_base
from stash_mcp.reward.network import RewardNetwork, TokenIds
from stash_mcp.reward.progress import Reporter, TrainProgress

_FINAL_LOSS_STEPS = 20
"""The final loss is the mean over so many last steps: one step's is mostly chance."""
_ONE_FILE = "1000GB"
_BYTES_A_PARAMETER = 4
_OTHER_FILES_BYTES = 64_000_000

Pairs = Sequence[PreferencePair]


@dataclass(frozen=True)
class _Schedule:
    epochs: int
    learning_rate: float
    batch_size: int
    seed: int

    def steps(self, pairs: int) -> int:
        return self.epochs * math.ceil(pairs / self.batch_size)


def train(
    pairs: Pairs,
    *,
    base_model: str,
    output_dir: Path,
    epochs: int = 1,
    learning_rate: float = 1e-5,
    max_length: int = MAX_LENGTH,
    batch_size: int = 4,
    seed: int = 0,
    on_progress: Callable[[TrainProgress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> TrainMetrics:
    """Train on `pairs` and write the checkpoint to the folder `output_dir`, whole or not at all.

    base_model: a folder, or a model of the hub. max_length: tokens kept of each text, at most
    1,024; a base with fewer positions lowers it. on_progress is called before and after each step;
    an exception from it ends the training. Raises TrainingError, StorageError.
    """
    report = Reporter(on_progress, clock)
    report.phase("loading", f"Loading the base model {base_model}.")
    transformers.set_seed(seed)
    split = split_pairs(pairs)
    network = load_base(base_model_folder(base_model), base_model, best_device(), max_length)
    require_room(output_dir, _saved_bytes(network))
    encoded = network.encode(_texts(pairs))
    _refuse_equal(encoded)
    schedule = _Schedule(epochs, learning_rate, batch_size, seed)
    with _memory_errors(base_model):
        loss = _fit(network, encoded, split.train, schedule, report)
        report.phase("measuring")
        rewards = network.rewards(_texts([*split.train, *split.eval]))
    stats = reward_stats(split.train, rewards)
    report.phase("saving")
    _save(network, stats, output_dir)
    return _metrics(split, rewards, network, schedule, loss, report.seconds)


def _texts(pairs: Pairs) -> list[str]:
    return [text for pair in pairs for text in (pair.chosen, pair.rejected)]


def _refuse_equal(encoded: Mapping[str, TokenIds]) -> None:
    if len(set(encoded.values())) < 2:
        raise TrainingError(
            "All rated conversations are the same text to the model, so nothing can be learnt "
            "(std 0).",
            "Rate conversations that differ, above all near their end: the start of long ones "
            "is cut off.",
        )


def _fit(
    network: RewardNetwork,
    encoded: Mapping[str, TokenIds],
    pairs: Pairs,
    schedule: _Schedule,
    report: Reporter,
) -> float:
    """Train in place; returns the final loss."""
    if needs_checkpointing(network.parameters, network.device):
        network.recompute_activations()
    optimizer = torch.optim.AdamW(network.model.parameters(), lr=schedule.learning_rate)
    shuffle = random.Random(schedule.seed)
    losses: deque[float] = deque(maxlen=_FINAL_LOSS_STEPS)
    report.begin(schedule.steps(len(pairs)), network.parameters, _length_note(network))
    network.model.train()
    for epoch in range(1, schedule.epochs + 1):
        for batch in _batches(pairs, schedule.batch_size, shuffle):
            losses.append(_step(network, encoded, batch, optimizer))
            report.step(epoch, losses[-1])
    return fmean(losses)


def _length_note(network: RewardNetwork) -> str | None:
    if network.max_length == MAX_LENGTH:
        return None
    return f"The model reads the last {network.max_length} tokens of each conversation."


def _batches(pairs: Pairs, size: int, shuffle: random.Random) -> Iterator[Pairs]:
    order = list(pairs)
    shuffle.shuffle(order)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _step(
    network: RewardNetwork,
    encoded: Mapping[str, TokenIds],
    batch: Pairs,
    optimizer: torch.optim.Optimizer,
) -> float:
    """One update; returns the batch's mean of -log sigmoid(r(chosen) - r(rejected))."""
    chosen, rejected = network.forward(
        [encoded[pair.chosen] for pair in batch] + [encoded[pair.rejected] for pair in batch]
    ).chunk(2)
    loss = -torch.nn.functional.logsigmoid(chosen - rejected).mean()
    value = float(loss.item())
    if not math.isfinite(value):
        raise TrainingError(
            "The training's loss is no longer a number.", "Train again with a lower learning rate."
        )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return value


@contextlib.contextmanager
def _memory_errors(base_model: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        # Only a GPU's has a class of its own, which derives from this one.
        allocation = "DefaultCPUAllocator" in str(error)
        if not allocation and not isinstance(error, torch.OutOfMemoryError):
            raise
        raise TrainingError(
            f"There is too little memory here to train {base_model}.",
            "Choose a smaller base model.",
        ) from error


def _saved_bytes(network: RewardNetwork) -> int:
    return network.parameters * _BYTES_A_PARAMETER + _OTHER_FILES_BYTES


def _save(network: RewardNetwork, stats: RewardStats, output_dir: Path) -> None:
    # Asked again: a training takes long, and tokenizers has no exception of its own to catch.
    require_room(output_dir, _saved_bytes(network))
    with staged_folder(output_dir) as folder:
        try:
            network.model.save_pretrained(str(folder), max_shard_size=_ONE_FILE)
            network.tokenizer.save_pretrained(str(folder))
        except (OSError, SafetensorError) as error:
            raise StorageError(
                f"Could not write the reward model to {output_dir}: {error}.",
                "Free some space on that disk, check its permissions and train again.",
            ) from error
        write_stats(folder, stats)
        verify_checkpoint(folder)


def _metrics(
    split: Split,
    rewards: Mapping[str, float],
    network: RewardNetwork,
    schedule: _Schedule,
    loss: float,
    seconds: float,
) -> TrainMetrics:
    measured = bool(split.eval)
    return TrainMetrics(
        train_pairs=len(split.train),
        eval_pairs=len(split.eval),
        eval_accuracy=accuracy(split.eval, rewards.__getitem__) if measured else None,
        eval_accuracy_reason=split.reason,
        length_accuracy=length_accuracy(split.eval) if measured else None,
        excluded_cross_trace_pairs=split.excluded,
        final_loss=loss,
        epochs=schedule.epochs,
        device=network.device.type,
        seconds=round(seconds, 1),
        max_length=network.max_length,
    )
