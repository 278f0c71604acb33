"""Judging within a budget."""

import random
from dataclasses import replace

import pytest

from fakes import group_of
from groundrule.llm import Budget, Ledger, ScriptedClient
from groundrule.llm.cost import Call, Total
from groundrule.rewards import Ruler
from groundrule.rewards.economy import CallCost, purchase
from named_judges import longest

EACH = CallCost(tokens=1000.0, usd=0.01)


def bought(left: Budget, *, passes: int = 4, groups: int = 5):
    ruler = Ruler(ScriptedClient([]), passes=passes)
    return purchase(ruler, [8] * groups, EACH, left, random.Random(0))


def test_a_budget_that_reaches_changes_nothing():
    plan = bought(Budget(calls=20))
    assert (plan.scorer.passes, plan.groups, plan.rungs) == (4, [0, 1, 2, 3, 4], 0)
    assert plan.metrics(of=5) == {}


@pytest.mark.parametrize("left", [Budget(calls=10), Budget(tokens=10_900), Budget(usd=0.1)])
def test_a_short_budget_buys_fewer_passes_for_all_groups(left):
    plan = bought(left)
    assert (plan.scorer.passes, plan.groups, plan.rungs) == (2, [0, 1, 2, 3, 4], 1)


def test_a_budget_too_small_for_one_pass_each_buys_a_random_part_of_the_groups():
    plan = bought(Budget(calls=3))
    assert plan.scorer.passes == 1
    assert len(plan.groups) == 3
    assert plan.metrics(of=5) == {"judge/degraded": 2.0, "judge/groups_left_out": 2.0}
    others = {
        tuple(purchase(plan.scorer, [8] * 5, EACH, Budget(calls=3), random.Random(s)).groups)
        for s in range(9)
    }
    assert len(others) > 1


def test_nothing_left_buys_nothing():
    assert bought(Budget(usd=0.0)).groups == []


def test_an_unknown_price_leaves_tokens_and_calls_as_limits():
    ruler = Ruler(ScriptedClient([]), passes=2)
    plan = purchase(ruler, [8], CallCost(1000.0, None), Budget(usd=0.0001, tokens=1500), random.Random(0))
    assert plan.scorer.passes == 1


def test_adaptive_passes_are_given_up_first():
    ruler = Ruler(ScriptedClient([]), passes=2, max_passes=6)
    assert [ruler.calls_for(8), ruler.cheaper().calls_for(8), ruler.cheaper().cheaper().calls_for(8)] == [
        6,
        2,
        1,
    ]


def test_large_groups_take_a_call_per_chunk_and_pass():
    assert Ruler(ScriptedClient([])).calls_for(32) == 8
    assert Ruler(ScriptedClient([]), passes=3).calls_for(20) == 9


@pytest.mark.parametrize("name", ["test/scorer", "test/chat"])
def test_a_registered_judge_that_does_not_say_what_it_costs_takes_no_calls(judge_named, name):
    judge_named("test", "test_economy:named")
    assert Ruler(name).calls_for(8) == 0


def named(name, params):
    """Judges that tests register."""
    return longest(name, params) if name == "scorer" else ScriptedClient([])


CONSTITUTION = "constitution/customer-support"


def by_principles(**params) -> Ruler:
    return Ruler(CONSTITUTION, {"judge": "test/chat", **params}, passes=4)


def test_a_constitution_by_name_takes_the_calls_of_its_comparisons(judge_named):
    judge_named("test", "test_economy:named")
    # 6 pairs of 4 members, and 16 of 8, in two orders each.
    assert [by_principles().calls_for(n) for n in (2, 4, 8)] == [2, 12, 32]
    assert by_principles(principles=3, logprobs=False, samples=5).calls_for(4) == 180


def test_a_judge_that_is_a_scorer_gets_cheaper_in_its_own_way(judge_named):
    judge_named("test", "test_economy:named")
    plan = purchase(by_principles(principles=4), [4] * 2, EACH, Budget(calls=30), random.Random(0))
    assert (plan.rungs, plan.groups, plan.scorer.calls_for(4)) == (2, [0, 1], 12)
    assert plan.scorer.cheaper() is None


async def test_it_is_asked_as_cheaply_as_was_bought(judge_named):
    judge_named("test", "constitutions:named")
    less = replace(by_principles(principles=8), rungs=2)
    scores = await less.score(group_of("alpha", "bravo"))
    assert (less.calls_for(2), scores.metrics["judge/calls"]) == (4, 4.0)


def test_a_client_in_place_of_a_registered_name_is_counted_as_a_chat_model():
    assert Ruler(CONSTITUTION, client=ScriptedClient([]), passes=3).calls_for(8) == 3


def test_the_mean_call_comes_from_what_was_spent():
    total = Total(calls=4, prompt_tokens=3000, completion_tokens=1000, known_cost_usd=0.08)
    assert CallCost.of(total) == CallCost(1000.0, 0.02)
    assert CallCost.of(Total()) is None


def a_call(usd: float | None = 0.25) -> Call:
    return Call("m", "judge/ruler", 100, 20, None, usd)


def test_calls_of_a_step_count_in_the_run_too():
    run = Ledger(budget=Budget(usd=1.0))
    step = Ledger(budget=Budget(usd=0.5), parent=run)
    step.record(a_call())
    assert (run.total().calls, step.left().usd, run.left().usd) == (1, 0.25, 0.75)
    Ledger(parent=run).record(a_call(0.625))
    assert step.left().usd == 0.125


def test_the_budget_of_the_run_stops_a_call_of_the_step():
    from groundrule.errors import BudgetError

    run = Ledger(budget=Budget(calls=1))
    Ledger(parent=run).start()
    with pytest.raises(BudgetError, match="budget of 1 calls"):
        Ledger(parent=run).start()


def test_a_reopened_ledger_counts_what_was_spent_before(tmp_path):
    path = tmp_path / "costs.jsonl"
    first = Ledger(path=path)
    first.start()
    first.record(a_call())
    again = Ledger.reopened(path, budget=Budget(usd=1.0, calls=1))
    assert (again.total().tokens, again.left().usd, again.left().calls) == (120, 0.75, 0)
    again.record(a_call())
    assert len(path.read_text().splitlines()) == 2
