import pytest
import torch

from stash_mcp.reward.device import best_device, needs_checkpointing, tokens_at_once


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_a_gpu_is_preferred(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, expected: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    assert best_device().type == expected


def test_a_large_model_recomputes_activations_on_a_processor() -> None:
    assert needs_checkpointing(600_000_000, torch.device("cpu"))
    assert not needs_checkpointing(22_000_000, torch.device("cpu"))


def test_a_processor_takes_one_long_text_at_a_time() -> None:
    assert tokens_at_once(torch.device("cpu")) == 1024 < tokens_at_once(torch.device("cuda"))
