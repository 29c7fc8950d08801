import pytest

from stash_mcp.models import Heldout, TrainMetrics
from stash_mcp.optimization.measure import caution, doubted, paired, verdict


def test_the_interval_is_students_t_on_the_paired_differences() -> None:
    # Differences 0.1, 0.2, 0.3: mean 0.2, standard error 0.057735, t(0.975, 2) = 4.302653.
    measured = paired([0.1, 0.2, 0.3], [0.2, 0.4, 0.6])
    assert measured.gain == pytest.approx(0.2)
    assert measured.low == pytest.approx(0.2 - 4.302653 * 0.0577350, abs=1e-6)
    assert measured.high == pytest.approx(0.2 + 4.302653 * 0.0577350, abs=1e-6)
    assert measured.examples == 3


def test_equal_differences_give_an_interval_without_width() -> None:
    measured = paired([0.25, 0.5], [0.5, 0.75])
    assert (measured.low, measured.high) == (0.25, 0.25)


def said(heldout: Heldout | None, seed: float = 0.4, best: float = 0.5, candidates: int = 3) -> str:
    return verdict(
        seed_score=seed, best_score=best, examples=12, candidates=candidates, heldout=heldout
    )


def heldout(low: float, high: float) -> Heldout:
    return Heldout(
        examples=8, seed_score=0.4, best_score=0.5, gain=(low + high) / 2, low=low, high=high
    )


@pytest.mark.parametrize(
    ("measured", "first_word"),
    [
        (heldout(0.01, 0.2), "Improved"),
        (heldout(-0.05, 0.2), "No reliable improvement"),
        (heldout(-0.2, -0.01), "Worse"),
        (None, "Unproven"),
    ],
)
def test_the_verdict_follows_the_interval(measured: Heldout | None, first_word: str) -> None:
    assert said(measured).startswith(first_word + ":")


def test_what_was_held_out_and_not_measured_is_not_called_missing() -> None:
    said_of_it = verdict(
        seed_score=0.4, best_score=0.5, examples=12, candidates=3, heldout=None, kept_back=6
    )
    assert "a cap left nothing to measure the 6 held-out conversations with" in said_of_it
    assert "no conversations were held out" not in said_of_it


def test_a_best_that_is_the_seed_is_no_improvement() -> None:
    assert said(None, seed=0.5, best=0.5).startswith("No improvement:")
    assert "2 accepted proposals" in said(None, seed=0.5, best=0.5)
    assert said(None, seed=0.5, best=0.5, candidates=1).startswith("No improvement:")


def metrics(**changes: object) -> TrainMetrics:
    fields = {
        "train_pairs": 200,
        "eval_pairs": 30,
        "eval_accuracy": 0.9,
        "length_accuracy": 0.6,
        "final_loss": 0.1,
        "epochs": 1,
        "device": "cpu",
        "seconds": 1.0,
        **changes,
    }
    return TrainMetrics.model_validate(fields)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (metrics(eval_pairs=6), "only 6 held-out pairs"),
        (metrics(eval_pairs=1), "only 1 held-out pair ("),
        (metrics(eval_pairs=6), ", of which length alone ranks 60% right"),
        (metrics(eval_accuracy=None, eval_pairs=0), "not checked on any held-out pair"),
        (metrics(eval_accuracy=0.8, length_accuracy=0.85), "no better (80%) than their length"),
        # Where the longer one wins nearly always, length explains as much.
        (metrics(eval_accuracy=0.9, length_accuracy=0.05), "no better (90%) than their length"),
        (None, "imported"),
    ],
)
def test_a_judge_that_cannot_be_relied_on_is_said_to_be_one(
    judge: TrainMetrics | None, said: str
) -> None:
    assert said in caution(judge)


@pytest.mark.parametrize("judge", [metrics(eval_pairs=6), None])
def test_praise_by_a_doubtful_judge_says_so_in_its_first_words(judge: TrainMetrics | None) -> None:
    praise = doubted(said(heldout(0.01, 0.2)), caution(judge))
    assert praise.startswith("Improved, as far as the reward model can be believed: on 8 held-out")
    assert praise.endswith(caution(judge))


def test_what_is_no_praise_keeps_its_first_words_under_a_doubtful_judge() -> None:
    assert doubted(said(None), caution(None)).startswith("Unproven: ")
    assert doubted(said(heldout(0.01, 0.2)), caution(metrics())).startswith("Improved: ")


def test_a_judge_that_was_checked_and_beats_length_needs_no_warning() -> None:
    assert caution(metrics()) == ""


def test_rejected_requests_on_held_out_conversations_are_counted_in_the_verdict() -> None:
    measured = heldout(0.01, 0.2)
    said_of_it = verdict(
        seed_score=0.4,
        best_score=0.5,
        examples=12,
        candidates=3,
        heldout=measured,
        heldout_failed=3,
    )
    assert "rejected 3 of the 16 requests on the held-out conversations" in said_of_it
    assert "rejected" not in said(measured)
