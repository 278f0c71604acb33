"""Accepted playbooks: which is shipped, which are gone on from, and what they gained."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from groundrule.errors import ConfigError
from groundrule.prompt_learning.acceptance import Look, Standing
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.playbook import Lesson, Playbook
from groundrule.prompt_learning.versions import Pool, Version, gains_after

CITE = Lesson("L1", "Cite the page.", helpful=3)


def version(number, parent=0, **gains):
    return Version(
        number, Playbook((Lesson(f"L{number}", f"Lesson {number}."),)), parent, "test", gains=gains
    )


def pool(*versions, size=8):
    made = Pool(size=size)
    for one in versions:
        made.add(one)
    return made


def test_a_pool_begins_with_an_empty_playbook():
    made = Pool()
    assert (made.head.number, made.head.playbook, made.head.how, made.live) == (0, Playbook(), "start", [0])


def test_numbers_follow_each_other():
    assert pool(version(1, a=0.1)).next_number == 2


def test_a_version_is_had_by_its_number():
    made = pool(version(1, a=0.1))
    assert made[1] is made.versions[1]


def test_a_number_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="there is no version 7; versions are 0 to 1"):
        pool(version(1, a=0.1))[7]


def test_the_head_has_the_highest_gain():
    assert pool(version(1, a=0.5, b=0.25), version(2, a=1.0, b=-0.5)).head.number == 1


def test_of_equal_gains_the_newest_is_the_head():
    assert pool(version(1, a=0.5), version(2, a=0.5)).head.number == 2


def test_nothing_gained_leaves_the_start_at_the_head():
    assert pool(version(1, a=-0.5)).head.number == 0


def test_a_gain_is_the_mean_over_scenarios():
    assert (version(1, a=0.5, b=0.25).gain, version(1).gain) == (0.375, 0.0)


def test_unrelated_versions_win_where_they_are_best_and_ties_count_for_all():
    made = pool(version(1, a=0.5, b=0.0, c=0.25), version(2, a=0.0, b=0.5, c=0.25))
    assert made.wins() == {0: 0, 1: 2, 2: 2}


def against_nine_gains(difference):
    return pool(version(1, **{f"s{i}": 0.25 for i in range(9)}, last=difference)).wins()


def test_a_version_that_was_improved_on_wins_where_it_is_far_ahead():
    # Nine gains of 0.25 and one loss of 0.5 spread by 0.225, and 0.5 is more than twice that.
    assert against_nine_gains(-0.5) == {0: 1, 1: 9}


def test_it_does_not_win_where_it_is_ahead_within_the_spread():
    # With a loss of 0.25 they spread by 0.15.
    assert against_nine_gains(-0.25) == {0: 0, 1: 9}


def test_a_full_pool_loses_the_version_that_is_best_nowhere():
    made = pool(version(1, a=0.5, b=0.25), version(2, a=0.25, b=0.0), version(3, a=0.0, b=0.5), size=2)
    assert made.live == [1, 3]


def test_of_versions_that_are_best_nowhere_the_weakest_goes_first():
    made = pool(version(1, a=0.25), version(2, a=0.125), version(3, a=0.5), size=3)
    assert made.live == [1, 2, 3]


def test_the_head_stays_in_a_full_pool_even_where_it_is_best_nowhere():
    specialists = [version(2, a=1.0, b=0.0), version(3, a=0.0, b=1.0)]
    made = pool(version(1, a=0.75, b=0.75), *specialists, size=2)
    assert (made.head.number, 1 in made.live) == (1, True)


def test_versions_that_left_the_pool_stay_in_the_history():
    made = pool(version(1, a=0.25), version(2, a=0.5), size=1)
    assert ([one.number for one in made.versions], made.live) == ([0, 1, 2], [2])


def test_parents_are_drawn_in_proportion_to_where_they_are_best():
    made = pool(version(1, a=0.5, b=0.5, c=0.5, d=0.0), version(2, a=0.0, b=0.0, c=0.0, d=0.5))
    drawn = Counter(made.draw_parent("seed", i).number for i in range(2000))
    assert drawn.keys() == {1, 2}
    assert drawn[1] / 2000 == pytest.approx(0.75, abs=0.03)


def test_the_same_seed_draws_the_same_parent():
    made = pool(version(1, a=0.5, b=0.0), version(2, a=0.0, b=0.5))
    assert [made.draw_parent(3, i).number for i in range(9)] == [
        made.draw_parent(3, i).number for i in range(9)
    ]


def test_where_nobody_was_tested_the_head_is_drawn():
    assert Pool().draw_parent(1).number == 0


def test_only_one_is_gone_on_from_after_a_decision_by_hand():
    made = pool(version(1, a=0.5))
    made.only(version(2, parent=1))
    assert (made.live, made.head.number, len(made.versions)) == ([2], 2, 3)


def test_a_line_goes_from_the_start_to_a_version():
    made = pool(version(1, a=0.1), version(2, a=0.1), version(3, parent=1, a=0.1))
    assert [one.number for one in made.line_of(3)] == [0, 1, 3]


def test_gains_add_up_along_a_line():
    parent = version(1, a=0.5, b=0.25)
    assert gains_after(parent, {"a": 0.25, "b": -0.5}) == {"a": 0.75, "b": -0.25}


def test_where_a_child_was_not_tested_its_mean_difference_stands_in():
    parent = version(1, a=0.5, b=0.25)
    assert gains_after(parent, {"a": 0.25}) == {"a": 0.75, "b": 0.5}


def test_where_a_parent_was_not_tested_its_mean_gain_stands_in():
    parent = version(1, a=0.5, b=0.25)
    assert gains_after(parent, {"a": 0.25, "b": 0.25, "c": 0.25})["c"] == 0.625


def test_the_first_version_gains_what_its_test_showed():
    assert gains_after(Pool().head, {"a": 0.5, "b": -0.25}) == {"a": 0.5, "b": -0.25}


def test_a_child_that_is_better_on_other_scenarios_becomes_the_head():
    parent = version(1, a=0.5, b=0.5)
    made = pool(parent, version(2, parent=1, **gains_after(parent, {"c": 0.125, "d": 0.125, "e": 0.125})))
    assert made.head.number == 2
    assert made.head.gain == pytest.approx(0.625)


def test_without_differences_a_child_has_its_parents_gains():
    assert gains_after(version(1, a=0.5), {}) == {"a": 0.5}


def test_what_a_test_shows_of_a_lesson_is_noted_in_every_version_that_has_it():
    made = Pool()
    made.add(Version(1, Playbook((CITE,)), 0, gains={"a": 0.5}))
    made.add(Version(2, Playbook((CITE, Lesson("L2", "Be brief."))), 1, gains={"a": 0.75}))
    made.count("L1", helpful=2, harmful=1)
    assert [one.playbook.lesson("L1") for one in made.versions] == [
        None,
        *[Lesson("L1", "Cite the page.", 5, 1)] * 2,
    ]


def full():
    edit = Edit("add", "Cite the page.", None, "Pages were missing.", ("g1",))
    test = Standing("accepted", (Look(8, 0.5, 0.004, 0.01),)).to_dict()
    return Version(
        1, Playbook((CITE,)), 0, "test", 3, edit, "L1", ({"id": "g1", "task": "Refunds?"},), test, {"a": 0.5}
    )


def test_a_version_survives_a_file():
    back = Version.from_dict(json.loads(json.dumps(full().to_dict())))
    assert (back.playbook, back.edit, back.gains, back.evidence) == (
        full().playbook,
        full().edit,
        {"a": 0.5},
        ({"id": "g1", "task": "Refunds?"},),
    )


def test_a_pool_survives_a_file():
    made = pool(full(), version(2, parent=1, a=0.25), size=2)
    record = json.loads(json.dumps(made.to_dict()))
    assert json.loads(json.dumps(Pool.from_dict(record).to_dict())) == record
    assert (Pool.from_dict(record).live, Pool.from_dict(record).size) == (made.live, 2)


def test_a_record_is_no_part_of_the_pool_it_comes_from():
    made = pool(version(1, a=0.5))
    record = made.to_dict()
    made.add(version(2, a=0.5))
    assert record["live"] == [0, 1]
