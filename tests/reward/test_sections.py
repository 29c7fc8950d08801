"""Input version 3 as tokens, by a tokenizer of single bytes and by a model made for the test."""

import json
from pathlib import Path

import pytest
from support.sectioned import RUBRIC, byte_tokenizer, save_sectioned

from stash_mcp.checkpoints import read_input_format, verify_checkpoint
from stash_mcp.errors import CheckpointError
from stash_mcp.models import Example, Message
from stash_mcp.rendering import SECTIONS_PREFIX, render_for, render_sections
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.sections import SHARES, encode_sections

LENGTH = 1024
ROOM = LENGTH - sum(len(f"\n[{name}]\n") for name in SHARES) - 32


def decoded(text: str, length: int = LENGTH) -> str:
    tokenizer = byte_tokenizer()
    return tokenizer.decode(encode_sections(tokenizer, text, length))


def sections_of(text: str) -> dict[str, str]:
    cut = decoded(text)
    starts = [cut.index(f"\n[{name}]\n") for name in SHARES]
    assert starts == sorted(starts)
    ends = [*starts[1:], len(cut)]
    return {
        name: cut[start + len(f"\n[{name}]\n") : end]
        for name, start, end in zip(SHARES, starts, ends, strict=True)
    }


def conversation(reply: str = "Done.", said: str = "Fix the parser.") -> str:
    return render_sections("Be kind.", [Message(role="user", content=said)], reply, RUBRIC)


def test_short_sections_are_read_whole_and_in_order() -> None:
    assert sections_of(conversation()) == {
        "instructions": "Be kind.",
        "task": "Fix the parser.",
        "request": "Fix the parser.",
        "history": "user: Fix the parser.",
        "action": "assistant: Done.",
        "rubric": "\n".join(RUBRIC),
    }


def test_each_section_keeps_to_its_share_and_says_what_it_left_out() -> None:
    cut = sections_of(conversation(reply="b" * 9000 + "THE END", said="START" + "a" * 9000))
    for name in ("task", "request", "history", "action"):
        assert len(cut[name]) == ROOM * SHARES[name] // 100
        assert " [omitted] " in cut[name]
    assert cut["task"].startswith("START")
    assert cut["history"].startswith(" [omitted] ")
    assert cut["action"].startswith("assistant: b")
    assert cut["action"].endswith("THE END")


def test_a_longer_reply_changes_nothing_before_it() -> None:
    short, long = (
        decoded(conversation(reply, "original task " * 200)).partition("[action]")[0]
        for reply in ("short", "long " * 2000)
    )
    assert short == long


def test_another_text_and_a_context_that_is_too_small_are_refused() -> None:
    with pytest.raises(CheckpointError, match="reads input version 3"):
        encode_sections(byte_tokenizer(), "user: hello", LENGTH)
    with pytest.raises(CheckpointError, match="do not fit into this reward model's 64 tokens"):
        encode_sections(byte_tokenizer(), conversation(), 64)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sectioned(tmp_path_factory.mktemp("sectioned"), LENGTH)


def test_a_checkpoint_of_version_3_is_taken_and_its_rubric_is_known(checkpoint: Path) -> None:
    assert verify_checkpoint(checkpoint).std == 1.0
    form = read_input_format(checkpoint)
    assert (form.version, form.rubric) == (3, RUBRIC)


def test_it_scores_by_the_systems_words_the_task_and_the_rubric_but_not_by_the_skill(
    checkpoint: Path,
) -> None:
    scorer, form = RewardScorer(checkpoint), read_input_format(checkpoint)
    assert scorer.max_length == LENGTH
    asked = (Message(role="user", content="Where is it?"),)
    examples = [
        Example(trace_id=system, system=system, messages=asked, feedback=())
        for system in ("Be kind.", "Be brief.")
    ]
    texts = [render_for(form, example, "On its way.") for example in examples]
    assert all(text.startswith(SECTIONS_PREFIX) for text in texts)
    kind, brief = scorer.rewards(texts)
    assert kind != brief
    other = render_for(form.model_copy(update={"rubric": ()}), examples[0], "On its way.")
    assert scorer.rewards([other]) != [kind]
    assert scorer.score(texts) == RewardScorer(checkpoint).score(texts)


@pytest.mark.parametrize("version", [0, 2, 4, "3", True, None])
def test_any_other_version_is_refused_by_name(tmp_path: Path, version: object) -> None:
    folder = save_sectioned(tmp_path, 256)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_bytes())
    path.write_text(json.dumps({**config, "stash_input_version": version}))
    with pytest.raises(CheckpointError, match=f"stash_input_version {version!r}, which is"):
        verify_checkpoint(folder)


def test_a_rubric_that_is_no_list_of_texts_is_refused(tmp_path: Path) -> None:
    folder = save_sectioned(tmp_path, 256)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_bytes())
    path.write_text(json.dumps({**config, "stash_rubric": "be kind"}))
    with pytest.raises(CheckpointError, match="stash_rubric that is no list of texts"):
        verify_checkpoint(folder)


def test_a_checkpoint_whose_sections_do_not_fit_is_refused_before_it_scores(
    tmp_path: Path,
) -> None:
    save_sectioned(tmp_path, 64)
    verify_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="do not fit into this reward model's 64 tokens"):
        RewardScorer(tmp_path)


def test_a_model_that_turns_out_to_have_fewer_tokens_than_its_sections_share_is_refused(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stash_mcp.reward.loading._positions", lambda *_: LENGTH - 2)
    with pytest.raises(CheckpointError, match="share 1024 tokens, of which the model has 1022"):
        RewardScorer(checkpoint)
