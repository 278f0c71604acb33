"""The built-in sums: right answers, and nothing of the held-out ones in the training ones."""

from __future__ import annotations

import re

from groundrule.rewards.verifiers import verify_math
from groundrule.rollouts.scenarios import load_scenarios
from groundrule.rollouts.sums import WARM_UP_EXAMPLES, one_digit_sums, sum_scenarios


def numbers_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def test_there_are_303_problems_to_train_on_and_96_held_out():
    splits = [scenario.split for scenario in load_scenarios("sums")]
    assert (splits.count("train"), splits.count("held-out")) == (303, 96)


def test_no_held_out_problem_adds_the_numbers_of_a_training_problem():
    train, held_out = (
        {tuple(sorted(numbers_in(s.question))) for s in load_scenarios("sums", split=split)}
        for split in ("train", "held-out")
    )
    assert len(train) == 303
    assert train.isdisjoint(held_out)


def test_every_reference_is_the_sum():
    for scenario in sum_scenarios():
        assert scenario.reference == str(sum(numbers_in(scenario.question)))


def test_every_problem_has_a_number_of_two_digits_and_none_above_30():
    for scenario in sum_scenarios():
        assert 10 <= max(numbers_in(scenario.question)) <= 30


def test_the_problems_are_the_same_every_time():
    assert sum_scenarios() == sum_scenarios()


def test_an_answer_in_the_form_that_is_asked_for_is_verified():
    scenario = sum_scenarios()[0]
    a, b = numbers_in(scenario.question)
    assert verify_math(f"{a} + {b} = \\boxed{{{a + b}}}", scenario.reference).value == 1.0
    assert verify_math(f"{a} + {b} = {a + b}", scenario.reference).value == 0.0


def test_a_warm_up_example_adds_two_numbers_of_one_digit():
    for _, asked, answered in one_digit_sums():
        a, b = numbers_in(asked["content"])
        assert max(a, b) < 10
        assert answered["content"] == f"{a} + {b} = \\boxed{{{a + b}}}"


def test_there_are_few_warm_up_examples():
    assert len(one_digit_sums()) == WARM_UP_EXAMPLES == 40
