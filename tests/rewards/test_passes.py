"""Several readings of one group: orders, averages, reliability, failures."""

import asyncio

import pytest

from fakes import KeywordJudge, group_of, prompt_of
from groundrule.errors import BudgetError, ConfigError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm import Budget, Ledger, ScriptedClient, use_ledger
from groundrule.rewards import Calibration, Ruler, ruler_score_group

FOUR = {"faithful": 0.9, "hallucinated": 0.2, "ignores it": 0.1, "verbose": 0.8}


def shown_in(request, answers=FOUR):
    prompt = prompt_of(request)
    return sorted((a for a in answers if a in prompt), key=prompt.index)


def first_is_best(request):
    """A judge with nothing but a liking for the first places."""
    worth = dict(zip(shown_in(request), (0.8, 0.6, 0.4, 0.2), strict=True))
    return KeywordJudge(worth)(request)


async def test_the_second_pass_shows_the_reverse_of_the_first():
    client = ScriptedClient(KeywordJudge(FOUR))
    await ruler_score_group(group_of(*FOUR), client, passes=4)
    orders = [shown_in(request) for request in client.requests]
    assert orders[1] == orders[0][::-1]
    assert orders[3] == orders[2][::-1]


async def test_a_liking_for_places_cancels_out_over_an_order_and_its_reverse():
    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(first_is_best), passes=2)
    assert judged.rewards == [0.5, 0.5, 0.5, 0.5]
    assert judged.metrics["judge_reliability"] == 0.0
    assert judged.metrics["judge/flip_rate"] == 1.0


async def test_readings_that_agree_are_fully_reliable_and_without_noise():
    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(KeywordJudge(FOUR)), passes=2)
    assert judged.rewards == [0.9, 0.2, 0.1, 0.8]
    assert judged.metrics["judge_reliability"] == 1.0
    assert judged.metrics["judge_noise"] == 0.0
    assert judged.metrics["judge/passes"] == 2.0


async def test_a_reading_that_is_harsher_throughout_is_no_noise():
    calls = iter(range(9))

    def judge(request):
        harsher = 0.1 * next(calls)
        return KeywordJudge({a: v - harsher for a, v in FOUR.items()})(request)

    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(judge), passes=2)
    assert judged.metrics["judge_reliability"] == pytest.approx(1.0)
    assert judged.rewards == pytest.approx([0.85, 0.15, 0.05, 0.75])


async def test_single_readings_stay_with_their_trajectory():
    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(first_is_best), passes=2)
    metrics = judged.trajectories[0].metrics
    assert metrics["ruler/pass1"] + metrics["ruler/pass2"] == pytest.approx(1.0)
    assert metrics["ruler/slot1"] + metrics["ruler/slot2"] == 3.0


async def test_one_pass_measures_no_reliability():
    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(KeywordJudge(FOUR)))
    assert "judge_reliability" not in judged.metrics
    assert judged.metrics["judge/passes"] == 1.0


async def test_passes_are_added_only_while_the_readings_disagree():
    doubtful, certain = ScriptedClient(first_is_best), ScriptedClient(KeywordJudge(FOUR))
    await Ruler(doubtful, passes=2, max_passes=6).score(group_of(*FOUR))
    await Ruler(certain, passes=2, max_passes=6).score(group_of(*FOUR))
    assert (len(doubtful.requests), len(certain.requests)) == (6, 2)


async def test_added_passes_stop_at_the_budget_and_keep_what_was_read():
    client = ScriptedClient(first_is_best)
    with use_ledger(Ledger(budget=Budget(calls=2))):
        scores = await Ruler(client, passes=2, max_passes=6).score(group_of(*FOUR))
    assert [score.value for score in scores] == [0.5, 0.5, 0.5, 0.5]
    assert len(client.requests) == 2


