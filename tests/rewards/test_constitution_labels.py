"""Soft labels of a constitution as rankings."""

from __future__ import annotations

import pytest

from constitutions import ONE, THREE, by_letters, odds, prefers, shown_first
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.preferences import Ranking
from groundrule.errors import BudgetError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.rewards.constitution.comparing import Comparer, comparing_judge
from groundrule.rewards.constitution.labels import label

PROMPT = [{"role": "user", "content": "Refunds?"}]


def answers(*texts):
    """Answers to one prompt, of which nobody has said which is better."""
    ids = list("abcdefgh")[: len(texts)]
    given = [{"id": i, "text": text, "score": 0.0} for i, text in zip(ids, texts, strict=True)]
    return Ranking(prompt=PROMPT, answers=given, order=[ids], scenario_id="s-1")


def comparer(client, **more):
    return Comparer(comparing_judge("openai/gpt-4.1", client=client), more.pop("constitution", ONE), **more)


async def test_a_label_is_a_ranking_of_two_with_its_probability():
    [ranking] = (
        await label([answers("alpha", "bravo")], comparer(prefers({"alpha": 1, "bravo": 3})))
    ).rankings

    assert (ranking.order, ranking.certainty) == ([["b"], ["a"]], pytest.approx(0.75))
    assert (ranking.source, ranking.annotator, ranking.scenario_id) == ("constitution", "gpt-4.1", "s-1")
    assert [a.score for a in ranking.answers] == [None, None]
    assert ranking.metadata["principles"] == ["a"]
    assert ranking.metadata["p"] == pytest.approx(0.25)
    assert ranking.metadata["p_of_each_order"] == [[pytest.approx(0.25), pytest.approx(0.25)]]
    assert ranking.metadata["constitution_hash"] == ONE.content_hash


async def test_labels_are_read_back_as_they_were_written(tmp_path):
    labels = await label([answers("alpha", "bravo")], comparer(prefers({"alpha": 1, "bravo": 3})))
    write_rankings(tmp_path / "p.jsonl", labels.rankings)

    assert read_rankings(tmp_path / "p.jsonl") == labels.rankings


async def test_a_half_is_a_tie():
    [ranking] = (await label([answers("alpha", "bravo")], comparer(by_letters(lambda r: 0.7)))).rankings

    assert (ranking.order, ranking.certainty, ranking.pairs()) == ([["a", "b"]], 1.0, [])


async def test_several_principles_are_averaged():
    def p_of_a(request):
        p = {"a": 0.9, "b": 0.8, "c": 0.4}
        mine = p[next(n for n in p if f"by {n}?" in request.messages[0]["content"])]
        return mine if shown_first(request, "alpha", "bravo") == "alpha" else 1 - mine

    labels = await label(
        [answers("alpha", "bravo")], comparer(by_letters(p_of_a), constitution=THREE, principles=3)
    )

    assert labels.rankings[0].certainty == pytest.approx(0.7)
    found = labels.by_principle()
    assert {n: (o.comparisons, round(o.win_rate, 6), round(o.certainty, 6)) for n, o in found.items()} == {
        "a": (1, 0.9, 0.9),
        "b": (1, 0.8, 0.8),
        "c": (1, 0.4, 0.6),
    }


async def test_how_often_both_orders_agree_is_counted():
    def p_of_a(request):
        if shown_first(request, "alpha", "bravo", "charlie") == "charlie":
            return 0.6
        return 0.9

    labels = await label([answers("alpha", "charlie")], comparer(by_letters(p_of_a)))

    assert labels.rankings[0].metadata["p_of_each_order"] == [[pytest.approx(0.9), pytest.approx(0.4)]]
    assert labels.by_principle()["a"].orders_agree == 0.0


async def test_every_two_answers_are_compared():
    worth = {"alpha": 1, "bravo": 2, "charlie": 3}
    labels = await label([answers(*worth)], comparer(prefers(worth)))

    assert [(r.order, round(r.certainty, 3)) for r in labels.rankings] == [
        ([["b"], ["a"]], 0.667),
        ([["c"], ["a"]], 0.75),
        ([["c"], ["b"]], 0.6),
    ]


async def test_what_the_judge_thought_is_kept():
    def answer(request):
        if "Do not choose yet." in request.messages[-1]["content"]:
            return "Because."
        is_alpha = shown_first(request, "alpha", "bravo") == "alpha"
        return {"content": "A", "top_logprobs": odds(0.99 if is_alpha else 0.01)}

    [ranking] = (
        await label([answers("alpha", "bravo")], comparer(ScriptedClient(answer), think=True))
    ).rankings

    assert ranking.certainty == pytest.approx(0.6)
    assert ranking.metadata["rationales"] == [["Because.", "Because."]]


async def test_pairs_that_cannot_be_compared_are_counted():
    client = ScriptedClient(lambda request: LlmError("down"))
    labels = await label([answers("alpha", "bravo")], comparer(client))

    assert (labels.rankings, len(labels.failed), labels.mass) == ([], 1, None)
    assert "down" in labels.failed[0]


async def test_a_budget_that_is_used_up_raises():
    with use_ledger(Ledger(budget=Budget(calls=1))), pytest.raises(BudgetError):
        await label([answers("alpha", "bravo")], comparer(prefers({"alpha": 1, "bravo": 3})))


async def test_how_much_was_sampled_is_told():
    labels = await label([answers("alpha", "bravo")], comparer(ScriptedClient(lambda r: "A"), samples=2))

    assert labels.sampled == 1.0
    assert labels.rankings[0].order == [["a", "b"]]
