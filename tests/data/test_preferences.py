"""Rankings and pairs in memory."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from groundrule.data import Answer, PreferencePair, Ranking
from groundrule.data.contradictions import contradictions

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": 7}'}}


def ranking(*tiers, prompt="Refunds?", **more):
    answers = [{"id": name, "text": f"Answer {name}."} for tier in tiers for name in tier]
    return Ranking(prompt=prompt, answers=answers, order=[list(tier) for tier in tiers], **more)


def ids(pairs):
    return [(pair.chosen.id, pair.rejected.id) for pair in pairs]


def pair(chosen, rejected, annotator="ann", prompt="Refunds?"):
    return PreferencePair(prompt=prompt, chosen=chosen, rejected=rejected, annotator=annotator)


def test_all_pairs_of_a_ranking_are_made_and_ties_are_skipped():
    assert ids(ranking("a", "bc", "d").pairs()) == [
        ("a", "b"),
        ("a", "c"),
        ("a", "d"),
        ("b", "d"),
        ("c", "d"),
    ]
    assert ranking("a", "bc", "d").ties == 1


def test_a_ranking_of_ties_only_has_no_pairs():
    assert ranking("abc").pairs() == []
    assert ranking("abc").ties == 3


def test_tiers_are_positions_in_the_answers():
    shuffled = Ranking(
        prompt="Refunds?",
        answers=[{"id": "x", "text": "X"}, {"id": "y", "text": "Y"}, {"id": "z", "text": "Z"}],
        order=["z", ["y", "x"]],
    )
    assert shuffled.tiers == [[2], [1, 0]]


def test_margins_between_tiers_add_up():
    assert [p.margin for p in ranking("a", "b", "c", margins=[1.0, 0.5]).pairs()] == [1.0, 1.5, 0.5]


def test_without_margins_the_difference_of_the_scores_is_the_margin():
    scored = Ranking(
        prompt="Refunds?",
        answers=[Answer(id="a", text="A", score=0.75), Answer(id="b", text="B", score=0.5), Answer(text="C")],
        order=["a", "b", Answer(text="C").id],
    )
    assert [p.margin for p in scored.pairs()] == [0.25, None, None]


def test_pairs_keep_what_was_said_of_the_ranking():
    said = {
        "annotator": "ann",
        "source": "human",
        "certainty": 0.9,
        "scenario_id": "s1",
        "metadata": {"day": 1},
    }
    [made] = ranking("a", "b", **said).pairs()
    assert {name: getattr(made, name) for name in said} == said
    assert made.ranking() == ranking("a", "b", **said)


def test_an_answer_may_be_a_conversation_with_tool_calls():
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "shipped"},
        {"role": "assistant", "content": "It is on its way."},
    ]
    answer = Answer(messages=messages)
    assert answer.text == "It is on its way."
    assert Answer.model_validate(answer.model_dump()) == answer


def test_ids_made_from_the_content_do_not_depend_on_how_it_is_written():
    parts = [{"type": "text", "text": "Within 30 days."}]
    assert Answer(text="Within 30 days.").id == Answer(messages=[{"role": "assistant", "content": parts}]).id


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"order": ["a", "q"]}, "'q' is the id of no answer; the ids are 'a', 'b'"),
        ({"order": ["a", "b", "a"]}, "'a' is ranked twice"),
        ({"order": ["a"]}, "answer 'b' has no place"),
        ({"order": ["a", "b", []]}, "a tier is empty"),
        ({"margins": [0.5, 0.5]}, "there are 2 margins between 2 tiers; write 1"),
        ({"answers": [{"id": "a", "text": "A"}]}, "there are 1 answers; a ranking compares at least two"),
        (
            {"answers": [{"id": "a", "text": "A"}, {"id": "b", "text": "A"}]},
            "'b' says the same as answer 'a'",
        ),
        ({"answers": [{"id": "a", "text": "A"}, {"id": "a", "text": "B"}]}, "the id 'a' is taken"),
        ({"answers": [{"id": "a", "text": "A"}, {"id": "b", "text": " "}]}, "the answer is empty"),
        (
            {"answers": [{"id": "a", "text": "A", "score": 1}, {"id": "b", "text": "B", "score": 2}]},
            "answer 'a' is ranked above 'b', but has the lower score (1.0 against 2.0)",
        ),
        ({"margins": [float("nan")]}, "finite number"),
        ({"prompt": ""}, "the prompt is empty"),
    ],
)
def test_a_ranking_that_cannot_be_is_refused(changes, said):
    fields = {
        "prompt": "Refunds?",
        "answers": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}],
        "order": ["a", "b"],
    }
    with pytest.raises(ValidationError) as refused:
        Ranking(**{**fields, **changes})
    assert said in str(refused.value)


def test_a_pair_of_one_answer_is_refused():
    with pytest.raises(ValidationError, match="the chosen answer is the rejected one"):
        pair("Yes.", "Yes.")


def test_the_shortest_cycle_of_a_prompt_and_annotator_is_named():
    said = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A"), ("C", "A")]
    [found] = contradictions([pair(better, worse) for better, worse in said])
    assert [answer.text for answer in found.answers] == ["A", "B", "C"]
    assert found.pairs == (0, 1, 4)
    assert not found.is_opposite
    assert str(found).startswith("annotator 'ann' on 'Refunds?': ")


def test_a_pair_in_both_directions_is_named_beside_a_longer_cycle():
    said = [("A", "B"), ("B", "A"), ("B", "C"), ("C", "A")]
    found = contradictions([pair(better, worse) for better, worse in said])
    assert [(c.is_opposite, c.pairs) for c in found] == [(True, (0, 1)), (False, (0, 2, 3))]


def test_different_annotators_and_prompts_do_not_contradict_each_other():
    assert contradictions([pair("A", "B"), pair("B", "A", "bob"), pair("B", "A", prompt="Returns?")]) == []


def test_an_answer_with_another_id_is_the_same_answer():
    again = [
        pair({"id": "1", "text": "A"}, {"id": "2", "text": "B"}),
        pair({"id": "1", "text": "B"}, {"id": "2", "text": "A"}),
    ]
    assert [c.is_opposite for c in contradictions(again)] == [True]


def test_a_pair_said_twice_is_no_contradiction():
    assert contradictions([pair("A", "B"), pair("A", "B"), pair("B", "C"), pair("A", "C")]) == []