async def test_a_pass_that_fails_among_three_is_left_out():
    calls = iter(range(9))

    def judge(request):
        return LlmError("overloaded") if next(calls) == 0 else KeywordJudge(FOUR)(request)

    judged = await ruler_score_group(group_of(*FOUR), ScriptedClient(judge), passes=3)
    assert judged.rewards == [0.9, 0.2, 0.1, 0.8]
    assert judged.metrics["judge/passes"] == 2.0


async def test_one_good_reading_of_two_is_no_score():
    calls = iter(range(99))

    def judge(request):
        return KeywordJudge(FOUR)(request) if next(calls) == 0 else "nothing"

    with pytest.raises(JudgeError, match="1 of 2 readings failed"):
        await ruler_score_group(group_of(*FOUR), ScriptedClient(judge), passes=2)


async def test_the_only_reading_raises_its_own_error():
    with pytest.raises(JudgeReplyError) as caught:
        await ruler_score_group(group_of(*FOUR), ScriptedClient(["no", "no"]))
    assert caught.value.kind == "invalid_json"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"passes": 0}, "passes is 0"),
        ({"passes": 4, "max_passes": 2}, "max_passes is 2, below passes=4"),
        ({"min_reliability": 1.5}, "min_reliability is 1.5"),
        ({"most_per_call": 1}, "with 1 attempts compares nothing"),
    ],
)
async def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        await Ruler(ScriptedClient([]), **settings).score(group_of(*FOUR))


def large(n: int) -> dict[str, float]:
    return {f"answer-{i:02d}-": i / n for i in range(n)}


async def test_sixty_four_are_judged_in_chunks_of_eight_and_keep_their_order():
    worth = large(64)
    client = ScriptedClient(KeywordJudge(worth))
    judged = await ruler_score_group(group_of(*worth), client, passes=4)
    assert len(client.requests) == 32
    assert {len(shown_in(r, worth)) for r in client.requests} == {8}
    rewards = [r for r in judged.rewards if r is not None]
    assert rewards == sorted(rewards)
    assert rewards == pytest.approx(list(worth.values()), abs=0.02)
    assert judged.metrics["judge_reliability"] > 0.95


async def test_the_same_seed_draws_the_same_chunks():
    worth = large(20)
    clients = [ScriptedClient(KeywordJudge(worth)) for _ in range(2)]
    results = [await ruler_score_group(group_of(*worth), client, seed=3) for client in clients]
    assert [r.messages for r in clients[0].requests] == [r.messages for r in clients[1].requests]
    assert results[0].rewards == results[1].rewards


async def test_a_large_group_with_an_unread_member_is_not_scored():
    worth = large(16)

    def judge(request):
        return LlmError("down") if "answer-03-" in shown_in(request, worth) else KeywordJudge(worth)(request)

    with pytest.raises(JudgeError, match="readings failed"):
        await ruler_score_group(group_of(*worth), ScriptedClient(judge))


async def test_a_budget_that_is_used_up_is_named():
    with use_ledger(Ledger(budget=Budget(calls=0))), pytest.raises(BudgetError, match="budget of 0 calls"):
        await ruler_score_group(group_of(*FOUR), ScriptedClient([]))


async def test_forty_concurrent_groups_do_not_disturb_each_other():
    client = ScriptedClient(KeywordJudge(FOUR), delay_s=0.001)
    jobs = [ruler_score_group(group_of(*FOUR), client, passes=2, seed=seed) for seed in range(40)]
    assert [g.rewards for g in await asyncio.gather(*jobs)] == [[0.9, 0.2, 0.1, 0.8]] * 40


async def test_a_calibration_learns_the_worth_of_places_and_takes_it_off():
    calibration = Calibration()
    ruler = Ruler(ScriptedClient(first_is_best), calibration=calibration)
    spreads = []
    for number in range(200):
        # Other answers each time, so that the order drawn is another one.
        group = group_of(*(f"{answer} ({number})" for answer in FOUR))
        values = [score.value for score in await ruler.score(group)]
        spreads.append(max(values) - min(values))
    assert spreads[0] == pytest.approx(0.6)
    assert max(spreads[-20:]) < 0.05
