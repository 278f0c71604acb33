"""The order in which examples are seen, and the learning rate along the way."""

from __future__ import annotations

import pytest

from groundrule.training.schedule import falling_rate, shuffled_batches


def test_every_example_is_seen_once_an_epoch() -> None:
    batches = shuffled_batches(3, 2, epochs=2, seed=0)

    assert [len(batch) for batch in batches] == [2, 1, 2, 1]
    assert sorted(batches[0] + batches[1]) == sorted(batches[2] + batches[3]) == [0, 1, 2]


def test_each_epoch_and_each_seed_has_an_order_of_its_own() -> None:
    first, second = shuffled_batches(20, 20, epochs=2, seed=0)

    assert first != second
    assert shuffled_batches(20, 20, epochs=1, seed=1) != [first]
    assert shuffled_batches(20, 20, epochs=1, seed=0) == [first]


def test_the_rate_falls_along_a_line_towards_a_tenth() -> None:
    assert [falling_rate(1.0, step, 3) for step in (1, 2, 3)] == pytest.approx([1.0, 0.7, 0.4])
    assert falling_rate(1.0, 10_000, 10_000) == pytest.approx(0.1, abs=1e-3)
