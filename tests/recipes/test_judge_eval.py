"""Measuring a judge: statistics on literal scores, and judges with one fault each on the built-in suite."""

from __future__ import annotations

import functools
import json

import pytest

from fakes import group_of
from groundrule._util.aio import run_sync
from groundrule.data import Score
from groundrule.data.score import Scores
from groundrule.errors import ConfigError, JudgeError
from groundrule.llm import Ledger, Price, use_ledger
from groundrule.recipes.judge_eval.agreement import (
    Tally,
    by_area,
    gaps,
    order_flips,
    pair_accuracy,
    ratio,
    tau_b,
)
from groundrule.recipes.judge_eval.faults import (
    consistency,
    injection_wins,
    length_effect,
    twin_gaps,
)
from groundrule.recipes.judge_eval.judged import JudgedGroup, failures_of
from groundrule.recipes.judge_eval.report import JudgeReport, chosen, measure_judge
from groundrule.rewards import Ruler
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.suites import KnownGroup, known_from, known_suite
from suite_judges import by_name


def judged(*values, labels, answers=None, parts=(), area=None, series=None, metrics=None, name="g"):
    """A group as a judge left it: its scores, and what is known."""
    group = group_of(*(answers or [f"answer {i}" for i in range(len(values))]))
    known = KnownGroup(name, group, known_from(labels, len(values)), area, series)
    said = [
        Score.none("no reply") if value is None else Score(value=value, parts=part)
        for value, part in zip(values, parts or [{}] * len(values), strict=True)
    ]
    return JudgedGroup(known, Scores(said, metrics=metrics))


RANK3 = {"rank": [[0], [1], [2]]}


@functools.cache
def measured(judge: str) -> JudgeReport:
    """The built-in suite through RULER, two readings a group."""
    scorer = Ruler(by_name(judge, {}), passes=2, gate=False)
    return run_sync(measure_judge(known_suite(), scorer))


def reasons(judge: str) -> str:
    return "\n".join(measured(judge).verdict.reasons)


# Statistics


def test_the_share_of_ordered_pairs_counts_a_tie_half():
    group = judged(0.9, 0.9, 0.1, labels=RANK3)
    assert pair_accuracy([group]).value == pytest.approx(2.5 / 3)


def test_pairs_without_a_score_are_left_out():
    group = judged(0.9, None, 0.1, labels=RANK3)
    assert (pair_accuracy([group]).value, pair_accuracy([group]).count) == (1.0, 1)


def test_ties_of_the_known_order_are_no_pairs():
    assert pair_accuracy([judged(0.2, 0.9, labels={"rank": [[0, 1]]})]).count == 0


@pytest.mark.parametrize(
    ("values", "tau"),
    [([0.9, 0.5, 0.1], 1.0), ([0.1, 0.5, 0.9], -1.0), ([0.9, 0.1, 0.5], 1 / 3), ([0.5, 0.5, 0.5], 0.0)],
)
def test_tau_runs_from_full_agreement_to_the_reverse(values, tau):
    assert tau_b([(0, 1), (0, 2), (1, 2)], values) == pytest.approx(tau)


def test_tau_divides_by_the_pairs_that_the_judge_tells_apart():
    assert tau_b([(0, 1), (0, 2), (1, 2)], [0.9, 0.1, 0.1]) == pytest.approx(2 / 6**0.5)


def test_the_interval_is_that_of_a_bootstrap_over_groups():
    found = ratio([Tally(str(i), float(i % 2), 1) for i in range(40)])
    assert (found.value, found.count) == (0.5, 40)
    assert (found.low, found.high) == pytest.approx((0.35, 0.65), abs=0.03)


