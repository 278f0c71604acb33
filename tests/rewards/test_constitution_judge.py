"""A constitution as the judge of a group."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from constitutions import ONE, THREE, by_letters, prefers, shown_first
from fakes import group_of
from groundrule.errors import BudgetError, ConfigError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.llm.registry import make
from groundrule.rewards import ConstitutionJudge, Ruler
from groundrule.rewards.constitution.pairings import count_of, pairings

WORTH = {"alpha": 6.0, "bravo": 3.0, "charlie": 2.0}


def judge(client, **more):
    return ConstitutionJudge(more.pop("constitution", ONE), "openai/gpt-4.1", client=client, **more)


async def test_a_score_is_the_mean_probability_of_winning():
    client = prefers(WORTH)
    scores = await judge(client).score(group_of("alpha", "bravo", "charlie"))

    # 6 of 9 and 6 of 8; 3 of 9 and 3 of 5; 2 of 8 and 2 of 5.
    assert [s.value for s in scores] == [
        pytest.approx((6 / 9 + 6 / 8) / 2),
        pytest.approx((3 / 9 + 3 / 5) / 2),
        pytest.approx((2 / 8 + 2 / 5) / 2),
    ]
    assert len(client.requests) == 6


async def test_scores_do_not_depend_on_the_order_of_the_group():
    one = await judge(prefers(WORTH)).score(group_of("alpha", "bravo", "charlie"))
    other = await judge(prefers(WORTH)).score(group_of("charlie", "alpha", "bravo"))

    assert [s.value for s in other] == [one[2].value, one[0].value, one[1].value]


async def test_each_principle_has_its_part():
    def p_of_a(request):
        is_alpha = shown_first(request, "alpha", "bravo") == "alpha"
        for_alpha = {"a": 0.9, "b": 0.5, "c": 0.2}
        name = next(n for n in for_alpha if f"by {n}?" in request.messages[0]["content"])
        return for_alpha[name] if is_alpha else 1 - for_alpha[name]

    scores = await judge(by_letters(p_of_a), constitution=THREE, principles=3).score(
        group_of("alpha", "bravo")
    )

    assert scores[0].parts == {
        "comparisons": 3.0,
        "principle/a": pytest.approx(0.9),
        "principle/b": pytest.approx(0.5),
        "principle/c": pytest.approx(0.2),
    }
    assert scores[1].parts["principle/c"] == pytest.approx(0.8)
    assert scores[0].value == pytest.approx((0.9 + 0.5 + 0.2) / 3)


async def test_a_judge_that_says_the_same_in_both_orders_is_reliable():
    scores = await judge(prefers(WORTH)).score(group_of("alpha", "bravo", "charlie"))

    assert scores.metrics["judge_reliability"] == pytest.approx(1.0)
    assert scores.metrics["judge_noise"] == pytest.approx(0.0)
    assert scores.metrics["judge/orders_agree"] == 1.0
    assert scores.metrics["judge/slot_effect"] == pytest.approx(0.0)
    assert (scores.metrics["judge/comparisons"], scores.metrics["judge/calls"]) == (3.0, 6.0)


async def test_a_judge_that_only_likes_the_first_place_is_not():
    scores = await judge(by_letters(lambda request: 0.9)).score(group_of("alpha", "bravo", "charlie"))

    assert [s.value for s in scores] == [pytest.approx(0.5)] * 3
    assert scores.metrics["judge/slot_effect"] == pytest.approx(0.8)
    assert scores.metrics["judge/orders_agree"] == 0.0


async def test_members_that_say_the_same_are_compared_once_and_empty_ones_not_at_all():
    client = prefers(WORTH)
    scores = await judge(client).score(group_of("alpha", "alpha", "", "bravo"))

    assert [s.value for s in scores] == [
        pytest.approx(2 / 3),
        pytest.approx(2 / 3),
        0.0,
        pytest.approx(1 / 3),
    ]
    assert (len(client.requests), scores.metrics["judge/gated"]) == (2, 1.0)


async def test_one_answer_that_says_something_has_nobody_to_meet():
    scores = await judge(prefers(WORTH)).score(group_of("alpha", "", "alpha"))

    assert [s.value for s in scores] == [None, 0.0, None]
    assert "nothing to compare" in scores[0].reason


async def test_a_judge_that_fails_leaves_the_members_with_the_reason():
    scores = await judge(ScriptedClient(lambda request: LlmError("down"))).score(group_of("alpha", "bravo"))

    assert [s.value for s in scores] == [None, None]
    assert scores[0].reason.startswith("none of its comparisons could be made: JudgeError: ")
    assert scores.metrics == {"judge/failed_comparisons": 1.0}


async def test_a_comparison_that_fails_is_left_out():
    def p_of_a(request):
        if "charlie" in request.messages[1]["content"]:
            raise LlmError("down")
        return 0.9 if shown_first(request, "alpha", "bravo") == "alpha" else 0.1

    scores = await judge(by_letters(p_of_a)).score(group_of("alpha", "bravo", "charlie"))

    assert [s.value for s in scores] == [pytest.approx(0.9), pytest.approx(0.1), None]
    assert scores.metrics["judge/failed_comparisons"] == pytest.approx(2 / 3)


async def test_a_budget_holds():
    with use_ledger(Ledger(budget=Budget(calls=1))):
        scores = await judge(prefers(WORTH)).score(group_of("alpha", "bravo"))

    assert scores[0].value is None
    assert BudgetError.__name__ in scores[0].reason


@pytest.mark.parametrize("members", [2, 3, 4, 5, 6])
def test_in_a_small_group_everyone_meets_everyone(members):
    pairs = {frozenset(pair) for pair in pairings(members, random.Random(0))}
    assert len(pairs) == count_of(members) == members * (members - 1) // 2


@pytest.mark.parametrize("members", [7, 8, 16])
def test_in_a_large_group_everyone_meets_four_others_twice_as_the_first(members):
    pairs = pairings(members, random.Random(0))
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == count_of(members) == 2 * members
    assert set(Counter(i for pair in pairs for i in pair).values()) == {4}
    assert set(Counter(first for first, _ in pairs).values()) == {2}


def test_calls_are_known_beforehand_and_can_be_fewer():
    full = judge(prefers(WORTH), constitution=THREE, principles=3)
    assert (full.calls_for(4), full.calls_for(8)) == (36, 96)
    assert full.cheaper().calls_for(4) == 12
    assert full.cheaper().cheaper() is None


def test_the_judge_has_a_name():
    made = make("constitution/customer-support", {"judge": "ollama/qwen3", "principles": 2, "tags": ["form"]})
    assert (made.constitution.ids, made.judge_model, made.principles) == (
        ("short", "friendly-and-plain"),
        "ollama/qwen3",
        2,
    )


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("", {}, "'constitution' names none; write"),
        ("customer-suport", {}, "did you mean 'customer-support'"),
        ("customer-support", {"principle": 2}, "got principle=2: .*; did you mean 'principles'"),
        ("customer-support", {"samples": 0}, "got samples=0: Input should be greater than or equal to 1"),
        ("customer-support", {"judge": "nobody/x"}, "no provider is known for 'nobody/x'"),
    ],
)
def test_what_is_wrong_with_the_name_or_its_parameters_is_said(name, params, said):
    with pytest.raises(ConfigError, match=said):
        make(f"constitution/{name}", params)


def test_a_file_that_cannot_be_used_is_a_wrong_setting(tmp_path):
    (tmp_path / "c.toml").write_text("principles = []\n")
    with pytest.raises(
        ConfigError, match=r"constitution/.*c.toml, line 1, column principles: holds no principles"
    ):
        make(f"constitution/{tmp_path}/c.toml", {"judge": "ollama/x"})


async def test_a_configuration_reaches_it_through_the_name(judge_named):
    judge_named("test", "test_constitution_judge:named")
    scores = await Ruler("constitution/customer-support", {"judge": "test/worth"}).scores_or_raise(
        group_of("alpha", "bravo")
    )
    assert [s.value for s in scores] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]


def named(name, params):
    """A judge that a test registers."""
    return prefers(WORTH)
