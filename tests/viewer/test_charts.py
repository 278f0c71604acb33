"""Charts and intervals of the report."""

from __future__ import annotations

import pytest

from groundrule.viewer.charts import Series, line_chart, nice_ticks, sparkline
from groundrule.viewer.intervals import paired_change


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.31, 0.74, [0.2, 0.4, 0.6, 0.8]),
        (-3.0, 12.0, [-5.0, 0.0, 5.0, 10.0, 15.0]),
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
