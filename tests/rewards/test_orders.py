"""Orders and partitions: balanced, mirrored, connected, and the same for the same generator."""

import random
from statistics import fmean

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.orders import _bridge, _draw, is_connected, orders, partitions


def flat(drawn):
    return [chunk for chunks in drawn for chunk in chunks]


def test_every_second_order_is_the_reverse_of_the_one_before():
    first, second, third, fourth = orders(8, 4, rng=random.Random(1))
    assert second == first[::-1]
    assert fourth == third[::-1]
    assert third not in (first, second)


def test_each_order_shows_every_item_once():
    assert [sorted(order) for order in orders(5, 3, rng=random.Random(1))] == [[0, 1, 2, 3, 4]] * 3


def test_first_orders_vary_with_the_generator():
    assert len({tuple(orders(4, 1, rng=random.Random(seed))[0]) for seed in range(200)}) == 24


def test_no_passes_are_no_orders():
    assert orders(4, 0, rng=random.Random(1)) == []


def test_a_small_group_is_shown_whole_as_in_orders():
    whole = [[order] for order in orders(8, 4, rng=random.Random(3))]
    assert partitions(8, 4, rng=random.Random(3)) == whole


@pytest.mark.parametrize(
    ("n", "most", "sizes"),
    [(32, 8, [8, 8, 8, 8]), (9, 8, [5, 4]), (20, 8, [7, 7, 6]), (64, 8, [8] * 8), (5, 2, [2, 2, 1])],
)
def test_calls_are_of_equal_size_within_one(n, most, sizes):
    for chunks in partitions(n, 3, most=most, rng=random.Random(1)):
        assert [len(chunk) for chunk in chunks] == sizes
        assert sorted(item for chunk in chunks for item in chunk) == list(range(n))


def test_second_partition_mirrors_every_place_and_mixes_the_company():
    first, second = partitions(32, 2, rng=random.Random(5))
    place = {item: at for chunk in first for at, item in enumerate(chunk)}
    again = {item: at for chunk in second for at, item in enumerate(chunk)}
    assert all(place[item] + again[item] == 7 for item in range(32))
    assert all(frozenset(chunk) not in map(frozenset, first) for chunk in second)


def test_places_are_mirrored_as_far_as_unequal_calls_allow():
    first, second = partitions(20, 2, rng=random.Random(5))
    place = {item: at / (len(chunk) - 1) for chunk in first for at, item in enumerate(chunk)}
    again = {item: at / (len(chunk) - 1) for chunk in second for at, item in enumerate(chunk)}
    assert fmean(abs(place[item] + again[item] - 1) for item in range(20)) < 0.1


def test_third_partition_is_drawn_afresh():
    first, _, third = partitions(32, 3, rng=random.Random(5))
    assert [sorted(chunk) for chunk in first] != [sorted(chunk) for chunk in third]


def test_company_is_random():
    together = 0
    for seed in range(600):
        chunks = partitions(16, 2, rng=random.Random(seed))[0]
        together += any({0, 1} <= set(chunk) for chunk in chunks)
    assert together / 600 == pytest.approx(7 / 15, abs=0.06)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(("n", "most"), [(9, 8), (10, 3), (12, 2), (13, 2), (16, 8), (33, 4), (64, 8)])
def test_partitions_connect_all_items(n, most, count):
    for seed in range(20):
        assert is_connected(n, flat(partitions(n, count, most=most, rng=random.Random(seed))))


def test_a_bridge_connects_where_drawing_does_not():
    for n in range(3, 40):
        for most in range(2, min(n, 9)):
            first, second = _draw(n, 2, most, random.Random(n))
            bridge = _bridge(first, second)
            assert is_connected(n, first + bridge), (n, most)
            assert [len(chunk) for chunk in bridge] == [len(chunk) for chunk in first]


def test_same_generator_same_partitions():
    assert partitions(40, 3, rng=random.Random(7)) == partitions(40, 3, rng=random.Random(7))


def test_one_partition_of_a_large_group_is_refused():
    with pytest.raises(ConfigError, match="count is 1"):
        partitions(9, 1, rng=random.Random(1))


def test_calls_of_one_item_are_refused():
    with pytest.raises(ConfigError, match="most is 1"):
        partitions(9, 2, most=1, rng=random.Random(1))


def test_items_that_share_no_call_are_not_connected():
    assert not is_connected(4, [[0, 1], [2, 3]])
    assert not is_connected(3, [[0, 1]])
    assert is_connected(4, [[0, 1], [2, 3], [1, 2]])
    assert is_connected(1, [])
