"""Base models so small that they train in a second: a real architecture, made on the fly."""

from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, set_seed

from stash_mcp.reward.quiet import silence_libraries

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def save_tiny_base(
    folder: Path, words: str, positions: int = 64, hidden: int = 16, layers: int = 1
) -> Path:
    """A BERT that knows these words, untrained; of one layer unless a slower one is wanted.
    Returns `folder`.
    """
    silence_libraries()
    set_seed(1)
    vocabulary = list(dict.fromkeys([*SPECIAL, *words.split(), ":", "."]))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden,
        max_position_embeddings=positions,
    )
    BertModel(config).save_pretrained(str(folder))
    tokenizer = Tokenizer(
        WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[SEP]", pad_token="[PAD]"
    ).save_pretrained(str(folder))
    return folder
