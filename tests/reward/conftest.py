"""Base models so small that they train in a second: real architectures, made on the fly."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    RobertaConfig,
    RobertaModel,
    set_seed,
)

from stash_mcp.models import PreferencePair
from stash_mcp.reward.quiet import silence_libraries

POSITIONS = 48
WORDS = ["user", "assistant", ":", ".", "hello", "order", "late"]
WORDS += ["sorry", "refund", "sent", "no", "never", "terms"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
ORDERS = [f"n{number}" for number in range(40)]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """So small a model waits for its second thread longer than it computes."""
    torch.set_num_threads(1)


def save_tokenizer(folder: Path, *, pad: bool = True) -> None:
    vocabulary = {word: index for index, word in enumerate([*SPECIAL, *WORDS, *ORDERS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        eos_token="[SEP]",
        pad_token="[PAD]" if pad else None,
    ).save_pretrained(str(folder))


SHAPE = {
    "vocab_size": len(SPECIAL) + len(WORDS) + len(ORDERS),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


@pytest.fixture(scope="session")
def bert_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    silence_libraries()
    set_seed(1)
    BertModel(BertConfig(**SHAPE, max_position_embeddings=POSITIONS)).save_pretrained(str(folder))
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def roberta_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("roberta")
    silence_libraries()
    set_seed(1)
    config = RobertaConfig(**SHAPE, max_position_embeddings=POSITIONS, pad_token_id=0)
    RobertaModel(config).save_pretrained(str(folder))
    save_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def causal_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder in bfloat16 whose tokenizer has nothing to pad with."""
    folder = tmp_path_factory.mktemp("causal")
    silence_libraries()
    set_seed(1)
    config = Qwen3Config(**SHAPE, num_key_value_heads=1, head_dim=8, max_position_embeddings=4096)
    Qwen3ForCausalLM(config).bfloat16().save_pretrained(str(folder))
    save_tokenizer(folder, pad=False)
    return folder


GOOD = "sorry . refund sent ."
BAD = "no never . terms terms terms ."


@pytest.fixture
def make_pairs() -> Callable[[int], list[PreferencePair]]:
    return separable_pairs


def separable_pairs(count: int) -> list[PreferencePair]:
    """Pairs that one word tells apart; each two conversations of their own."""
    return [
        PreferencePair(
            chosen=conversation(number, GOOD),
            rejected=conversation(number + 1, BAD),
            chosen_trace_id=f"good-{number}",
            rejected_trace_id=f"bad-{number}",
            granularity="trace",
        )
        for number in range(count)
    ]


def conversation(number: int, reply: str) -> str:
    order = ORDERS[number % len(ORDERS)]
    return f"user: hello order {order} late\n\nassistant: {reply}"
