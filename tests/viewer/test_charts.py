"""Charts and intervals of the report."""

from __future__ import annotations

import re

import pytest

from groundrule.viewer.charts import RightAxis, Series, line_chart, nice_ticks, sparkline
from groundrule.viewer.intervals import change_of_means, paired_change


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.31, 0.74, [0.2, 0.4, 0.6, 0.8]),
        (-3.0, 12.0, [-5.0, 0.0, 5.0, 10.0, 15.0]),
        (-0.02, 12.0, [0.0, 5.0, 10.0, 15.0]),
        (0.5, 0.5, [0.0, 0.25, 0.5, 0.75, 1.0]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


def test_a_chart_without_points_is_not_drawn() -> None:
    assert line_chart("Reward", [Series("mean", [])]) is None


def test_a_single_point_is_a_dot() -> None:
    drawn = line_chart("Reward", [Series("mean", [(1, 0.5)])])
    assert drawn is not None and "<circle" in drawn and "<polyline" not in drawn


def test_a_chart_can_be_heard() -> None:
    drawn = line_chart("Reward", [Series("mean", [(1, 0.25), (2, 0.5)])])
    assert drawn is not None and 'aria-label="Reward: mean from 0.25 to 0.5"' in drawn


def two_axes(*, beside: list[tuple[float, float]]) -> str:
    right = RightAxis(Series("KL", beside, "aside"), "nats")
    drawn = line_chart("Score", [Series("mean", [(1, 0.5), (2, 1.0)])], showing=(0.0, 1.0), right=right)
    return drawn or ""


def test_a_scale_shows_what_it_is_told_to_show() -> None:
    assert re.findall(r'text-anchor="end">([^<]+)<', two_axes(beside=[])) == [
        "0",
        "0.25",
        "0.5",
        "0.75",
        "1",
        "2",
    ]


def test_a_right_axis_has_ticks_of_its_own_and_its_unit() -> None:
    page = two_axes(beside=[(1, 0.0), (2, 20.0)])
    assert re.findall(r'<text x="397[^>]*>([^<]+)<', page) == ["0", "5", "10", "15", "20"]
    assert re.findall(r"rotate[^>]*>([^<]+)<", page) == ["nats"]


def test_lines_of_both_axes_end_at_the_right_axis() -> None:
    page = two_axes(beside=[(1, 0.0), (2, 20.0)])
    assert re.findall(r'<polyline points="([^"]+)" class="line (\w+)"', page) == [
        ("38.0,184.0 390.0,10.0", "aside"),
        ("38.0,97.0 390.0,10.0", "one"),
    ]


def test_a_right_axis_can_be_heard_with_its_unit() -> None:
    page = two_axes(beside=[(1, 0.0), (2, 20.0)])
    assert 'aria-label="Score: mean from 0.5 to 1; KL from 0 to 20 nats"' in page


def test_a_right_axis_without_points_takes_no_room() -> None:
    page = two_axes(beside=[])
    assert '<polyline points="38.0,97.0 428.0,10.0" class="line one"' in page and "nats" not in page


def test_a_flat_sparkline_is_a_line() -> None:
    assert 'points="0.0,22.0 100.0,22.0"' in sparkline([3, 3])


def test_an_interval_is_the_same_every_time() -> None:
    pairs = [(0.1, 0.4), (0.2, 0.3), (0.5, 0.4), (0.3, 0.9), (0.1, 0.1), (0.2, 0.6)]
    assert paired_change(pairs, name="score") == paired_change(pairs, name="score")


def test_the_interval_of_a_constant_change_is_that_change() -> None:
    change = paired_change([(0.0, 0.5)] * 5, name="score")
    assert change is not None and (change.low, change.high, change.is_clear) == (0.5, 0.5, True)


def test_the_interval_of_ups_and_downs_includes_zero() -> None:
    change = paired_change([(0.0, 1.0), (1.0, 0.0)] * 10, name="score")
    assert change is not None and not change.is_clear


def test_without_pairs_there_is_no_change() -> None:
    assert paired_change([], name="score") is None


def test_the_interval_between_spans_of_steps_is_two_standard_errors_to_either_side() -> None:
    change = change_of_means([[0.0]] * 5 + [[1.0]] * 5, [[1.0]] * 5)
    assert change is not None and (change.before, change.after, change.count) == (0.5, 1.0, 15)
    assert change.margin == pytest.approx(2 / 6)  # The deviation of the ten is sqrt(10 / 36).


def test_answers_of_one_group_do_not_count_as_independent() -> None:
    alone = change_of_means([[0.0]] * 5 + [[1.0]] * 5, [[1.0]] * 5)
    fourfold = change_of_means([[0.0] * 4] * 5 + [[1.0] * 4] * 5, [[1.0] * 4] * 5)
    assert alone is not None and fourfold is not None and fourfold.margin == pytest.approx(alone.margin)


def test_few_groups_give_no_interval_between_spans() -> None:
    change = change_of_means([[0.0, 0.1]] * 4, [[1.0]] * 9)
    assert change is not None and (change.margin, change.is_clear) == (None, False)