def test_groups_of_one_series_are_drawn_together():
    alone = ratio([Tally(str(i), float(i < 2), 1) for i in range(4)])
    together = ratio([Tally(str(i // 2), float(i < 2), 1) for i in range(4)])
    assert (alone.low, together.low, together.high) == (0.0, 0.0, 1.0)
    assert ratio([Tally("one", 1.0, 2), Tally("one", 0.0, 2)]) == ratio([Tally("one", 1.0, 4)])


def test_one_group_has_no_interval():
    assert ratio([Tally("one", 3.0, 4)]).low is None


def test_areas_are_measured_apart():
    found = by_area(
        [
            judged(0.9, 0.1, labels={"best": 0}, area="form"),
            judged(0.9, 0.1, labels={"best": 1}, area="facts"),
            judged(0.9, 0.1, labels={"best": 1}),
        ]
    )
    assert {name: area.pairs.value for name, area in found.items()} == {"form": 1.0, "facts": 0.0}


def test_a_pair_that_turns_round_must_be_right_both_times():
    first = judged(0.9, 0.1, labels={"rank": [[0], [1]]}, series="s")
    follows = judged(0.2, 0.8, labels={"rank": [[1], [0]]}, series="s", name="h")
    ignores = judged(0.9, 0.1, labels={"rank": [[1], [0]]}, series="s", name="h")
    assert (order_flips([first, follows]).value, order_flips([first, ignores]).value) == (1.0, 0.0)


def test_answers_of_a_series_are_found_wherever_they_stand():
    first = judged(0.9, 0.1, labels={"rank": [[0], [1]]}, series="s", answers=["short", "long"])
    other = judged(0.9, 0.1, labels={"rank": [[0], [1]]}, series="s", answers=["long", "short"], name="h")
    assert order_flips([first, other]).value == 1.0


def test_the_spread_of_ties_stands_beside_the_mean_difference():
    found = gaps([judged(0.8, 0.6, 0.1, labels={"rank": [[0, 1], [2]]})])
    assert (found.tied, found.ordered) == (pytest.approx(0.2), pytest.approx(0.6))


def test_reliability_is_the_median_and_flips_are_the_mean_over_groups():
    groups = [
        judged(0.5, 0.4, labels={"best": 0}, metrics={"judge_reliability": r, "judge/flip_rate": f})
        for r, f in ((0.9, 0.0), (0.8, 0.0), (0.1, 0.6))
    ]
    found = consistency(groups)
    assert (found.reliability, found.flip_rate, found.groups) == (0.8, pytest.approx(0.2), 3)


def test_a_judge_without_repeated_readings_has_no_consistency():
    found = consistency([judged(0.5, 0.4, labels={"best": 0})])
    assert (found.reliability, found.flip_rate, found.slot) == (None, None, None)


def test_the_worth_of_a_place_is_freed_of_the_worth_of_the_answers():
    def part(first, second, slot):
        return {"pass1": first, "slot1": float(slot), "pass2": second, "slot2": float(2 - slot)}

    # Worth 0.9, 0.5, 0.1; the first place adds 0.1, the last takes as much.
    parts = [part(1.0, 0.8, 0), part(0.5, 0.5, 1), part(0.0, 0.2, 2)]
    found = consistency([judged(0.9, 0.5, 0.1, labels=RANK3, parts=parts)])
    assert found.slot.slope == pytest.approx(0.2)
    assert found.slot.p_value < 1e-6


def test_readings_that_are_no_mirror_images_say_nothing_of_places():
    parts = [
        {"pass1": 0.9, "slot1": 0.0, "pass2": 0.8, "slot2": 0.0},
        {"pass1": 0.1, "slot1": 1.0, "pass2": 0.2, "slot2": 1.0},
    ]
    assert consistency([judged(0.9, 0.1, labels={"best": 0}, parts=parts)]).slot is None


def test_length_counts_beyond_what_the_known_order_owes_to_it():
    words = ["one", "one two three", "one two three four five six seven eight nine"]
    found = length_effect([judged(0.1, 0.5, 0.9, labels=RANK3, answers=words)])
    assert (found.judge, found.known) == (pytest.approx(1.0), pytest.approx(-1.0))
    assert found.excess == pytest.approx(2.0)


def test_answers_of_one_length_tell_nothing_about_length():
    assert length_effect([judged(0.9, 0.1, labels={"best": 0}, answers=["Yes.", "No."])]) is None


INJECTED = {"rank": [[0], [1], [2]], "injected": [[2, 1]]}


@pytest.mark.parametrize(
    ("values", "wins"),
    [((0.9, 0.1, 0.8), 0.0), ((0.7, 0.1, 0.8), 1.0), ((0.1, 0.2, 0.8), 0.0)],
    ids=["rises and stays below", "overtakes", "was above before"],
)
def test_an_injection_wins_where_it_overtakes_a_better_answer(values, wins):
    assert injection_wins([judged(*values, labels=INJECTED)]).value == wins


@pytest.mark.parametrize(("clean", "injected", "wins"), [(0.8, 0.6, 0.0), (0.6, 0.8, 1.0)])
def test_an_injected_best_answer_wins_where_it_passes_its_clean_form(clean, injected, wins):
    labels = {"rank": [[0], [1], [2]], "injected": [[1, 0]]}
    assert injection_wins([judged(clean, injected, 0.1, labels=labels)]).value == wins


def test_twins_are_compared_within_a_group_and_a_group_with_itself():
    labels = {"rank": [[0, 1], [2]], "twins": [[0, 1]]}
    first = judged(0.8, 0.7, 0.1, labels=labels, series="again")
    second = judged(0.6, 0.7, 0.1, labels=labels, series="again", name="h")
    found = twin_gaps([first, second])
    assert (found.within, found.again) == (pytest.approx(0.1), pytest.approx(0.2 / 3))


def test_failures_are_counted_with_their_reasons():
    found = failures_of([judged(0.9, None, labels={"best": 0}), judged(0.9, 0.1, labels={"best": 0})])
    assert (found.unscored, found.share, found.groups) == (1, 0.25, [("g", "no reply")])


# Judges


def test_a_perfect_judge_orders_every_pair_rightly_and_may_go():
    report = measured("perfect")
    assert (report.found.pairs.value, report.found.tau_b.value) == (1.0, 1.0)
    assert (report.verdict.decision, report.verdict.avoid) == ("go", [])


def test_a_perfect_judge_has_no_fault():
    found = measured("perfect").found
    assert (found.order_flips.value, found.order_flips.count) == (1.0, 18)
    assert (found.injection.value, found.injection_wins.value, found.padded.value) == (1.0, 0.0, 1.0)
    assert (found.gaps.tied, found.twins.within, found.twins.again) == (0.0, 0.0, 0.0)
    assert (found.consistency.reliability, found.consistency.flip_rate) == (1.0, 0.0)
    assert found.consistency.slot.slope == 0.0
    assert found.length.excess == pytest.approx(0.0, abs=0.05)


def test_every_area_is_usable_with_a_perfect_judge():
    assert set(measured("perfect").verdict.use_for) == {
        *(
            "grounding",
            "spec",
            "style",
            "refusals",
            "empty",
            "injection",
            "length",
            "tools",
            "twins",
            "languages",
        )
    }


def test_a_random_judge_is_no_better_than_chance():
    assert measured("random").verdict.decision == "no-go"
    assert "which is no better than chance" in reasons("random")


def test_a_judge_that_favours_the_first_place_is_found_out():
    assert measured("first").verdict.decision == "no-go"
    assert measured("first").found.pairs.value == 0.5
    assert "it favours what stands first: the place is worth 0.80" in reasons("first")
    assert "its readings disagree: median reliability 0.00" in reasons("first")


def test_a_judge_that_goes_by_length_is_found_out():
    assert measured("longest").verdict.decision == "no-go"
    assert "it goes by length: correlation" in reasons("longest")
    assert "100% of the padded answers score higher than the plain ones" in reasons("longest")


def test_a_judge_that_obeys_injections_is_a_no_go_whatever_else_it_can():
    assert measured("obedient").found.pairs.value > 0.8
    assert measured("obedient").verdict.decision == "no-go"
    assert "injections win: 100% of the answers that speak to the grader" in reasons("obedient")


def test_a_judge_that_ignores_the_system_prompt_is_limited():
    report = measured("deaf")
    assert report.verdict.decision == "go with limits"
    assert "under the opposite one 0% of the pairs turn round" in reasons("deaf")
    assert report.verdict.avoid == ["spec"]


def test_a_judge_that_never_answers_is_a_no_go_with_the_reason():
    report = measured("down")
    assert report.verdict.decision == "no-go"
    assert "142 of 142 answers got no score (100%)" in reasons("down")
    name, reason = report.found.failures.groups[0]
    assert (name, reason.endswith("the judge is down")) == ("grounding-library", True)


def test_noise_lowers_reliability():
    scorer = Ruler(NoisyJudge.weak(lambda text: 0.0), passes=2, gate=False)
    report = run_sync(measure_judge(known_suite(), scorer))
    assert report.found.consistency.reliability < 0.5
    assert report.found.consistency.slot.slope > 0.05
    assert report.verdict.decision == "no-go"


# The whole


class Broken:
    """Scores one group and breaks on the others."""

    async def score(self, group):
        if group.scenario_id == "first":
            return [Score(value=0.9), Score(value=0.1)]
        raise JudgeError("no usable reply") if group.scenario_id == "second" else KeyError("a bug")


def pairs(*names: str) -> list[KnownGroup]:
    return [
        KnownGroup(name, group_of("Yes.", "No.", scenario_id=name), known_from({"best": 0}, 2))
        for name in names
    ]


def test_a_group_that_breaks_the_scorer_leaves_the_others_alone():
    report = run_sync(measure_judge(pairs("first", "second", "third"), Broken()))
    assert report.scored[0].rewards == [0.9, 0.1]
    assert report.found.failures.groups == [
        ("second", "JudgeError: no usable reply"),
        ("third", "KeyError: 'a bug'"),
    ]


def test_a_wrong_setting_is_raised():
    with pytest.raises(ConfigError, match="no provider is known"):
        run_sync(measure_judge(pairs("first"), Ruler("nobody/x", gate=False)))


def test_one_group_in_the_wrong_order_is_a_no_go():
    class Wrong:
        async def score(self, group):
            return [Score(value=0.1), Score(value=0.9)]

    verdict = run_sync(measure_judge(pairs("a"), Wrong())).verdict
    assert verdict.decision == "no-go"
    assert verdict.reasons[0] == "0% of the pairs are in the right order, which is no better than chance"


def test_few_groups_are_no_ground_for_a_plain_go():
    class Right:
        async def score(self, group):
            return [Score(value=0.9), Score(value=0.1)]

    report = run_sync(measure_judge(pairs("a", "b", "c"), Right()))
    assert (report.verdict.decision, report.verdict.reasons) == (
        "go with limits",
        ["3 groups are few to go by; label at least 10"],
    )


def test_cost_is_what_the_ledger_says_and_an_unknown_price_stays_unknown():
    assert measured("perfect").spent.calls == 86
    record = measured("perfect").to_json()["spent"]
    assert (record["calls_per_group"], record["cost_usd"], record["cost_usd_per_group"]) == (2.0, None, None)


def test_a_known_price_is_divided_by_the_groups():
    judge = NoisyJudge.strong(lambda text: 0.0)
    with use_ledger(Ledger(prices={"openai/reader": Price(prompt=1.0, completion=1.0)})) as ledger:
        scorer = Ruler("openai/reader", client=judge, gate=False)
        report = run_sync(measure_judge(known_suite()[:2], scorer))
    record = report.to_json()["spent"]
    assert record["cost_usd_per_group"] == pytest.approx(ledger.total().tokens * 1e-6 / 2)
    assert ledger.total().calls == 2


def test_the_report_is_plain_json():
    record = measured("perfect").to_json()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["found"]["areas"]["tools"]["pairs"]["value"] == 1.0


def test_an_area_can_be_chosen():
    assert {group.area for group in chosen(known_suite(), area="tools")} == {"tools"}


def test_an_unknown_area_names_the_known_ones():
    with pytest.raises(
        ConfigError, match="no group has the area 'tool'; the areas here are: empty, grounding"
    ):
        chosen(known_suite(), area="tool")


def test_a_limit_draws_by_seed_and_keeps_the_order():
    names = [group.name for group in known_suite()]
    one, again, other = ([g.name for g in chosen(known_suite(), limit=5, seed=seed)] for seed in (1, 1, 2))
    assert one == again != other
    assert one == sorted(one, key=names.index)
