"""What calls teach about a judge: found where it is there, left alone where it is not or too little is known."""

import random
from statistics import correlation, fmean

import pytest

from groundrule.rewards.calibration import Calibration
from groundrule.rewards.noisy import NoisyJudge

AS_GIVEN = [0, 1, 2]


def close(*values):
    return [None if value is None else pytest.approx(value, abs=1e-9) for value in values]


def favouring(effects, calls, *, noise=0.1, seed=1):
    """A calibration after so many calls of a judge that adds these effects to the scores of equal items."""
    rng = random.Random(seed)
    known = Calibration()
    for _ in range(calls):
        known.observe([0.5 + effect + rng.gauss(0.0, noise) for effect in effects])
    return known


def test_a_favoured_place_is_found():
    found = favouring([0.15, 0.05, -0.05, -0.15], 400).slot_effects(4)
    assert found == pytest.approx([0.15, 0.05, -0.05, -0.15], abs=0.02)


def test_a_liking_for_both_ends_is_found():
    found = favouring([0.1, -0.1, -0.1, 0.1], 400).slot_effects(4)
    assert found == pytest.approx([0.1, -0.1, -0.1, 0.1], abs=0.02)


def test_a_judge_without_favourites_is_hardly_ever_corrected():
    corrected = [any(favouring([0.0] * 8, 100, seed=seed).slot_effects(8)) for seed in range(50)]
    assert sum(corrected) <= 6


def test_few_calls_correct_nothing():
    assert favouring([0.3, 0.0, -0.3], 19, noise=0.0).slot_effects(3) == [0.0, 0.0, 0.0]


def test_calls_of_another_size_correct_nothing():
    assert favouring([0.15, -0.15], 400).slot_effects(3) == [0.0, 0.0, 0.0]


def test_nothing_is_known_of_calls_never_seen():
    assert Calibration().slot_effects(2) == [0.0, 0.0]


def test_a_call_without_scores_teaches_nothing():
    known = favouring([0.15, -0.15], 400)
    before = known.slot_effects(2)
    known.observe([None, None])
    assert known.slot_effects(2) == before


def test_missing_scores_do_not_disturb_the_places():
    rng = random.Random(1)
    known = Calibration()
    for _ in range(600):
        call = [0.6 + rng.gauss(0, 0.05), 0.5 + rng.gauss(0, 0.05), 0.4 + rng.gauss(0, 0.05)]
        if rng.random() < 0.1:
            call[1] = None
        known.observe(call)
    assert known.slot_effects(3) == pytest.approx([0.1, 0.0, -0.1], abs=0.01)


def test_a_corrected_call_lacks_the_effect_of_the_places():
    known = favouring([0.1, -0.1], 4000, noise=0.01)
    assert known.corrected([0.6, 0.6]) == pytest.approx([0.5, 0.7], abs=0.002)
    assert known.corrected([0.6, None])[1] is None


def test_corrected_scores_stay_on_the_scale():
    known = favouring([0.1, -0.1], 4000, noise=0.01)
    assert known.corrected([0.2, 0.95]) == pytest.approx([0.15, 1.0], abs=0.002)


def test_passes_are_averaged_while_nothing_is_known():
    passes = [[0.9, 0.5, 0.1], [0.8, 0.4, 0.3]]
    assert Calibration().combine(passes, [AS_GIVEN] * 2) == close(0.85, 0.45, 0.2)


def test_one_pass_stays_as_it_is():
    assert Calibration().combine([[0.9, 0.5, 0.1]], [AS_GIVEN]) == close(0.9, 0.5, 0.1)


def test_no_passes_give_no_scores():
    assert Calibration().combine([], []) == []


def test_items_without_any_score_have_none():
    assert Calibration().combine([[0.9, None], [0.8, None]], [[0, 1], [1, 0]]) == close(0.85, None)


def test_missing_a_lenient_pass_is_no_disadvantage():
    # The first pass is 0.3 above the second on the items that both scored.
    passes = [[0.9, 0.5, None], [0.6, 0.2, 0.2]]
    assert Calibration().combine(passes, [AS_GIVEN] * 2) == close(0.75, 0.35, 0.35)


def test_passes_that_share_no_item_keep_their_proportions():
    assert Calibration().combine([[0.9, 0.5, None], [None, None, 0.7]], [AS_GIVEN] * 2) == close(
        0.9, 0.5, 0.7
    )


def test_combining_takes_off_the_place_of_each_pass():
    known = favouring([0.1, 0.0, -0.1], 4000, noise=0.01)
    found = known.combine([[0.6, 0.5, 0.4], [0.6, 0.5, 0.6]], [[0, 1, 2], [0, 1, 2]])
    assert found == pytest.approx([0.5, 0.5, 0.6], abs=0.002)


def squeezed(groups):
    """After groups whose second pass says the same as the first at half the spread, on average."""
    rng = random.Random(1)
    known = Calibration()
    for _ in range(groups):
        first = [rng.uniform(-0.3, 0.3) for _ in range(8)]
        half = [0.5 * score for score in first]
        passes = [first, half] if rng.random() < 0.5 else [half, first]
        known.combine([[0.5 + score for score in scores] for scores in passes], [list(range(8))] * 2)
    return known


def test_a_squeezed_pass_is_heard_as_loudly_as_the_other():
    # The second pass has half the spread and another opinion; on equal spreads the first two items would tie.
    # What rounding could make of equal items is not counted as spread, so a little of the gap is left.
    passes = [[0.9, 0.1, 0.5], [0.3, 0.7, 0.5]]
    plain = Calibration().combine(passes, [AS_GIVEN] * 2)
    drawn = squeezed(300).combine(passes, [AS_GIVEN] * 2)
    assert plain[0] - plain[1] == pytest.approx(0.2)
    assert drawn[0] - drawn[1] == pytest.approx(0.062, abs=0.005)


def test_passes_that_spread_alike_are_left_alone_however_many_were_seen():
    rng = random.Random(1)
    known = Calibration()
    for _ in range(300):
        q = [rng.gauss(0.5, 0.1) for _ in range(8)]
        noisy = [[value + rng.gauss(0, 0.1) for value in q] for _ in range(4)]
        known.combine(noisy, [list(range(8))] * 4)
    assert known.combine([[0.9, 0.1, 0.5], [0.3, 0.7, 0.5]], [AS_GIVEN] * 2) == close(0.6, 0.4, 0.5)


def test_what_all_passes_agree_on_keeps_its_order():
    known = squeezed(300)
    rng = random.Random(2)
    for _ in range(200):
        passes = [sorted(round(rng.random(), 2) for _ in range(5)) for _ in range(3)]
        values = known.combine(passes, [[None] * 5] * 3)
        assert values == sorted(values)


def test_combined_scores_stay_on_the_scale():
    values = squeezed(300).combine([[1.0, 1.0, 0.9, 1.0], [1.0, 0.9, 0.0, 1.0]], [[None] * 4] * 2)
    assert max(values) <= 1.0
    assert min(values) >= 0.0


def test_one_reading_of_a_judge_that_favours_the_first_comes_nearer_to_the_truth():
    judge = NoisyJudge.weak()
    rng = random.Random(3)
    known = Calibration()
    plain, learned = [], []
    for group in range(400):
        q = [rng.gauss(0, 1) for _ in range(8)]
        said = judge.scores(q, rng=rng)
        if group >= 100:
            plain.append(correlation(said, q))
            learned.append(correlation(known.corrected(said), q))
        known.observe(said)
    assert fmean(learned) - fmean(plain) > 0.02
