"""What scored groups say about a prompt, and what of them counts."""

from __future__ import annotations

import pytest

from fakes import chat
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.prompt_learning.evidence import (
    Complaint,
    Contrast,
    collect,
    explanation_of,
    prompt_ids,
    recurring,
)

NO_SOURCE = "The answer names no source for the price."


def member(answer, reward, said="", **more):
    logs = [f"RULER explanation: {said}"] if said else []
    return Trajectory(messages_and_choices=chat(answer), reward=reward, logs=logs, **more)


def group(worst_said=NO_SOURCE, *, best=0.9, worst=0.2, reliability=None, scenario="s1"):
    metrics = {} if reliability is None else {"judge_reliability": reliability}
    return TrajectoryGroup(
        [member("It costs 5.", worst, worst_said), member("See page 2.", best, "Names the page.")],
        scenario_id=scenario,
        metrics=metrics,
    )


def contrast(number, worst_explanation, worst="It costs 5."):
    return Contrast(
        f"g{number}", f"s{number}", "Price?", "See page 2.", 0.9, "", worst, 0.2, worst_explanation, 1.0
    )


def texts(evidence):
    return [(complaint.text, complaint.contrasts) for complaint in evidence.complaints]


def test_a_group_becomes_its_best_answer_against_its_worst():
    assert collect([group(reliability=0.75)]).contrasts == (
        Contrast(
            id="g1",
            scenario_id="s1",
            task="Refunds?",
            best="See page 2.",
            best_score=0.9,
            best_explanation="Names the page.",
            worst="It costs 5.",
            worst_score=0.2,
            worst_explanation=NO_SOURCE,
            reliability=0.75,
        ),
    )


def test_ids_number_the_groups_that_were_given():
    found = collect([group(reliability=0.1), group()], prefix="r3g")
    assert [one.id for one in found.contrasts] == ["r3g2"]


def test_a_group_that_the_judge_reads_unreliably_is_counted_and_left_out():
    found = collect([group(reliability=0.59), group(reliability=0.6), group()])
    assert (found.unreliable, [one.id for one in found.contrasts]) == (1, ["g2", "g3"])


def test_a_group_of_equally_good_answers_is_counted_and_left_out():
    found = collect([group(best=0.5, worst=0.45), group(best=0.5, worst=0.25)], least_gap=0.125)
    assert (found.level, [one.id for one in found.contrasts]) == (1, ["g2"])


def test_a_group_with_one_score_is_level():
    found = collect([TrajectoryGroup([member("a", 0.9), member("b", 0.1, unscored="no judge")])])
    assert (found.level, found.contrasts) == (1, ())


def test_an_empty_group_is_level():
    assert collect([TrajectoryGroup([])]).level == 1


def test_members_without_a_score_are_neither_best_nor_worst():
    members = [
        member("broken", 0.0, unscored="no judge"),
        member("good", 0.8),
        member("bad", 0.4),
        member("lost", 1.0, unscored="no judge"),
    ]
    (found,) = collect([TrajectoryGroup(members)]).contrasts
    assert (found.best, found.worst) == ("good", "bad")


def test_a_task_in_parts_is_read_as_text():
    parts = [{"type": "text", "text": "What is "}, {"type": "text", "text": "this?"}]
    turns = [{"role": "user", "content": parts}, {"role": "assistant", "content": "x"}]
    members = [Trajectory(messages_and_choices=turns, reward=reward) for reward in (0.0, 1.0)]
    assert collect([TrajectoryGroup(members)]).contrasts[0].task == "What is this?"


def test_a_complaint_in_one_group_alone_does_not_recur():
    assert collect([group(NO_SOURCE), group("It is rude to the customer.")]).complaints == ()


def test_a_complaint_made_twice_in_one_group_does_not_recur():
    assert collect([group(f"{NO_SOURCE} {NO_SOURCE}")]).complaints == ()


def test_a_complaint_in_two_groups_recurs():
    found = collect([group(NO_SOURCE), group("Polite to customers."), group(NO_SOURCE)])
    assert texts(found) == [(NO_SOURCE, ("g1", "g3"))]


