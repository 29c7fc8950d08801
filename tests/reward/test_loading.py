import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from stash_mcp.errors import TrainingError
from stash_mcp.reward.loading import load_base

CPU = torch.device("cpu")


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.fixture
def base(bert_base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bert_base, tmp_path / "base"))


def refuse(base: Path) -> TrainingError:
    with pytest.raises(TrainingError) as caught:
        load_base(base, "my-base", CPU)
    assert "my-base" in caught.value.problem
    return caught.value


def own_code(folder: Path) -> None:
    change_config(folder, model_type="own", auto_map={"AutoConfig": "own.Config"})
    (folder / "own.py").write_text("raise SystemExit('own code was run')")


def no_vocabulary(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')


def half_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    kept = {name: t for name, t in load_file(path).items() if "layer.0" not in name}
    save_file(kept, path, metadata={"format": "pt"})


def no_padding(folder: Path) -> None:
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    for key in ("pad_token", "eos_token"):
        config.pop(key)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (own_code, "needs code of its own"),
        (no_vocabulary, "no tokenizer vocabulary"),
        (half_weights, "lacks 16 of its weights"),
        (no_padding, "no token to pad with"),
        (lambda folder: change_config(folder, model_type="own"), "cannot be loaded"),
        (lambda folder: change_config(folder, model_type="vit"), "cannot be loaded"),
        (lambda folder: change_config(folder, hidden_size=64), "cannot be loaded"),
        (lambda folder: change_config(folder, hidden_size="wide"), "cannot be loaded"),
        (lambda folder: change_config(folder, num_attention_heads=0), "cannot be loaded"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "cannot be loaded"),
    ],
)
def test_a_base_that_is_no_use_is_refused_with_the_reason(
    base: Path, damage: Callable[[Path], object], said: str
) -> None:
    damage(base)

    error = refuse(base)

    assert said in error.problem
    assert error.fix


def test_a_base_has_one_label_a_head_of_the_seed_and_no_attention_dropout(base: Path) -> None:
    def head(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        weight: torch.Tensor = load_base(base, "my-base", CPU).model.classifier.weight
        return weight

    network = load_base(base, "my-base", CPU)

    assert network.model.config.num_labels == 1
    assert network.model.config.attention_probs_dropout_prob == 0
    assert network.model.config.hidden_dropout_prob > 0
    assert torch.equal(head(1), head(1))
    assert not torch.equal(head(1), head(2))


def test_a_checkpoint_of_another_input_version_lends_its_weights_but_not_its_version(
    base: Path,
) -> None:
    path = base / "tokenizer_config.json"
    own = {"stash_input_version": 3, "stash_rubric": "Be kind."}
    path.write_text(json.dumps(json.loads(path.read_text()) | own))

    load_base(base, "my-base", CPU).tokenizer.save_pretrained(str(base))

    assert "stash" not in path.read_text()


def test_more_tokens_than_the_contract_allows_are_never_kept(causal_base: Path) -> None:
    assert load_base(causal_base, "my-base", CPU, 4096).max_length == 1024
    assert load_base(causal_base, "my-base", CPU, 100).max_length == 100
