import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from stash_mcp.errors import CheckpointError
from stash_mcp.models import PreferencePair
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import train

MakePairs = Callable[[int], list[PreferencePair]]
POSITIONS = 48


@pytest.fixture(params=["bert_base", "causal_base"])
def checkpoint(request: pytest.FixtureRequest, make_pairs: MakePairs, tmp_path: Path) -> Path:
    base = request.getfixturevalue(request.param)
    output = tmp_path / "model"
    train(make_pairs(20), base_model=str(base), output_dir=output, epochs=3, learning_rate=1e-2)
    return output


def texts_of_many_lengths() -> list[str]:
    choose = random.Random(3)
    words = ["hello", "order", "late", "sorry", "refund", "never", "terms"]
    return [" ".join(choose.choices(words, k=choose.randint(1, 200))) for _ in range(40)]


def test_a_score_is_the_sigmoid_of_the_calibrated_reward(checkpoint: Path) -> None:
    scorer = RewardScorer(checkpoint)
    texts = texts_of_many_lengths()
    stats = json.loads((checkpoint / "reward_stats.json").read_text())

    scores = scorer.score(texts)

    assert scores == pytest.approx(
        [
            1 / (1 + math.exp(-(reward - stats["mean"]) / stats["std"]))
            for reward in scorer.rewards(texts)
        ]
    )


def test_a_score_does_not_depend_on_the_texts_beside_it(checkpoint: Path) -> None:
    scorer = RewardScorer(checkpoint)
    texts = texts_of_many_lengths()

    together = scorer.score(texts)

    assert together == pytest.approx([scorer.score([text])[0] for text in texts], abs=1e-5)
    assert len(set(together)) > len(texts) // 2


def test_scores_come_in_the_order_of_the_texts_with_equal_ones_for_equal_texts(
    checkpoint: Path,
) -> None:
    scorer = RewardScorer(checkpoint)
    texts = texts_of_many_lengths()[:9]

    scores = scorer.score(texts)
    again = scorer.score([*reversed(texts), texts[0]])

    assert again[:-1] == pytest.approx(scores[::-1], abs=1e-5)
    assert again[-1] == again[-2]


def test_no_texts_have_no_scores(checkpoint: Path) -> None:
    assert RewardScorer(checkpoint).score([]) == []


def test_an_empty_text_has_a_score(checkpoint: Path) -> None:
    (score,) = RewardScorer(checkpoint).score([""])

    assert 0 < score < 1


def test_the_end_of_a_long_text_is_what_counts(checkpoint: Path) -> None:
    scorer = RewardScorer(checkpoint)
    end = " sorry refund" * scorer.max_length

    same = scorer.score(["hello" + end, "never terms" + end])
    other = scorer.score([end + " never", end + " sent"])

    assert same[0] == same[1]
    assert other[0] != other[1]


@pytest.mark.parametrize(("mean", "expected"), [(1e6, 0.0), (-1e6, 1.0)])
def test_a_reward_far_from_the_training_stays_within_bounds(
    checkpoint: Path, mean: float, expected: float
) -> None:
    (checkpoint / "reward_stats.json").write_text(json.dumps({"mean": mean, "std": 1e-3}))

    assert RewardScorer(checkpoint).score(["user: hello"]) == [expected]


def test_rewards_that_are_no_numbers_are_refused(checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    broken = {name: torch.full_like(tensor, math.nan) for name, tensor in weights.items()}
    save_file(broken, checkpoint / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(CheckpointError, match="not numbers"):
        RewardScorer(checkpoint).score(["user: hello"])


def test_weights_that_lack_the_head_are_refused(checkpoint: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    body = {name: t for name, t in weights.items() if name.split(".")[0] in {"bert", "model"}}
    assert len(body) < len(weights)
    save_file(body, checkpoint / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(CheckpointError, match="weights lack"):
        RewardScorer(checkpoint)


def test_an_unsound_checkpoint_is_refused_before_it_is_loaded(checkpoint: Path) -> None:
    (checkpoint / "pytorch_model.bin").touch()

    with pytest.raises(CheckpointError, match="can run code"):
        RewardScorer(checkpoint)


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "no_such_model"},
        {"hidden_size": 32},
        {"num_attention_heads": 0},
        {"vocab_size": "many"},
        {"model_type": "vit"},
        {"pad_token_id": None},
    ],
)
def test_a_configuration_that_transformers_refuses_is_a_checkpoint_error(
    checkpoint: Path, config: dict[str, object]
) -> None:
    path = checkpoint / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))

    with pytest.raises(CheckpointError, match="cannot be loaded") as caught:
        RewardScorer(checkpoint)

    assert "train it again" in caught.value.fix


def test_a_long_text_loses_its_start_where_the_checkpoint_does_not_say_so(
    checkpoint: Path,
) -> None:
    one, other = (f"user: {start} {'hello ' * 2000}" for start in ("refund", "never"))
    told = RewardScorer(checkpoint).rewards([one])
    path = checkpoint / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in config.items() if k != "truncation_side"}))
    vocabulary = json.loads((checkpoint / "tokenizer.json").read_text())
    (checkpoint / "tokenizer.json").write_text(json.dumps(vocabulary | {"truncation": None}))
    scorer = RewardScorer(checkpoint)
    assert scorer.rewards([one]) == scorer.rewards([other]) == told
    assert scorer.rewards([f"{one} refund"]) != scorer.rewards([f"{one} never"])


def test_a_tokenizer_that_knows_no_word_is_refused(checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").unlink()
    words = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    (checkpoint / "vocab.txt").write_text(words, encoding="utf-8")
    (checkpoint / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "BertTokenizer"}', encoding="utf-8"
    )
    with pytest.raises(CheckpointError, match="its tokenizer has no vocabulary"):
        RewardScorer(checkpoint)
