"""The rules that the built-in set "support" is written by."""

from __future__ import annotations

from collections import Counter

from groundrule.data.scenario import Scenario
from groundrule.rollouts.scenarios import load_scenarios

SYSTEM = (
    "You are a customer support assistant. Answer the question using only the retrieved passage, in one or "
    "two short sentences. Do not add anything that is not in the passage. If the passage does not hold the "
    "answer, say: I can't find that in the documents."
)
ABSENT = (
    "can't find",
    "cannot find",
    "can not find",
    "not in the documents",
    "doesn't say",
    "does not say",
    "not mentioned",
    "no information",
)


def normal(text: str) -> str:
    return " ".join(text.lower().split())


def mentions(text: str, fact: tuple[str, ...]) -> bool:
    return any(normal(alternative) in normal(text) for alternative in fact)


def of_kind(kind: str) -> list[Scenario]:
    return [scenario for scenario in load_scenarios("support") if scenario.metadata["kind"] == kind]


def test_eighteen_businesses_have_six_questions_each_and_one_split() -> None:
    scenarios = load_scenarios("support")
    questions = Counter(scenario.metadata["business"] for scenario in scenarios)
    sides = {(scenario.metadata["business"], scenario.split) for scenario in scenarios}
    assert sorted(questions.values()) == [6] * 18
    assert Counter(split for _, split in sides) == {"train": 10, "held-out": 8}


def test_the_kinds_are_spread_over_both_splits() -> None:
    kinds = Counter((scenario.split, scenario.metadata["kind"]) for scenario in load_scenarios("support"))
    assert kinds == {
        ("train", "plain"): 47,
        ("train", "absent"): 8,
        ("train", "ambiguous"): 5,
        ("held-out", "plain"): 37,
        ("held-out", "absent"): 6,
        ("held-out", "ambiguous"): 5,
    }


def test_the_system_prompt_is_the_same_everywhere() -> None:
    assert {scenario.system for scenario in load_scenarios("support")} == {SYSTEM}


def test_questions_are_unique() -> None:
    assert len({scenario.question for scenario in load_scenarios("support")}) == 108


def test_passages_have_45_to_90_words() -> None:
    odd = [s.id for s in load_scenarios("support") if not 45 <= len(s.context.split()) <= 90]
    assert odd == []


def test_each_business_has_two_or_three_passages() -> None:
    passages: dict[str, set[str]] = {}
    for scenario in load_scenarios("support"):
        passages.setdefault(scenario.metadata["business"], set()).add(scenario.context)
    assert {len(texts) for texts in passages.values()} == {2, 3}


def test_every_scenario_has_one_to_three_facts_that_its_reference_mentions() -> None:
    odd = [
        scenario.id
        for scenario in load_scenarios("support")
        if not 1 <= len(scenario.facts) <= 3
        or not all(mentions(scenario.reference or "", fact) for fact in scenario.facts)
    ]
    assert odd == []


def test_no_fact_is_given_away_by_the_question() -> None:
    odd = [s.id for s in load_scenarios("support") if any(mentions(s.question, fact) for fact in s.facts)]
    assert odd == []


def test_the_passage_holds_the_facts_unless_the_answer_is_absent() -> None:
    odd = [
        scenario.id
        for scenario in of_kind("plain") + of_kind("ambiguous")
        if not all(mentions(scenario.context, fact) for fact in scenario.facts)
    ]
    assert odd == []


def test_an_absent_answer_is_said_to_be_absent() -> None:
    assert {scenario.facts for scenario in of_kind("absent")} == {(ABSENT,)}
    assert {scenario.reference for scenario in of_kind("absent")} == {"I can't find that in the documents."}


def test_an_ambiguous_answer_names_two_values() -> None:
    assert {len(scenario.facts) for scenario in of_kind("ambiguous")} == {2}


def test_references_are_short_and_not_copied() -> None:
    odd = [
        scenario.id
        for scenario in load_scenarios("support")
        if len((scenario.reference or "").split()) > 25
        or normal(scenario.reference or "") in normal(scenario.context)
    ]
    assert odd == []


def test_addresses_are_at_example_com() -> None:
    words = {
        word for scenario in load_scenarios("support") for word in scenario.context.split() if "@" in word
    }
    assert {word.strip(".,;:").split("@")[1] for word in words} == {"example.com"}
