"""Evaluations: what is kept of held-out answers, and what counts in their means."""

from __future__ import annotations

from groundrule.data import Scenario, Score, TrajectoryGroup
from groundrule.recipes.evaluate import (
    answer_of,
    group_of_texts,
    record,
    scenario_metadata,
    score_alone,
    summary_line,
)

HOURS = Scenario(
    id="hours",
    system="Be brief.",
    question="When do you close?",
    context="The shop closes at 18.",
    reference="At 18.",
    facts=(("18",),),
    split="held-out",
    metadata={"kind": "plain"},
)
PARKING = HOURS.model_copy(update={"id": "parking", "question": "Where may I park?", "facts": (("yard",),)})


def kept(*answers: str | None):
    scores = [
        Score.none("the attempt failed") if a is None else Score(value=0.5, parts={"raw": 1.5})
        for a in answers
    ]
    return record(2, [HOURS, PARKING][: len(answers)], answers, scores)


def test_an_answer_is_kept_with_its_scenario_score_and_checks():
    [answer] = kept("At 18.")["answers"]
    assert answer == {
        "scenario_id": "hours",
        "question": "When do you close?",
        "context": "The shop closes at 18.",
        "reference": "At 18.",
        "kind": "plain",
        "answer": "At 18.",
        "score": 0.5,
        "raw": 1.5,
        "explanation": "",
        "checks": {
            "facts": 1.0,
            "grounded": 1.0,
            "unsupported_numbers": 0,
            "unsupported_emails": 0,
            "copied": 1.0,
            "words": 2,
            "abstains": False,
        },
    }


def test_the_judges_mean_is_over_scored_answers():
    assert kept("At 18.", None)["judge"] == {"mean": 0.5, "raw_mean": 1.5}


def test_without_any_score_the_judges_mean_is_unknown():
    assert kept(None)["judge"] == {"mean": None, "raw_mean": None}


def test_an_answer_that_is_missing_counts_in_no_check():
    assert kept("At 18.", None)["checks"]["facts"] == 1.0


def test_an_answer_that_is_missing_keeps_its_place_with_the_reason():
    missing = kept("At 18.", None)["answers"][1]
    assert (missing["scenario_id"], missing["answer"], missing["checks"], missing["explanation"]) == (
        "parking",
        "",
        {},
        "the attempt failed",
    )


def test_the_summary_is_one_line_of_numbers_and_an_example():
    assert summary_line(kept("At 18.")) == (
        "held-out: score 0.500, facts 1.000, grounded 1.000, copied 1.000\n"
        "  asked: When do you close?\n"
        "  answered: At 18."
    )


def test_the_judge_is_told_question_and_passage_but_never_reference_or_facts():
    assert scenario_metadata(HOURS) == {"question": "When do you close?", "context": "The shop closes at 18."}


def test_given_answers_stand_behind_the_scenarios_own_messages():
    [member] = group_of_texts(HOURS, ["At 18."])
    assert [m["content"] for m in member.messages()] == [
        "Be brief.",
        "[Retrieved context]: The shop closes at 18.\n\nQuestion: When do you close?",
        "At 18.",
    ]


def test_given_answers_can_stand_under_another_system_prompt():
    [member] = group_of_texts(HOURS, ["At 18."], system="Rhyme.")
    assert member.messages()[0]["content"] == "Rhyme."


def test_the_answer_is_the_last_assistant_turn():
    [member] = group_of_texts(HOURS, ["At 18."])
    member.messages_and_choices.append({"role": "assistant", "content": "Or at 17."})
    assert answer_of(TrajectoryGroup([member])) == "Or at 17."


def test_an_attempt_that_never_answered_has_no_answer():
    [member] = group_of_texts(HOURS, ["At 18."])
    del member.messages_and_choices[-1]
    assert answer_of(TrajectoryGroup([member])) is None


class Raising:
    def __init__(self, error):
        self.error = error

    async def score(self, group):
        raise self.error


async def test_a_failed_attempt_has_no_score_and_says_why():
    failed = TrajectoryGroup([TimeoutError("no result after 30 s")])
    score = await score_alone(Raising(AssertionError("must not be asked")), failed)
    assert (score.value, score.reason) == (None, "the attempt failed: TimeoutError: no result after 30 s")
