"""Where a model runs, and how much fits there."""

import torch

_LARGE_MODEL_PARAMETERS = 300_000_000
_ROOMY_CUDA_BYTES = 48 * 1024**3


def best_device() -> torch.device:
    """CUDA, else Apple's GPU, else the processor."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def tokens_at_once(device: torch.device) -> int:
    """Padded tokens of one forward pass.

    A processor gains nothing from more (measured: 1,024 tokens of texts sorted by length are the
    fastest for a 22 M model, one long text at a time for a 0.6B one); a GPU wants to be filled.
    """
    return 1024 if device.type == "cpu" else 16384


def needs_checkpointing(parameters: int, device: torch.device) -> bool:
    """Whether a training must recompute activations instead of keeping them.

    Four pairs of 1,024 tokens of a 0.6B model take about 40 GiB when kept, 10.6 GiB when
    recomputed, for a third more time.
    """
    if parameters < _LARGE_MODEL_PARAMETERS:
        return False
    if device.type != "cuda":
        return True
    return bool(torch.cuda.get_device_properties(device).total_memory < _ROOMY_CUDA_BYTES)
