"""Merging calls about parts of a group: what must come back unchanged, and what company must not change."""

import math
import random
from statistics import fmean

import pytest

from groundrule.rewards.merge import drawn_in, merge, merge_reliability, strengths
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.orders import partitions


def close(*values):
    return [None if value is None else pytest.approx(value, abs=1e-6) for value in values]


def cosine(values, truth):
    a, b = [v - fmean(values) for v in values], [t - fmean(truth) for t in truth]
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def read(judge, qualities, count, rng):
    drawn = partitions(len(qualities), count, rng=rng)
    orders = [order for chunks in drawn for order in chunks]
    return [
        dict(zip(order, judge.scores([qualities[i] for i in order], rng=rng), strict=True))
        for order in orders
    ]


def test_a_single_call_comes_back_as_it_was():
    assert merge(4, [{0: 0.98, 1: 0.2, 2: 0.05, 3: 0.96}]) == close(0.98, 0.2, 0.05, 0.96)


def test_items_in_no_call_have_no_value():
    assert merge(3, [{0: 0.9, 2: 0.4}]) == close(0.9, None, 0.4)


def test_nothing_judged_gives_no_values():
    assert merge(2, []) == [None, None]
    assert merge(0, []) == []


def test_an_item_judged_alone_keeps_its_score():
    assert merge(3, [{0: 0.9, 1: 0.5}, {2: 0.7}]) == close(0.9, 0.5, 0.7)


def test_parts_that_share_no_item_keep_their_levels():
    assert merge(4, [{0: 0.9, 1: 0.8}, {2: 0.2, 3: 0.1}]) == close(0.9, 0.8, 0.2, 0.1)


def test_opposite_readings_cancel():
    assert merge(2, [{0: 0.9, 1: 0.1}, {0: 0.1, 1: 0.9}]) == close(0.5, 0.5)


def test_strict_company_weighs_less_than_in_the_mean_scores():
    # The second call is 0.2 lower throughout, so items 0 and 3 are really 0.6 apart; their means are 0.8.
    values = merge(4, [{0: 0.8, 1: 0.6, 2: 0.4}, {1: 0.4, 2: 0.2, 3: 0.0}])
    assert values[0] - values[3] == pytest.approx(0.746, abs=5e-4)
    assert values[0] > values[1] > values[2] > values[3]


def test_the_mean_of_the_values_is_the_mean_of_the_items_mean_scores():
    values = merge(4, [{0: 0.8, 1: 0.6, 2: 0.4}, {1: 0.4, 2: 0.2, 3: 0.0}])
    assert fmean(values) == pytest.approx((0.8 + 0.5 + 0.3 + 0.0) / 4)


def test_values_beyond_the_scale_draw_the_group_in_without_changing_proportions():
    chunks = [{0: 1.0, 1: 0.5}, {1: 1.0, 2: 0.9}]
    values = merge(3, chunks)
    free = strengths([1.0 / 0.15, 0.75 / 0.15, 0.9 / 0.15], chunks)
    assert max(free) * 0.15 > 1.0
    assert values[0] == 1.0
    share = (values[0] - values[2]) / (values[0] - values[1])
    assert share == pytest.approx((free[0] - free[2]) / (free[0] - free[1]))


def test_scores_at_the_ends_stay_finite_and_in_order():
    assert merge(3, [{0: 1.0, 1: 1.0, 2: 0.0}] * 4) == close(1.0, 1.0, 0.0)


def test_items_may_be_numbered_in_any_way():
    chunks = [{0: 0.8, 1: 0.6, 2: 0.4}, {1: 0.4, 2: 0.2, 3: 0.0}]
    swapped = [{3 - i: score for i, score in chunk.items()} for chunk in chunks]
    assert merge(4, swapped)[::-1] == close(*merge(4, chunks))


