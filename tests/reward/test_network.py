from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from stash_mcp.reward.loading import load_base
from stash_mcp.reward.network import RewardNetwork, TokenIds

TEXTS = ["hello order late", "sorry", "never terms " * 15, "hello order late", "refund sent ."]


@pytest.fixture(params=["bert_base", "causal_base"])
def network(request: pytest.FixtureRequest) -> RewardNetwork:
    torch.manual_seed(0)
    folder: Path = request.getfixturevalue(request.param)
    loaded = load_base(folder, "base", torch.device("cpu"))
    loaded.model.eval()
    return loaded


def one_by_one(network: RewardNetwork, inputs: Sequence[TokenIds]) -> torch.Tensor:
    rows = [network.model(input_ids=torch.tensor([ids])).logits[0, 0] for ids in inputs]
    return torch.stack(rows)


def test_rewards_in_batches_are_those_of_each_text_alone(network: RewardNetwork) -> None:
    encoded = network.encode(TEXTS)
    inputs = [encoded[text] for text in TEXTS]

    torch.testing.assert_close(network.forward(inputs), one_by_one(network, inputs))


def test_gradients_count_a_text_as_often_as_it_is_given(network: RewardNetwork) -> None:
    ids = network.encode(["hello order late"])["hello order late"]
    weight = next(network.model.parameters())

    (once,) = torch.autograd.grad(network.forward([ids]).sum(), weight)
    (twice,) = torch.autograd.grad(network.forward([ids, ids]).sum(), weight)

    torch.testing.assert_close(twice, 2 * once)


def test_each_distinct_text_is_encoded_once(network: RewardNetwork) -> None:
    assert list(network.encode(TEXTS)) == list(dict.fromkeys(TEXTS))


def test_no_texts_give_no_rewards(network: RewardNetwork) -> None:
    assert network.rewards([]) == {}


def test_texts_are_put_together_up_to_the_budget(
    network: RewardNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    forward = network.model.forward

    def recorded(**inputs: torch.Tensor) -> object:
        sizes.append(tuple(inputs["input_ids"].shape))
        return forward(**inputs)

    monkeypatch.setattr(network.model, "forward", recorded)
    lengths = [3, 3, 3, 40, 40, 3]
    inputs = [(5,) * length + (number,) for number, length in enumerate(lengths)]
    monkeypatch.setattr("stash_mcp.reward.network.tokens_at_once", lambda device: 50)

    network.forward(inputs)

    assert sizes == [(4, 4), (1, 41), (1, 41)]
