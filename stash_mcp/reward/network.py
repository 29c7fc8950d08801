"""A loaded model and its tokenizer: texts become token ids, token ids become rewards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stash_mcp.reward.device import tokens_at_once
from stash_mcp.reward.sections import encode_sections

TokenIds = tuple[int, ...]

_MOST_TEXTS_AT_ONCE = 16


@dataclass(frozen=True)
class RewardNetwork:
    """max_length: tokens kept of each text, special ones included; the start is cut off, or, with
    `in_sections`, each section keeps to its own part."""

    model: Any
    tokenizer: Any
    device: torch.device
    max_length: int
    in_sections: bool = False
    """Texts are of input version 3."""

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    def encode(self, texts: Iterable[str]) -> dict[str, TokenIds]:
        """The token ids of each distinct text."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        if self.in_sections:
            return {t: encode_sections(self.tokenizer, t, self.max_length) for t in distinct}
        encoded = self.tokenizer(distinct, truncation=True, max_length=self.max_length)
        return {text: tuple(ids) for text, ids in zip(distinct, encoded["input_ids"], strict=True)}

    def forward(self, inputs: Sequence[TokenIds]) -> torch.Tensor:
        """Rewards, shape (len(inputs),), in the order given; gradients flow where enabled.

        Equal inputs are computed once. Texts of like length go together, padded to the longest.
        """
        distinct = sorted(set(inputs), key=lambda ids: (len(ids), ids))
        batches = _batches(distinct, tokens_at_once(self.device))
        rewards = torch.cat([self._forward_batch(batch) for batch in batches])
        place = {ids: index for index, ids in enumerate(distinct)}
        return rewards[torch.tensor([place[ids] for ids in inputs], device=self.device)]

    def rewards(self, texts: Iterable[str]) -> dict[str, float]:
        """The reward of each distinct text, without dropout and without gradients."""
        encoded = self.encode(texts)
        if not encoded:
            return {}
        self.model.eval()
        with torch.inference_mode():
            rewards = self.forward(list(encoded.values())).tolist()
        return dict(zip(encoded, rewards, strict=True))

    def recompute_activations(self) -> None:
        """Keep no activations for the backward pass from here on, where the model can do so."""
        if self.model.supports_gradient_checkpointing:
            self.model.activation_checkpointing_enable()

    def _forward_batch(self, batch: Sequence[TokenIds]) -> torch.Tensor:
        length = len(batch[-1])
        pad = self.model.config.pad_token_id
        ids = torch.tensor([[*row, *[pad] * (length - len(row))] for row in batch])
        mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in batch])
        output = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device))
        rewards: torch.Tensor = output.logits[:, 0]
        return rewards


def _batches(inputs: Sequence[TokenIds], budget: int) -> Iterator[Sequence[TokenIds]]:
    """Runs of `inputs`, which are sorted by length, of at most `budget` padded tokens each."""
    start = 0
    for end in range(1, len(inputs) + 1):
        full = end - start == _MOST_TEXTS_AT_ONCE
        overflows = end < len(inputs) and (end - start + 1) * len(inputs[end]) > budget
        if full or overflows or end == len(inputs):
            yield inputs[start:end]
            start = end