def test_a_slope_of_zero_is_reached():
    chunks = [{0: 0.9, 1: 0.2, 2: 0.4}, {0: 0.1, 2: 0.7, 3: 0.5}, {1: 0.9, 3: 0.05}]
    prior = [0.5 / 0.15, 0.55 / 0.15, 0.55 / 0.15, 0.275 / 0.15]
    found = strengths(prior, chunks)

    def gain(t):
        log_odds = 0.0
        for chunk in chunks:
            for i, a in chunk.items():
                for j, b in chunk.items():
                    if i != j:
                        log_odds += math.log(1 / (1 + math.exp(t[j] - t[i]))) / (1 + math.exp((b - a) / 0.15))
        return log_odds - 0.25 * sum((x - p) ** 2 for x, p in zip(t, prior, strict=True))

    for i in range(4):
        up, down = list(found), list(found)
        up[i] += 1e-4
        down[i] -= 1e-4
        assert (gain(up) - gain(down)) / 2e-4 == pytest.approx(0.0, abs=1e-6)


def test_thirty_two_items_in_two_partitions_of_a_good_judge_stand_near_the_truth():
    rng = random.Random(11)
    cosines = []
    for _ in range(12):
        q = [rng.gauss(0, 1) for _ in range(32)]
        cosines.append(cosine(merge(32, read(NoisyJudge.strong(), q, 2, rng)), q))
    assert fmean(cosines) > 0.9


def test_calls_that_agree_are_fully_reliable():
    chunks = [{0: 0.9, 1: 0.5}, {1: 0.5, 2: 0.1}, {2: 0.1, 0: 0.9}]
    assert merge_reliability(3, chunks, merge(3, chunks)) == pytest.approx(1.0)


def test_calls_that_differ_by_an_offset_only_are_fully_reliable():
    chunks = [{0: 0.9, 1: 0.5}, {1: 0.3, 2: 0.1}, {2: 0.2, 0: 0.8}]
    assert merge_reliability(3, chunks, [0.8, 0.4, 0.2]) == pytest.approx(1.0)


def test_calls_that_contradict_each_other_are_not_reliable():
    chunks = [{0: 0.9, 1: 0.1, 2: 0.5}, {0: 0.1, 1: 0.9, 2: 0.6}]
    assert merge_reliability(3, chunks, merge(3, chunks)) == 0.0


def test_reliability_by_hand():
    # Around their means the calls are +-0.3 and +-0.2, the values +-0.25: gain 1, residuals +-0.05, two scores
    # beyond two offsets, one of them needed for the one difference: noise 0.01 x 1/2 of variance 0.125.
    chunks = [{0: 0.8, 1: 0.2}, {0: 0.6, 1: 0.2}]
    assert merge_reliability(2, chunks, [0.7, 0.2]) == pytest.approx(1 - 0.005 / 0.125)


def test_equal_scores_everywhere_contradict_nothing():
    assert merge_reliability(3, [{0: 0.5, 1: 0.5, 2: 0.5}] * 2, [0.5, 0.5, 0.5]) == 1.0


@pytest.mark.parametrize("chunks", [[], [{0: 0.9, 1: 0.1, 2: 0.4}], [{0: 0.9, 1: 0.1}, {1: 0.3, 2: 0.5}]])
def test_reliability_is_unknown_where_no_score_is_left_over(chunks):
    assert merge_reliability(3, chunks, merge(3, chunks)) is None


def test_reliability_is_that_of_merges_of_separate_readings():
    judge = NoisyJudge(noise=1.0, primacy=0.0, scale_sd=0.3, quant=0.05)
    rng = random.Random(2)
    said, agreed = [], []
    for _ in range(40):
        q = [rng.gauss(0, 1) for _ in range(24)]
        first, second = read(judge, q, 3, rng), read(judge, q, 3, rng)
        values = merge(24, first)
        said.append(merge_reliability(24, first, values))
        agreed.append(cosine(values, merge(24, second)))
    assert fmean(said) == pytest.approx(fmean(agreed), abs=0.05)


def test_values_on_the_scale_are_left_alone():
    assert drawn_in([0.0, 0.4, 1.0]) == [0.0, 0.4, 1.0]


def test_values_off_the_scale_are_drawn_towards_their_mean():
    assert drawn_in([1.2, 0.6, 0.6]) == close(1.0, 0.7, 0.7)
