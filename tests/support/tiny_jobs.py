"""Real trainings and runs that take a second: a tiny base model and conversations of its words."""

from pathlib import Path

from stash_mcp.backends.base import TrainOrder
from stash_mcp.models import PreferencePair
from stash_mcp.reward.train import train
from support.staging import START, conversation, jsonl
from support.tiny_models import save_tiny_base

GOOD = "sorry please give me the order number"
BAD = "no idea wait and see"
WORDS = f"{GOOD} {BAD} user assistant where is my parcel"


def tiny_base(folder: Path) -> Path:
    return save_tiny_base(folder, WORDS)


def tiny_checkpoint(folder: Path, base: Path) -> Path:
    """A reward model that was really trained on one pair or two."""
    pairs = [
        PreferencePair(
            chosen=f"user: where is my parcel {number}\n\nassistant: {GOOD}",
            rejected=f"user: where is my parcel {number}\n\nassistant: {BAD}",
            chosen_trace_id=f"good-{number}",
            rejected_trace_id=f"bad-{number}",
            granularity="trace",
        )
        for number in range(2)
    ]
    train(pairs, base_model=str(base), output_dir=folder, learning_rate=0.01, epochs=3)
    return folder


def talks(count: int = 8) -> bytes:
    """`talk-0` and so on, of which every second one ends well."""
    return jsonl(
        [
            conversation(f"talk-{number}", "where is my parcel", BAD if number % 2 else GOOD)
            for number in range(count)
        ]
    )


def notes(count: int = 8) -> bytes:
    """A rating and a comment on each of `talks`."""
    return jsonl(
        [
            {
                "trace_id": f"talk-{number}",
                "rating": -1 if number % 2 else 1,
                "comment": "Ask for the order number first.",
                "created_at": START.isoformat(),
            }
            for number in range(count)
        ]
    )


def training(base: Path, **changes: object) -> TrainOrder:
    return TrainOrder.model_validate({"base_model": str(base), "learning_rate": 0.01, **changes})
