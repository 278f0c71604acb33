"""A reward is measured before it is trained on."""

import pytest

from groundrule._util.aio import run_sync
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.recipes.reward_bench import bench_reward
from groundrule.recipes.reward_bench.dressings import DRESSINGS, dressed
from groundrule.recipes.reward_bench.tables import bench_closing, bench_tables
from groundrule.rewards.functions import FunctionScorer
from groundrule.rewards.handwritten import RagReward
from groundrule.rewards.suites import KnownGroup
from groundrule.rewards.suites.labels import known_from

PASSAGE = "Parcels are kept for five days. Then they go back to the sender."


def known(number: int, *answers: str) -> KnownGroup:
    """Answers best first."""
    user = f"[Retrieved context]: {PASSAGE}\n\nQuestion: How long is parcel {number} kept?"
    group = TrajectoryGroup(
        [
            Trajectory(
                messages_and_choices=[
                    {"role": "user", "content": user},
                    {"role": "assistant", "content": answer},
                ]
            )
            for answer in answers
        ]
    )
    ranks = {"rank": [[i] for i in range(len(answers))]}
    return KnownGroup(f"parcel {number}", group, known_from(ranks, len(answers)))


GROUPS = [
    known(n, "Parcels are kept for five days.", f"Parcel {n} may be kept at your neighbour's shop.")
    for n in range(12)
]


def bench(function, **more):
    return run_sync(bench_reward("mine", FunctionScorer(function, "mine"), GROUPS, **more))


def test_a_reward_that_knows_the_order_is_right_and_alone_enough():
    report = bench(lambda answer: 1.0 if "five days" in answer and "neighbour" not in answer else 0.2)
    assert (report.accuracy.value, report.accuracy.low, report.across.value) == (1.0, 1.0, 1.0)
    assert report.worst == []


def test_scores_that_mean_something_else_in_each_group_are_found_with_an_interval():
    """Both groups are in order, but the best answer of one scores below the worst of the other: 3 of 4 pairs."""
    worth = {"five days": 0.9, "neighbour": 0.8, "5 days": 0.3, "nowhere": 0.2}
    groups = [known(1, "five days", "neighbour"), known(2, "5 days", "nowhere")]
    report = run_sync(bench_reward("mine", FunctionScorer(lambda answer: worth.get(answer), "mine"), groups))
    assert report.accuracy.value == 1.0
    # A draw holds one group twice, and then all is right, or both once.
    assert (report.across.value, report.across.low, report.across.high) == (0.75, 0.75, 1.0)
    assert report.across.count == 4


def test_a_constant_reward_is_a_coin_and_flagged():
    report = bench(lambda answer: 0.5)
    assert report.accuracy.value == 0.5
    assert "accuracy: no better than a coin on these pairs" in report.flags


def test_a_reward_that_over_weights_form_is_flagged_before_any_training():
    def pretty(answer, context):
        faithful = sum(w in context for w in answer.split()) / len(answer.split())
        return 0.2 * faithful + 0.8 * ("**" in answer)

    report = bench(pretty)
    assert report.accuracy.value == 1.0
    assert report.dresses["format"].fooled.value == 1.0
    assert any(flag.startswith("format: 100%") for flag in report.flags)
    assert not any(flag.startswith(("length", "hedging")) for flag in report.flags)


def test_a_reward_that_likes_length_is_flagged_for_length():
    report = bench(lambda answer: len(answer) / 1000)
    assert report.dresses["length"].fooled.value == 1.0
    assert any(flag.startswith("length") for flag in report.flags)


def test_the_worst_disagreements_are_shown_first():
    report = bench(lambda answer: 0.9 if "neighbour" in answer else 0.1)
    assert len(report.worst) == 5
    assert report.worst[0].gap == pytest.approx(0.8)
    assert "neighbour" in report.worst[0].worse


def test_other_weights_are_tried_without_training():
    report = run_sync(bench_reward("rag", RagReward(), GROUPS, weights={"uses_context": 0.5, "concise": 0.5}))
    effect = report.weights["concise"]["without"]
    assert effect.tau == 1.0
    assert effect.accuracy.value == 1.0
    assert set(report.weights["uses_context"]) == {"without", "halved", "doubled"}


def test_answers_without_a_score_are_counted_and_flagged():
    report = bench(lambda answer: None if "neighbour" in answer else 1.0)
    assert report.unscored == 0.5
    assert any(flag.startswith("unscored: 50%") for flag in report.flags)


@pytest.mark.parametrize("name", DRESSINGS)
def test_a_dress_keeps_every_word_of_the_answer(name):
    answer = "Parcels are kept for five days. Then they go back"
    worn = dressed(known(1, answer, "no").group, DRESSINGS[name]).trajectories[0].messages()[-1]["content"]
    assert set(answer.replace(".", "").split()) <= set(worn.replace(".", " ").replace("*", " ").split())
    assert worn != answer


def test_an_answer_that_is_missing_cannot_be_dressed():
    group = TrajectoryGroup([Trajectory(messages_and_choices=[{"role": "user", "content": "?"}])])
    assert dressed(group, DRESSINGS["length"]) is None


def test_two_rewards_stand_side_by_side():
    reports = [bench(lambda answer: 0.5), bench(lambda answer: len(answer) / 100)]
    first = bench_tables(reports)[0]
    assert first.columns == ("measure", "mine", "mine")
    assert first.rows[0][1].startswith("50%")
    assert bench_closing(reports)
