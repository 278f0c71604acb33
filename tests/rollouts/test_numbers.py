"""The built-in number problems: right answers, and nothing of the held-out ones in the training ones."""

from __future__ import annotations

import re

from groundrule.rewards.verifiers import verify_math
from groundrule.rollouts.numbers import FORMAT_EXAMPLES, format_examples, number_scenarios
from groundrule.rollouts.scenarios import load_scenarios


def numbers_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_there_are_512_problems_to_train_on_and_96_held_out():
    splits = [scenario.split for scenario in load_scenarios("numbers")]
    assert (splits.count("train"), splits.count("held-out")) == (512, 96)


def test_no_held_out_problem_has_the_numbers_of_a_training_problem():
    sets = {
        split: {frozenset(numbers_in(s.question)) for s in load_scenarios("numbers", split=split)}
        for split in ("train", "held-out")
    }
    assert len(sets["train"]) == 512
    assert sets["train"].isdisjoint(sets["held-out"])


def test_every_reference_is_the_largest_or_smallest_number_asked_for():
    for scenario in number_scenarios():
        pick = max if "largest" in scenario.question else min
        assert scenario.reference == str(pick(numbers_in(scenario.question)))


def test_half_of_either_side_asks_for_the_largest():
    for split, count in (("train", 256), ("held-out", 48)):
        kinds = [s.metadata["kind"] for s in load_scenarios("numbers", split=split)]
        assert kinds.count("largest") == count


def test_the_problems_are_the_same_every_time():
    assert number_scenarios() == number_scenarios()


def test_an_answer_in_the_form_that_is_asked_for_is_verified():
    scenario = number_scenarios()[0]
    assert verify_math(f"\\boxed{{{scenario.reference}}}", scenario.reference).value == 1.0
    assert verify_math(scenario.reference, scenario.reference).value == 0.0


def test_a_format_example_names_one_number_and_writes_it():
    for _, asked, answered in format_examples():
        assert numbers_in(asked["content"]) == numbers_in(answered["content"])
        assert re.fullmatch(r"\\boxed\{\d+\}", answered["content"])


def test_there_are_few_format_examples():
    assert len(format_examples()) == FORMAT_EXAMPLES == 48
