import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from stash_mcp.checkpoints import verify_checkpoint
from stash_mcp.datasets.pairs import split_pairs
from stash_mcp.errors import DiskFullError, StorageError, TrainingError
from stash_mcp.models import PreferencePair, TrainMetrics
from stash_mcp.reward.calibration import reward_stats
from stash_mcp.reward.loading import load_base
from stash_mcp.reward.progress import TrainProgress
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import train

MakePairs = Callable[[int], list[PreferencePair]]
POSITIONS = 48


def fit(pairs: Sequence[PreferencePair], base: Path, output: Path, **changes: Any) -> TrainMetrics:
    settings = {"epochs": 1, "learning_rate": 1e-2} | changes
    return train(pairs, base_model=str(base), output_dir=output, **settings)


def changed(pair: PreferencePair, **values: str) -> PreferencePair:
    return pair.model_copy(update=values)


def test_a_training_learns_to_tell_held_out_pairs_apart(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = make_pairs(40)

    metrics = fit(pairs, bert_base, tmp_path / "model", epochs=3)

    assert metrics.eval_pairs > 0
    assert metrics.eval_accuracy == 1.0
    assert metrics.length_accuracy == 1.0
    assert metrics.final_loss < 0.3
    assert metrics.train_pairs + metrics.eval_pairs == len(pairs)
    scorer = RewardScorer(tmp_path / "model")
    good, bad = scorer.score([pairs[0].chosen, pairs[0].rejected])
    assert good > 0.6
    assert bad < 0.4


def test_length_alone_is_measured_on_the_same_pairs(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    longer = [changed(pair, chosen=pair.chosen + " sent" * 9) for pair in make_pairs(40)]

    metrics = fit(longer, bert_base, tmp_path / "model", epochs=3)

    assert metrics.eval_accuracy == 1.0
    assert metrics.length_accuracy == 0.0


def test_the_checkpoint_is_as_the_contract_says(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    output = tmp_path / "model"

    fit(make_pairs(10), bert_base, output)

    verify_checkpoint(output)
    assert {path.name for path in output.iterdir()} == {
        "config.json",
        "model.safetensors",
        "reward_stats.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(output))
    assert tokenizer.truncation_side == "left"
    assert tokenizer.model_max_length == POSITIONS
    assert json.loads((output / "config.json").read_text())["id2label"] == {"0": "LABEL_0"}
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


def test_two_trainings_give_identical_files_and_another_seed_others(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = make_pairs(10)

    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        fit(pairs, bert_base, tmp_path / name, seed=seed)

    one, two, three = (read_all(tmp_path / name) for name in ("one", "two", "three"))
    assert one == two
    assert one["model.safetensors"] != three["model.safetensors"]


def read_all(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_loss_is_bradley_terry_of_the_batch(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = make_pairs(3)
    base = without_dropout(bert_base, tmp_path / "base")

    metrics = fit(pairs, base, tmp_path / "model", batch_size=len(pairs), seed=5)

    transformers.set_seed(5)
    network = load_base(base, "base", torch.device("cpu"))
    reward = network.rewards([text for pair in pairs for text in (pair.chosen, pair.rejected)])
    differences = torch.tensor([reward[pair.chosen] - reward[pair.rejected] for pair in pairs])
    assert metrics.final_loss == pytest.approx(-torch.log(torch.sigmoid(differences)).mean().item())


def without_dropout(base: Path, folder: Path) -> Path:
    folder.mkdir()
    for name, data in read_all(base).items():
        (folder / name).write_bytes(data)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"hidden_dropout_prob": 0.0}))
    return folder


def test_the_calibration_is_of_the_training_pairs_alone_as_often_as_they_occur(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = make_pairs(20)
    pairs += [changed(pairs[0], rejected_trace_id=f"more-{n}") for n in range(3)]

    metrics = fit(pairs, bert_base, tmp_path / "model")

    split = split_pairs(pairs)
    assert metrics.eval_pairs == len(split.eval) > 0
    texts = [text for pair in pairs for text in (pair.chosen, pair.rejected)]
    rewards = RewardScorer(tmp_path / "model").rewards(texts)
    expected = reward_stats(split.train, dict(zip(texts, rewards, strict=True)))
    stats = verify_checkpoint(tmp_path / "model")
    assert (stats.mean, stats.std) == pytest.approx((expected.mean, expected.std), rel=1e-4)


def test_too_few_conversations_to_hold_out_train_on_all_and_say_so(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = [
        changed(pair, chosen_trace_id="good", rejected_trace_id="bad") for pair in make_pairs(4)
    ]

    metrics = fit(pairs, bert_base, tmp_path / "model")

    assert (metrics.train_pairs, metrics.eval_pairs) == (4, 0)
    assert metrics.eval_accuracy is None
    assert metrics.length_accuracy is None
    assert metrics.eval_accuracy_reason


def test_a_base_with_fewer_positions_lowers_the_length(
    bert_base: Path, roberta_base: Path, causal_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    lengths = {
        base.name[:4]: fit(make_pairs(6), base, tmp_path / base.name).max_length
        for base in (bert_base, roberta_base, causal_base)
    }

    # RoBERTa counts positions from its padding's, and so has one fewer here.
    assert lengths == {"bert": POSITIONS, "robe": POSITIONS - 1, "caus": 1024}


def test_a_conversation_longer_than_the_base_keeps_its_end(
    roberta_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    start = "hello " * 2000
    pairs = [
        changed(pair, chosen=start + pair.chosen, rejected=start + pair.rejected)
        for pair in make_pairs(40)
    ]

    metrics = fit(pairs, roberta_base, tmp_path / "model", epochs=3)

    assert metrics.eval_accuracy == 1.0


def test_a_decoder_without_a_padding_token_trains_in_float32(
    causal_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    metrics = fit(make_pairs(40), causal_base, tmp_path / "model", epochs=3)

    assert metrics.eval_accuracy == 1.0
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["pad_token_id"] == 3
    weights = load_file(tmp_path / "model" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_recomputing_activations_changes_nothing_but_memory(
    causal_base: Path, make_pairs: MakePairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = make_pairs(6)
    fit(pairs, causal_base, tmp_path / "kept")
    monkeypatch.setattr("stash_mcp.reward.device._LARGE_MODEL_PARAMETERS", 1)
    fit(pairs, causal_base, tmp_path / "recomputed")

    kept, recomputed = (
        load_file(tmp_path / name / "model.safetensors") for name in ("kept", "recomputed")
    )
    for name, tensor in kept.items():
        torch.testing.assert_close(recomputed[name], tensor)


def test_a_later_training_replaces_the_checkpoint(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    output = tmp_path / "model"
    output.mkdir()
    (output / "half-written").touch()

    fit(make_pairs(6), bert_base, output)

    verify_checkpoint(output)
    assert not (output / "half-written").exists()


# --- what cannot be learnt ---


def test_conversations_that_are_all_equal_are_refused_at_once(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    pairs = [changed(pair, chosen="user: hello", rejected="user: hello") for pair in make_pairs(4)]

    with pytest.raises(TrainingError, match=r"same text .* \(std 0\)"):
        fit(pairs, bert_base, tmp_path / "model")

    assert not (tmp_path / "model").exists()


def test_conversations_that_differ_only_in_what_is_cut_off_are_refused(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    end = " late" * POSITIONS
    pairs = [
        changed(pair, chosen=pair.chosen + end, rejected=pair.rejected + end)
        for pair in make_pairs(4)
    ]

    with pytest.raises(TrainingError) as caught:
        fit(pairs, bert_base, tmp_path / "model")

    assert "near their end" in caught.value.fix


def test_a_loss_that_is_no_number_says_to_lower_the_learning_rate(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="no longer a number") as caught:
        fit(make_pairs(40), bert_base, tmp_path / "model", learning_rate=1e30)

    assert "lower learning rate" in caught.value.fix
    assert not (tmp_path / "model").exists()


def test_too_little_memory_is_said_in_plain_words(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    def exhaust(progress: TrainProgress) -> None:
        if progress.phase == "training":
            torch.empty(2**60)

    with pytest.raises(TrainingError, match="too little memory") as caught:
        fit(make_pairs(4), bert_base, tmp_path / "model", on_progress=exhaust)

    assert "smaller base model" in caught.value.fix


def test_a_place_that_cannot_be_written_is_named(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="file"):
        fit(make_pairs(4), bert_base, tmp_path / "file" / "model")


def test_a_disk_without_room_is_said_before_the_training(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[TrainProgress] = []
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1_000_000))

    with pytest.raises(DiskFullError, match="has 1 MB free"):
        fit(make_pairs(4), bert_base, tmp_path / "model", on_progress=said.append)

    assert [p.phase for p in said] == ["loading"]


def test_a_disk_that_fills_meanwhile_leaves_nothing_half_written(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(progress: TrainProgress) -> None:
        if progress.phase == "saving":
            monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=0))

    with pytest.raises(DiskFullError):
        fit(make_pairs(4), bert_base, tmp_path / "model", on_progress=fill)

    assert list(tmp_path.iterdir()) == []


# --- what is said meanwhile ---


def test_progress_comes_with_each_step_and_each_phase(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    said: list[TrainProgress] = []
    seconds = count()

    metrics = fit(
        make_pairs(9),
        bert_base,
        tmp_path / "model",
        epochs=2,
        on_progress=said.append,
        clock=lambda: float(next(seconds)),
    )

    steps = 2 * -(-metrics.train_pairs // 4)
    trained = [p for p in said if p.phase == "training"]
    assert [p.step for p in trained] == list(range(steps + 1))
    assert {p.steps for p in trained} == {steps}
    assert [p.epoch for p in trained] == [0, *[1] * (steps // 2), *[2] * (steps // 2)]
    assert trained[-1].seconds_left == 0
    assert list(dict.fromkeys(p.phase for p in said)) == [
        "loading",
        "training",
        "measuring",
        "saving",
    ]
    assert [p.note for p in said if p.note] == [
        f"Loading the base model {bert_base}.",
        f"The model reads the last {POSITIONS} tokens of each conversation.",
    ]


def test_an_exception_from_the_listener_ends_the_training_and_leaves_nothing(
    bert_base: Path, make_pairs: MakePairs, tmp_path: Path
) -> None:
    def cancel(progress: TrainProgress) -> None:
        if progress.step == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(make_pairs(20), bert_base, tmp_path / "model", on_progress=cancel)

    assert list(tmp_path.iterdir()) == []


def test_a_training_prints_nothing(bert_base: Path, make_pairs: MakePairs, tmp_path: Path) -> None:
    rows = [pair.model_dump(mode="json") for pair in make_pairs(6)]
    (tmp_path / "pairs.json").write_text(json.dumps(rows))
    code = f"""
import json, pathlib
from stash_mcp.models import PreferencePair
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import train
folder = pathlib.Path({str(tmp_path)!r})
pairs = [PreferencePair(**row) for row in json.loads((folder / "pairs.json").read_text())]
train(pairs, base_model={str(bert_base)!r}, output_dir=folder / "model")
RewardScorer(folder / "model").score([pairs[0].chosen])
"""

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
