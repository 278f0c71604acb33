"""The answers on which the universal verifier is measured."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from dataclasses import replace

from _universal_items import items, master_keys, truth_of

from groundrule.rewards.universal.case import cases_of
from groundrule.rewards.universal.simulated import SAME
from groundrule.rewards.universal.triviality import empty, unfit_for_a_judge

ITEMS = items()


def test_half_of_400_answers_to_100_tasks_are_right():
    assert (len(ITEMS), sum(i.is_right for i in ITEMS), len({i.question for i in ITEMS})) == (400, 200, 100)


def test_no_answer_is_right_and_wrong():
    assert len({(i.question, i.answer) for i in ITEMS}) == 400


def test_the_checks_agree_with_what_is_known():
    checked = [i for i in ITEMS if i.check]
    assert len(checked) == 240
    assert all(bool(re.fullmatch(i.check["reference"], i.answer)) == i.is_right for i in checked)


def test_the_simulated_judge_knows_every_answer():
    truth = truth_of(ITEMS)
    assert all(truth(SAME, f"USER\n{i.question}", i.answer) == i.is_right for i in ITEMS)


def test_no_answer_of_substance_is_gated():
    gated = [i.answer for i in ITEMS if (empty(case(i)) or unfit_for_a_judge(case(i), [i.reference]))]
    assert gated == []


def test_thirty_answers_that_say_nothing_are_gated_for_every_task():
    tasks = list({i.question: i for i in ITEMS}.values())
    keys = [replace(task, answer=text) for task in tasks for text in master_keys(task.question)]
    assert len(keys) == 3000
    assert [k.answer for k in keys if not (empty(case(k)) or unfit_for_a_judge(case(k), [k.reference]))] == []


def case(item):
    [found] = cases_of(item.group())
    return found