def test_how_many_groups_a_complaint_takes_can_be_said():
    groups = [group(NO_SOURCE)] * 2
    assert collect(groups, least_support=3).complaints == ()
    assert collect([*groups, group(NO_SOURCE)], least_support=3).complaints[0].contrasts == ("g1", "g2", "g3")


def test_a_complaint_of_a_group_that_was_left_out_does_not_count():
    assert collect([group(NO_SOURCE), group(NO_SOURCE, reliability=0.2)]).complaints == ()


def test_complaints_that_are_alike_are_one_in_the_words_of_the_first():
    found = recurring(
        [contrast(1, "Names no source for the price."), contrast(2, "No source is named: price unclear.")]
    )
    assert found == [Complaint("Names no source for the price.", ("g1", "g2"))]


def test_complaints_that_share_half_of_the_shorter_ones_words_are_alike():
    # {invents, price} of {invents, price, opening, hours} and {invents, price}: all; {invents, dates}: half.
    found = recurring([contrast(1, "Invents price, opening hours."), contrast(2, "Invents dates.")])
    assert [one.contrasts for one in found] == [("g1", "g2")]


def test_complaints_that_share_less_are_two():
    found = recurring(
        [contrast(1, "Invents price, opening hours."), contrast(2, "Ignores opening date entirely.")]
    )
    assert [one.contrasts for one in found] == [("g1",), ("g2",)]


@pytest.mark.parametrize("word", ["answer", "agent", "response"])
def test_words_that_fit_any_complaint_make_no_two_alike(word):
    found = recurring([contrast(1, f"The {word} is rude."), contrast(2, f"The {word} is long.")])
    assert [one.contrasts for one in found] == [("g1",), ("g2",)]


def test_each_sentence_is_a_complaint_of_its_own():
    found = recurring([contrast(1, "Invents a price. Ignores the question; rude tone\nWrong language used")])
    assert [one.text for one in found] == [
        "Invents a price.",
        "Ignores the question;",
        "rude tone",
        "Wrong language used",
    ]


def test_a_sentence_of_a_single_content_word_is_no_complaint():
    assert recurring([contrast(1, "Bad. It is not so.")]) == []


def test_the_most_frequent_complaint_comes_first():
    found = recurring(
        [
            contrast(1, "Invents a price."),
            contrast(2, "Ignores the question."),
            contrast(3, "Ignores the question."),
        ]
    )
    assert [one.text for one in found] == ["Ignores the question.", "Invents a price."]


def test_the_contrasts_of_a_complaint_can_be_had():
    found = collect(
        [group(NO_SOURCE, scenario="a"), group("Fine work here."), group(NO_SOURCE, scenario="c")]
    )
    assert [one.scenario_id for one in found.of(found.complaints[0])] == ["a", "c"]


@pytest.mark.parametrize(
    "said", ['It says "costs 5" flatly.', "It says “costs 5” flatly.", "It says «costs 5» flatly."]
)
def test_a_quote_that_stands_in_the_answer_counts(said):
    assert contrast(1, said).quotes == ["costs 5"]


def test_a_quote_that_does_not_stand_in_the_answer_does_not_count():
    assert contrast(1, 'It says "costs 7" and "It costs".').quotes == ["It costs"]


def test_the_last_explanation_counts():
    trajectory = member("a", 0.5, "first")
    trajectory.log("RULER explanation: second\nline")
    trajectory.log("a remark of the agent")
    assert explanation_of(trajectory) == "second\nline"


def test_where_nothing_was_said_the_explanation_is_empty():
    assert explanation_of(member("a", 0.5)) == ""


def test_the_prompts_of_groups_are_those_that_members_name():
    members = [
        member("a", 0.1, metadata={"prompt": "p1"}),
        member("b", 0.2),
        member("c", 0.3, metadata={"prompt": "p2"}),
    ]
    assert prompt_ids([TrajectoryGroup(members), group()]) == {"p1", "p2"}
