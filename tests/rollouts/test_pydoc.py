"""The built-in set made from Python's own documentation."""

from __future__ import annotations

import sys

import pytest

from groundrule.errors import DataError
from groundrule.rollouts.pydoc import pydoc_scenarios, scenarios_from_topics

PROSE = "The keeper counts every lamp twice and writes the smaller number into the book. "
TOPIC = f"""\
The "lamp" statement
********************

A *lamp* statement lights one lamp [1]:

   lamp_stmt ::= "lamp" expression

{PROSE * 5}

The following example lights two lamps:

   >>> lamp 2

Order of Lighting
=================

Too short to ask about.

lamp.light(level[, colour])

   {PROSE * 6}

   Changed in version 3.9: The colour may be left out.

-[ Footnotes ]-

[1] Lamps are described elsewhere.
"""


def test_this_python_gives_at_least_sixty_scenarios_with_both_splits() -> None:
    scenarios = pydoc_scenarios()
    assert len(scenarios) >= 60
    assert {scenario.split for scenario in scenarios} == {"train", "held-out"}


def test_passages_have_60_to_180_words_and_none_is_in_two_scenarios() -> None:
    passages = [scenario.context for scenario in pydoc_scenarios()]
    assert all(60 <= len(passage.split()) <= 180 for passage in passages)
    assert len(set(passages)) == len(passages)


def test_ids_and_questions_are_unique() -> None:
    scenarios = pydoc_scenarios()
    assert len({scenario.id for scenario in scenarios}) == len(scenarios)
    assert len({scenario.question for scenario in scenarios}) == len(scenarios)


def test_passages_hold_no_grammar_sessions_or_tables() -> None:
    for scenario in pydoc_scenarios():
        assert "::=" not in scenario.context
        assert ">>>" not in scenario.context
        assert "+---" not in scenario.context


def test_a_topic_lies_in_one_split() -> None:
    splits: dict[str, set[str]] = {}
    for scenario in pydoc_scenarios():
        splits.setdefault(scenario.metadata["topic"], set()).add(scenario.split)
    assert all(len(sides) == 1 for sides in splits.values())


def test_two_readings_are_equal() -> None:
    assert pydoc_scenarios() == pydoc_scenarios()


def test_a_topic_becomes_a_scenario_for_each_section_and_method_with_enough_prose() -> None:
    scenarios = scenarios_from_topics({"lamp": TOPIC})
    assert [(scenario.id, scenario.question, scenario.split) for scenario in scenarios] == [
        (
            "pydoc-lamp-the-lamp-statement",
            'What should I know about the "lamp" statement in Python?',
            "held-out",
        ),
        ("pydoc-lamp-lamp-light", 'What does "lamp.light()" do in Python?', "held-out"),
    ]


def test_marks_code_and_its_introduction_are_left_out_of_the_passage() -> None:
    statement, method = scenarios_from_topics({"lamp": TOPIC})
    assert statement.context == "A lamp statement lights one lamp.\n" + (PROSE * 5).strip()
    assert method.context == (PROSE * 6).strip()


def test_the_shortest_topic_keeps_a_repeated_section() -> None:
    longer = "Everything\n**********\n\nNot much.\n\n" + TOPIC
    scenarios = scenarios_from_topics({"all": longer, "lamp": TOPIC})
    assert {scenario.metadata["topic"] for scenario in scenarios} == {"lamp"}


def test_a_python_without_documentation_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(DataError, match=r'use a Python from python\.org or the built-in set "support"'):
        pydoc_scenarios()
