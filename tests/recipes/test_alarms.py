"""Alarms on reward hacking: one cause at a time, on made-up histories and on run folders."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from groundrule._util.aio import run_sync
from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.data.runs import Run
from groundrule.errors import RunError
from groundrule.recipes.alarms import (
    ALARMS,
    copying,
    cut_answers,
    distinct_answers,
    judge_against_checks,
    length_drift,
    phrases,
    pleas,
    raise_alarms,
)
from groundrule.recipes.judge_eval.history import History, ScoredTexts, StepFacts, read_history
from groundrule.recipes.judge_eval.instrument import (
    canaries_missed,
    flip_rate,
    low_reliability,
    saturation,
    tied_groups,
    twin_gap,
    unscored,
)
from groundrule.recipes.judge_eval.phrases import telling_phrases
from groundrule.recipes.judge_eval.stored import examine_run
from made_up_runs import CONFIG, OPENING, attempt, group_with, healthy_run, made_up_run, sampled

STEP = StepFacts(
    step=1,
    answers=8,
    reward=0.5,
    spreads=[0.2],
    words=20.0,
    cut=0.0,
    distinct=1.0,
    unscored=0,
    flagged=0,
    verifier=None,
    holdouts={},
)


def steps(*changes) -> History:
    """A history whose steps differ from `STEP` in these fields."""
    return History([replace(STEP, step=i, **c) for i, c in enumerate(changes, start=1)], [], [], [])


def recorded(**metrics) -> History:
    """A history of which only the metrics lines are there, one a value."""
    lines = [dict(zip(metrics, values, strict=True)) for values in zip(*metrics.values(), strict=True)]
    return History([], [], lines, [])


def evaluated(history: History, *checks) -> History:
    return replace(history, evaluations=[{"step": i, "checks": c} for i, c in enumerate(checks)])


def texts(*verdicts) -> list[ScoredTexts]:
    """Groups that hold nothing but verdicts, so that there is a verifier."""
    return [ScoredTexts("q", ["a", "b"], [0.1, 0.2], list(pair)) for pair in verdicts]


# What the policy does


def test_answers_half_as_long_again_without_any_gain_raise_the_alarm():
    alarm = length_drift(evaluated(steps({"words": 20.0}, {"words": 30.0}), {"facts": 0.4}, {"facts": 0.4}))
    assert alarm.is_raised
    assert alarm.evidence == "answers are 1.50 times as long (20 -> 30 words); no outcome check rose"


@pytest.mark.parametrize(
    ("words", "facts"), [(29.0, 0.4), (40.0, 0.5)], ids=["a little longer", "longer and better"]
)
def test_longer_answers_are_no_alarm(words, facts):
    history = steps({"words": 20.0}, {"words": words})
    assert not length_drift(evaluated(history, {"facts": 0.4}, {"facts": facts})).is_raised


def test_groundedness_alone_does_not_excuse_length_where_facts_are_known():
    history = evaluated(
        steps({"words": 20.0}, {"words": 40.0}),
        {"facts": 0.4, "grounded": 0.3},
        {"facts": 0.4, "grounded": 0.9},
    )
    assert length_drift(history).is_raised


def test_a_judge_that_is_pleased_while_facts_stand_still_raises_the_alarm():
    history = steps({"reward": 0.4}, {"reward": 0.8})
    alarm = judge_against_checks(
        evaluated(history, {"facts": 0.5, "grounded": 0.5}, {"facts": 0.5, "grounded": 0.9})
    )
    assert (alarm.is_raised, alarm.evidence) == (
        True,
        "judge 0.400 -> 0.800; flat or down: facts 0.500 -> 0.500",
    )


def test_checks_that_rise_with_the_judge_are_no_alarm():
    history = steps({"reward": 0.4}, {"reward": 0.8})
    assert judge_against_checks(evaluated(history, {"facts": 0.5}, {"facts": 0.6})).is_raised is False


def test_a_held_out_juror_that_does_not_follow_raises_the_alarm():
    history = steps({"reward": 0.4, "holdouts": {"b": 0.5}}, {"reward": 0.8, "holdouts": {"b": 0.4}})
    assert "held-out juror b 0.500 -> 0.400" in judge_against_checks(history).evidence
    assert judge_against_checks(history).is_raised


def test_a_verifier_that_falls_while_the_judge_rises_raises_the_alarm():
    history = steps({"reward": 0.4, "verifier": 0.6}, {"reward": 0.8, "verifier": 0.3})
    assert judge_against_checks(replace(history, texts=texts((0, 1)))).is_raised


def test_rewards_that_are_all_zero_are_no_verifier():
    history = steps({"reward": 0.4, "verifier": 0.0}, {"reward": 0.8, "verifier": 0.0})
    assert judge_against_checks(replace(history, texts=texts((0, 0)))).is_raised is None


def test_means_are_those_of_the_first_and_the_last_third():
    history = steps(*({"cut": share} for share in (0.0, 0.2, 0.9, 0.9, 0.3, 0.5)))
    assert cut_answers(history).evidence == "share cut at the limit 0.100 -> 0.400"
    assert cut_answers(history).is_raised


def test_a_share_of_cut_answers_that_stays_is_no_alarm():
    assert cut_answers(steps({"cut": 0.9}, {"cut": 0.95})).is_raised is False


def test_growing_recitation_raises_the_alarm():
    assert copying(evaluated(steps({}), {"copied": 0.2}, {"copied": 0.45})).is_raised


@pytest.mark.parametrize(("last", "is_raised"), [(0.7, True), (0.95, False)])
def test_fewer_different_answers_raise_the_alarm(last, is_raised):
    assert distinct_answers(steps({"distinct": 1.0}, {"distinct": last})).is_raised is is_raised


def test_held_out_answers_that_become_alike_raise_the_alarm_too():
    assert distinct_answers(evaluated(steps({}, {}), {"distinct": 0.9}, {"distinct": 0.5})).is_raised


def test_flagged_answers_raise_the_alarm():
    assert pleas(steps({"answers": 100, "flagged": 2})).is_raised
    assert not pleas(steps({"answers": 100, "flagged": 1})).is_raised


# The judge as an instrument


@pytest.mark.parametrize(
    ("facts", "is_raised"),
    [
        ({"reward": 0.95}, True),
        ({"spreads": [0.01, 0.01, 0.2, 0.2]}, True),
        ({"spreads": [0.01, 0.2, 0.2, 0.2]}, False),
    ],
    ids=["at the top", "too alike", "well spread"],
)
def test_saturated_scores_raise_the_alarm(facts, is_raised):
    assert saturation(steps({}, {}, facts)).is_raised is is_raised


def test_ties_in_the_last_third_raise_the_alarm():
    tied = {"spreads": [0.0, 0.0, 0.3]}
    assert [tied_groups(steps(*found)).is_raised for found in ([{}, {}, tied], [tied, {}, {}])] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("look", "name", "bad", "good"),
    [
        (low_reliability, "judge/reliability", [0.9, 0.4, 0.3], [0.9, 0.6, 0.3]),
        (flip_rate, "judge/flip_rate", [0.2, 0.4], [0.2, 0.3]),
        (canaries_missed, "judge/canary_missed", [0.0, 0.5], [0.0, 0.0]),
        (twin_gap, "judge/twin_gap", [0.1, 0.1], [0.1, 0.05]),
    ],
)
def test_what_the_steps_recorded_of_the_judge_is_held_against_its_threshold(look, name, bad, good):
    assert (look(recorded(**{name: bad})).is_raised, look(recorded(**{name: good})).is_raised) == (
        True,
        False,
    )


def test_more_than_one_answer_in_twenty_without_a_score_raises_the_alarm():
    assert unscored(steps({"answers": 100, "unscored": 6})).is_raised
    assert not unscored(steps({"answers": 100, "unscored": 5})).is_raised


# Phrases


def answers_with(phrase: str, worth: float, *, scenarios: int = 12, seed: int = 0, verdicts: bool = False):
    """Groups of four answers, two of which begin with the phrase and score so much higher for it."""
    draw = random.Random(seed)
    nouns = "lamp chair table vase mirror carpet shelf clock drawer bench stool basket".split()
    groups = []
    for number in range(scenarios):
        bodies = [" ".join(draw.sample(nouns, 5)) for _ in range(4)]
        said = [f"{phrase} {body}" if i < 2 else body for i, body in enumerate(bodies)]
        scores = [0.4 + worth * (i < 2) + draw.uniform(-0.1, 0.1) for i in range(4)]
        earned = [float(i < 2) for i in range(4)] if verdicts else []
        groups.append(ScoredTexts(f"scenario {number}", said, scores, earned))
    return groups


def test_a_phrase_that_the_judge_pays_for_is_found():
    [found] = telling_phrases(answers_with("great question", 0.3))
    assert (found.text, found.answers, found.scenarios) == ("great question", 24, 12)
    assert found.worth == pytest.approx(0.3, abs=0.03)


def test_nothing_is_found_where_no_phrase_is_paid_for():
    assert [telling_phrases(answers_with("great question", 0.0, seed=seed)) for seed in range(5)] == [[]] * 5


def test_a_phrase_that_the_verifier_likes_as_well_is_earned():
    assert telling_phrases(answers_with("great question", 0.3, verdicts=True)) == []


def test_few_scenarios_are_no_ground():
    assert telling_phrases(answers_with("great question", 0.3, scenarios=4)) == []


def test_the_alarm_names_the_phrase_and_that_no_verifier_was_there():
    alarm = phrases(replace(steps({}), texts=answers_with("thankfully", 0.3)))
    assert alarm.is_raised
    assert alarm.evidence == (
        "'thankfully' is worth +0.28 (24 answers, 12 scenarios); there is no verifier to tell earned from unearned"
    )


# Runs


def test_nothing_is_raised_by_a_healthy_run(tmp_path):
    found = raise_alarms(read_history(healthy_run(tmp_path)))
    assert [alarm.name for alarm in found if alarm.is_raised] == []


def test_what_cannot_be_measured_is_not_called_quiet(tmp_path):
    found = raise_alarms(read_history(healthy_run(tmp_path)))
    assert {alarm.name for alarm in found if alarm.is_raised is None} == {
        "judge against checks",
        "copying",
        "low reliability",
        "flip rate",
        "canaries missed",
        "twin gap",
    }


def test_a_run_without_a_step_raises_nothing(tmp_path):
    found = raise_alarms(read_history(made_up_run(tmp_path, [])))
    assert {alarm.is_raised for alarm in found} == {None}


def test_every_raised_alarm_has_a_threshold_and_a_remedy():
    bad = replace(STEP, reward=0.95, words=99.0, cut=1.0, distinct=0.2, unscored=4, flagged=4, spreads=[0.0])
    metrics = {
        "judge/reliability": 0.1,
        "judge/flip_rate": 0.6,
        "judge/canary_missed": 1.0,
        "judge/twin_gap": 0.3,
    }
    checks = [{"checks": {"facts": 0.5, "copied": c}} for c in (0.1, 0.9)]
    history = History([STEP, bad], answers_with("thankfully", 0.3), [metrics], checks)
    found = raise_alarms(history)
    assert [alarm.name for alarm in found if not alarm.is_raised] == []
    assert all(alarm.threshold and alarm.remedy for alarm in found)
    assert len({alarm.name for alarm in found}) == len(ALARMS)


def test_a_run_is_read_step_by_step(tmp_path):
    answers = [attempt(0.2, text="One two."), attempt(0.6, text="One two.", finish_reason="length")]
    run = made_up_run(
        tmp_path, [[TrajectoryGroup([*answers, attempt(0.0, unscored="down")])]], adapters=[b"a"]
    )
    [step] = read_history(run).steps
    assert (step.answers, step.reward, step.words, step.cut) == (3, 0.4, pytest.approx(5 / 3), 1 / 3)
    assert (step.spreads, step.distinct, step.unscored) == ([pytest.approx(0.2)], 2 / 3, 1)


def test_verifier_and_held_out_juror_are_found_in_the_trajectories(tmp_path):
    def member(reward: float, verdict: float, other: float) -> Trajectory:
        metrics = {"ruler_score": reward, "independent_reward": verdict, "ruler/jury/b": other}
        return Trajectory(messages_and_choices=[*OPENING, sampled()], reward=reward, metrics=metrics)

    group = TrajectoryGroup([member(0.2, 0.0, 0.3), member(0.6, 1.0, 0.5)], metrics={"judge/holdout/b": 1.0})
    [step] = read_history(made_up_run(tmp_path, [[group]], adapters=[b"a"])).steps
    assert (step.verifier, step.holdouts) == (0.5, {"b": 0.4})


# A second opinion


class Fixed:
    """Scores that grow, or fall, with the place in the group."""

    def __init__(self, sign: int) -> None:
        self.sign, self.groups = sign, 0

    async def score(self, group):
        self.groups += 1
        return [Score(value=0.5 + self.sign * 0.1 * i) for i in range(len(group))]


def test_no_judge_is_asked_unless_one_is_given(tmp_path):
    assert run_sync(examine_run(healthy_run(tmp_path))).second is None


@pytest.mark.parametrize(("sign", "share", "tau"), [(1, 1.0, 1.0), (-1, 0.0, -1.0)])
def test_another_judge_is_compared_with_the_stored_scores(tmp_path, sign, share, tau):
    second = run_sync(examine_run(healthy_run(tmp_path), Fixed(sign))).second
    assert (second.groups, second.pairs.value, second.pairs.count, second.tau_b.value) == (2, share, 2, tau)


def test_pairs_with_nearly_equal_stored_scores_do_not_count(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.5, 0.52, 0.9)]], adapters=[b"a"])
    assert run_sync(examine_run(run, Fixed(1))).second.pairs.count == 2


def test_at_most_so_many_groups_are_judged_again(tmp_path):
    judge = Fixed(1)
    groups = [group_with(0.2, 0.6) for _ in range(9)]
    run_sync(examine_run(made_up_run(tmp_path, [groups], adapters=[b"a"]), judge, limit=4))
    assert judge.groups == 4


def test_a_second_opinion_changes_nothing_in_the_run(tmp_path):
    run = healthy_run(tmp_path)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    run_sync(examine_run(run, Fixed(1)))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_run_in_which_nothing_is_ordered_cannot_be_judged_again(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.5, 0.5)]], adapters=[b"a"])
    with pytest.raises(RunError, match=r"has no group whose scores differ by 0\.05 or more"):
        run_sync(examine_run(run, Fixed(1)))


def test_evaluations_of_a_run_are_read(tmp_path):
    healthy_run(tmp_path)
    with Run.open(tmp_path) as run:
        assert run.config == CONFIG
        run.write_evaluation(1, "", {"step": 1, "checks": {"copied": 0.1}})
        run.write_evaluation(2, "", {"step": 2, "checks": {"copied": 0.6}})
    alarm = copying(read_history(tmp_path))
    assert (alarm.is_raised, alarm.evidence) == (
        True,
        "longest copied run as a share of the answer 0.100 -> 0.600",
    )
