"""RULER end to end, on scripted judges."""

import asyncio
import itertools
import json
import logging
import re

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion import Choice

from fakes import KeywordJudge, chat, group_of, prompt_of, scores_json
from groundrule.data import ChatReply, History, Score, Trajectory, TrajectoryGroup, Usage
from groundrule.errors import BudgetError, ConfigError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm import Budget, Ledger, ReplyCache, ScriptedClient, register_prefix, registry, use_ledger
from groundrule.rewards import Ruler, ruler, ruler_score_group
from groundrule.rewards.compare import NOTHING_TO_COMPARE, _said

FOUR = {"faithful": 0.98, "hallucinated": 0.2, "ignores it": 0.05, "verbose": 0.96}


async def test_scores_reach_the_trajectories_they_are_about():
    group = group_of(*FOUR)
    judged = await ruler_score_group(group, ScriptedClient(KeywordJudge(FOUR)))
    assert judged.rewards == [0.98, 0.2, 0.05, 0.96]
    assert [t.logs for t in judged] == [[f"RULER explanation: on {answer}"] for answer in FOUR]


async def test_the_order_shown_is_shuffled_by_the_seed():
    orders = set()
    for seed in range(8):
        client = ScriptedClient(KeywordJudge(FOUR))
        judged = await ruler_score_group(group_of(*FOUR), client, seed=seed)
        prompt = prompt_of(client.requests[0])
        orders.add(tuple(sorted(FOUR, key=prompt.index)))
        assert judged.rewards == [0.98, 0.2, 0.05, 0.96]
    assert len(orders) > 3


async def test_members_in_another_order_make_the_same_prompt():
    client = ScriptedClient(KeywordJudge(FOUR))
    await ruler_score_group(group_of(*FOUR), client)
    judged = await ruler_score_group(group_of(*reversed(FOUR)), client)
    assert client.requests[0].messages == client.requests[1].messages
    assert judged.rewards == [0.96, 0.05, 0.2, 0.98]


async def test_ruler_scores_message_lists_in_the_order_given():
    scores = await ruler([chat(answer) for answer in FOUR], ScriptedClient(KeywordJudge(FOUR)))
    assert [(s.trajectory_id, s.score) for s in scores] == [("1", 0.98), ("2", 0.2), ("3", 0.05), ("4", 0.96)]


async def test_no_message_lists_give_no_scores_and_no_call():
    client = ScriptedClient([])
    assert await ruler([], client) == []
    assert client.requests == []


class NotedTrajectory(Trajectory):
    final_answer: str | None = None


async def test_scoring_loses_nothing_and_leaves_the_given_group_alone():
    choice = Choice(
        index=0, finish_reason="stop", message=ChatCompletionMessage(role="assistant", content="faithful")
    )
    first = NotedTrajectory(
        messages_and_choices=[*chat("")[:2], choice],
        final_answer="yes",
        reward=0.3,
        metrics={"turns": 2},
        metadata={"source": "web"},
        logs=["began"],
        initial_policy_version=4,
        final_policy_version=5,
    )
    group = TrajectoryGroup(
        [first, Trajectory(messages_and_choices=chat("verbose")), ValueError("rollout broke")],
        scenario_id="s7",
        metadata={"k": "v"},
        metrics={"m": 1},
        logs=["group log"],
        labels={"rank": [1, 0]},
        own_field=[1],
    )
    before = group.model_dump()
    judged = await ruler_score_group(group, ScriptedClient(KeywordJudge({"faithful": 0.9, "verbose": 0.4})))
    member = judged.trajectories[0]
    assert isinstance(member, NotedTrajectory)
    assert member.final_answer == "yes"
    assert member.reward == 0.9
    assert member.metrics == {"turns": 2, "independent_reward": 0.3, "ruler_score": 0.9}
    assert member.metadata == {"source": "web"}
    assert member.logs == ["began", "RULER explanation: on faithful"]
    assert (member.initial_policy_version, member.final_policy_version) == (4, 5)
    assert member.start_time == first.start_time
    assert member.messages_and_choices[2] is choice
    assert judged.scenario_id == "s7"
    assert judged.metadata == {"k": "v"}
    assert judged.metrics["m"] == 1
    assert judged.logs == ["group log"]
    assert judged.labels == {"rank": [1, 0]}
    assert judged.own_field == [1]
    assert [e.message for e in judged.exceptions] == ["rollout broke"]
    assert group.model_dump() == before


async def test_a_second_scoring_keeps_the_first_independent_reward():
    group = group_of(*FOUR)
    for member in group:
        member.reward = 0.5
    once = await ruler_score_group(group, ScriptedClient(KeywordJudge(FOUR)))
    twice = await ruler_score_group(once, ScriptedClient(KeywordJudge({**FOUR, "verbose": 0.1})))
    assert [t.metrics["independent_reward"] for t in twice] == [0.5, 0.5, 0.5, 0.5]
    assert twice.rewards == [0.98, 0.2, 0.05, 0.1]


async def test_a_reward_of_ones_own_can_be_added_to_the_judges():
    judged = await ruler_score_group(
        group_of("yes!", "vwxyz"), ScriptedClient(KeywordJudge({"yes!": 0.5, "vwxyz": 0.25}))
    )
    for member in judged.trajectories:
        member.reward += 1.0 if len(member.messages()[-1]["content"]) < 5 else 0.0
    assert judged.rewards == [1.5, 0.25]


async def test_identical_trajectories_are_judged_once_and_share_the_score():
    client = ScriptedClient(KeywordJudge({"same": 0.7, "other": 0.1}))
    judged = await ruler_score_group(group_of("same", "other", "same", "same"), client)
    assert judged.rewards == [0.7, 0.1, 0.7, 0.7]
    assert prompt_of(client.requests[0]).count(">>>\nsame\n") == 1


@pytest.mark.parametrize("answers", [["alone"], ["same", "same", "same"]])
async def test_a_group_with_one_distinct_member_costs_no_call_and_says_so(answers):
    client = ScriptedClient([])
    judged = await ruler_score_group(group_of(*answers), client)
    assert client.requests == []
    assert judged.rewards == [None] * len(answers)
    assert {t.unscored for t in judged} == {NOTHING_TO_COMPARE}


async def test_a_group_with_one_member_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert (await ruler_score_group(group_of("alone"), "openai/o3")).rewards == [None]


async def test_an_empty_group_stays_empty():
    assert len(await ruler_score_group(TrajectoryGroup([]), ScriptedClient([]))) == 0


async def test_one_message_list_alone_cannot_be_scored():
    with pytest.raises(JudgeError, match="nothing to compare"):
        await ruler([chat("alone")], ScriptedClient([]))


async def test_a_bad_reply_is_asked_again_with_what_was_wrong():
    client = ScriptedClient([scores_json(0.5), scores_json(0.5, 0.6)])
    judged = await ruler_score_group(group_of("a", "b"), client)
    assert sorted(judged.rewards) == [0.5, 0.6]
    assert len(client.requests) == 2
    again = client.requests[1].messages
    assert again[:2] == client.requests[0].messages
    assert again[2] == {"role": "assistant", "content": scores_json(0.5)}
    assert "missing_ids" in again[3]["content"] and "trajectory 2" in again[3]["content"]


async def test_asking_again_is_bounded_and_then_raises():
    client = ScriptedClient(["no idea"], repeat_last=True)
    with pytest.raises(JudgeReplyError) as caught:
        await ruler_score_group(group_of("a", "b"), client)
    assert caught.value.kind == "invalid_json"
    assert len(client.requests) == 2


async def test_a_refusal_is_not_asked_again():
    client = ScriptedClient([{"content": None, "refusal": "no"}], repeat_last=True)
    with pytest.raises(JudgeReplyError):
        await ruler_score_group(group_of("a", "b"), client)
    assert len(client.requests) == 1


async def test_the_fallback_judge_is_asked_when_the_first_fails():
    first = ScriptedClient([LlmError("down")])
    second = ScriptedClient([scores_json(0.4, 0.4)])
    judged = await ruler_score_group(group_of("a", "b"), first, fallback=second)
    assert judged.rewards == [0.4, 0.4]


async def test_when_all_judges_fail_the_error_names_each_reason():
    judges = [ScriptedClient([LlmError("down")]), ScriptedClient(["?"], repeat_last=True)]
    with pytest.raises(JudgeError, match=r"down.*invalid_json"):
        await ruler_score_group(group_of("a", "b"), judges[0], fallback=[judges[1]])


async def test_a_swallowed_failure_leaves_every_member_unscored_with_the_reason():
    group = group_of("a", "b", scenario_id="s")
    group.trajectories[0].reward = 0.3
    judged = await ruler_score_group(
        group, ScriptedClient(["[/INST] prose"], repeat_last=True), swallow_exceptions=True
    )
    assert judged.rewards == [None, None]
    assert all("invalid_json" in t.unscored for t in judged)
    assert judged.trajectories[0].reward == 0.3
    assert "independent_reward" not in judged.trajectories[0].metrics
    assert judged.scenario_id == "s"


async def test_one_failing_group_does_not_touch_another():
    good = ruler_score_group(group_of(*FOUR), ScriptedClient(KeywordJudge(FOUR)), swallow_exceptions=True)
    bad = ruler_score_group(
        group_of("a", "b"), ScriptedClient(["?"], repeat_last=True), swallow_exceptions=True
    )
    results = await asyncio.gather(bad, good)
    assert results[0].rewards == [None, None]
    assert results[1].rewards == [0.98, 0.2, 0.05, 0.96]


async def test_a_later_success_clears_unscored():
    failed = await ruler_score_group(
        group_of(*FOUR), ScriptedClient(["?"], repeat_last=True), swallow_exceptions=True
    )
    judged = await ruler_score_group(failed, ScriptedClient(KeywordJudge(FOUR)))
    assert judged.rewards == [0.98, 0.2, 0.05, 0.96]


async def test_a_failure_raises_without_swallowing():
    with pytest.raises(JudgeError, match="down"):
        await ruler_score_group(group_of("a", "b"), ScriptedClient([LlmError("down")]))


async def test_a_missing_key_is_raised_even_when_swallowing(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        await ruler_score_group(group_of("a", "b"), "openai/o3", swallow_exceptions=True)


async def test_an_async_function_of_messages_can_judge():
    async def judge(messages):
        assert [message["role"] for message in messages] == ["system", "user"]
        return scores_json(0.1, 0.1)

    assert (await ruler_score_group(group_of("a", "b"), judge)).rewards == [0.1, 0.1]


async def test_an_async_function_of_a_request_can_judge():
    async def judge(request):
        return ChatReply(content=scores_json(0.2, 0.2) if request.purpose == "judge/ruler" else "")

    assert (await ruler_score_group(group_of("a", "b"), judge)).rewards == [0.2, 0.2]


async def test_an_error_in_a_judge_function_names_the_function():
    async def broken_judge(messages):
        raise KeyError("oops")

    with pytest.raises(JudgeError, match=r"broken_judge raised KeyError"):
        await ruler_score_group(group_of("a", "b"), broken_judge)


async def test_the_client_given_answers_in_the_judges_name():
    client = ScriptedClient([scores_json(0.5, 0.5)])
    await ruler_score_group(group_of("a", "b"), "openai/o3", client=client)
    assert client.requests[0].model == "o3"


async def test_parameters_reach_the_request_and_connection_settings_do_not():
    client = ScriptedClient([scores_json(0.5, 0.5)])
    extra = {"temperature": 0.0, "api_key": "secret", "api_base": "http://x"}
    await ruler_score_group(group_of("a", "b"), client, extra)
    assert client.requests[0].params["temperature"] == 0.0
    assert client.requests[0].params["response_format"]["type"] == "json_schema"
    assert "secret" not in json.dumps(client.requests[0].params)


async def test_a_rubric_of_ones_own_replaces_the_default_notes():
    client = ScriptedClient([scores_json(0.5, 0.5)])
    await ruler_score_group(group_of("a", "b"), client, rubric="Only brevity counts.")
    assert client.requests[0].messages[0]["content"].endswith("\n\nOnly brevity counts.")


async def test_several_passes_show_other_orders_and_average_by_trajectory():
    def primacy(request):
        prompt = prompt_of(request)
        shown = sorted(FOUR, key=prompt.index)
        return scores_json(*[0.5 + 0.1 * (shown.index(answer) == 0) for answer in shown])

    client = ScriptedClient(primacy)
    judged = await ruler_score_group(group_of(*FOUR), client, passes=8)
    assert len({prompt_of(request) for request in client.requests}) > 1
    assert sum(judged.rewards) == pytest.approx(4 * 0.5 + 0.1)
    assert max(judged.rewards) < 0.6


async def test_debug_prints_the_raw_reply_and_the_ranking(capsys):
    client = ScriptedClient([scores_json(0.25, 0.75)])
    await ruler_score_group(group_of("a", "b"), client, debug=True)
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[0])["scores"][0]["score"] == 0.25
    assert lines[1:] == ["Rank 1 | Score 0.75 | about 2", "Rank 2 | Score 0.25 | about 1"]


async def test_a_small_group_is_warned_about_once(caplog):
    _said.clear()
    client = ScriptedClient([scores_json(0.5, 0.5)], repeat_last=True)
    for _ in range(2):
        await ruler_score_group(group_of("a", "b"), client)
    assert caplog.text.count("a group of 2 trajectories") == 1


async def test_different_system_prompts_are_scored_with_a_warning(caplog):
    lists = [chat("a", system="Be terse."), chat("b", system="Be long.")]
    scores = await ruler(lists, ScriptedClient([scores_json(0.5, 0.6)]))
    assert len(scores) == 2
    assert "different system prompts" in caplog.text


async def test_more_than_eight_are_judged_in_chunks_and_keep_their_order():
    worth = {f"answer-{letter}": index / 10 for index, letter in enumerate("abcdefghij")}
    client = ScriptedClient(KeywordJudge(worth))
    judged = await ruler_score_group(group_of(*worth), client)
    assert len(client.requests) == 4  # Two chunks, twice.
    rewards = [r for r in judged.rewards if r is not None]
    assert rewards == sorted(rewards)
    assert len(set(rewards)) == 10


async def test_histories_and_tools_reach_the_judge():
    tools = [{"type": "function", "function": {"name": "refund_order"}}]
    histories = [[[{"role": "user", "content": "plan the search"}]], [History()]]
    client = ScriptedClient([scores_json(0.5, 0.6)])
    await ruler([chat("a"), chat("b")], client, tools=tools, histories=histories)
    assert "refund_order" in prompt_of(client.requests[0])
    assert "plan the search" in prompt_of(client.requests[0])


async def test_additional_histories_of_a_group_are_scored():
    group = group_of("a", "b")
    group.trajectories[0].additional_histories.append(
        History(messages_and_choices=[{"role": "user", "content": "sub-agent task"}])
    )
    client = ScriptedClient([scores_json(0.5, 0.6)])
    await ruler_score_group(group, client)
    assert "sub-agent task" in prompt_of(client.requests[0])


async def test_images_go_as_parts_to_a_judge_that_takes_them():
    url = "data:image/png;base64,YWJj"
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    lists = [[image, {"role": "assistant", "content": answer}] for answer in "ab"]
    for takes_images, kind in [(True, list), (False, str)]:
        client = ScriptedClient([scores_json(0.5, 0.6)], takes_images=takes_images)
        await ruler(lists, client)
        assert isinstance(client.requests[0].messages[1]["content"], kind)


async def test_a_prompt_that_the_server_cut_is_not_scored():
    reply = ChatReply(content=scores_json(0.9, 0.2), usage=Usage(prompt_tokens=2050, completion_tokens=60))
    long = " ".join(f"word{number}" for number in range(4000))
    with pytest.raises(JudgeReplyError) as caught:
        await ruler([chat(long + "a"), chat("b")], ScriptedClient([reply], repeat_last=True))
    assert caught.value.kind == "prompt_truncated"
    assert "2050" in str(caught.value)


async def test_a_prompt_that_arrived_whole_is_scored():
    reply = ChatReply(content=scores_json(0.9, 0.2), usage=Usage(prompt_tokens=9000, completion_tokens=60))
    long = " ".join(f"word{number}" for number in range(4000))
    assert len(await ruler([chat(long + "a"), chat("b")], ScriptedClient([reply]))) == 2


async def test_what_was_paid_is_shared_over_the_group_and_recorded():
    reply = ChatReply(content=scores_json(0.9, 0.2), usage=Usage(100, 20), cost_usd=0.02)
    bad = ChatReply(content="?", usage=Usage(100, 20), cost_usd=0.01)
    with use_ledger(Ledger()) as ledger:
        scores = await Ruler(ScriptedClient([bad, reply])).score(group_of("a", "b"))
    assert [score.cost for score in scores] == pytest.approx([0.015, 0.015])
    total = ledger.total("judge/ruler")
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (2, 200, 40)
    assert total.cost_usd == pytest.approx(0.03)


async def test_what_a_failed_judging_took_is_recorded():
    bad = ChatReply(content="?", usage=Usage(100, 20))
    with use_ledger(Ledger()) as ledger:
        await ruler_score_group(
            group_of("a", "b"), ScriptedClient([bad], repeat_last=True), swallow_exceptions=True
        )
    assert ledger.total().prompt_tokens == 200
    assert ledger.total().cost_usd is None


async def test_a_spent_budget_stops_before_the_call():
    client = ScriptedClient([scores_json(0.5, 0.6)])
    with use_ledger(Ledger(budget=Budget(calls=0))), pytest.raises(BudgetError):
        await ruler_score_group(group_of("a", "b"), client)
    assert client.requests == []


async def test_a_repeated_judging_is_answered_from_the_cache(tmp_path):
    client = ScriptedClient(KeywordJudge(FOUR))
    cache = ReplyCache(tmp_path / "replies.sqlite")
    with use_ledger(Ledger()) as ledger:
        first = await ruler_score_group(group_of(*FOUR), client, cache=cache)
        second = await ruler_score_group(group_of(*FOUR), client, cache=cache)
    assert len(client.requests) == 1
    assert second.rewards == first.rewards == [0.98, 0.2, 0.05, 0.96]
    assert second.metrics["ruler_cost_usd"] == 0.0
    assert (ledger.total().calls, ledger.total().cache_hits) == (1, 1)


async def test_cached_scores_follow_the_trajectories_into_another_order(tmp_path):
    client = ScriptedClient(KeywordJudge(FOUR))
    cache = ReplyCache(tmp_path / "replies.sqlite")
    await ruler_score_group(group_of(*FOUR), client, cache=cache)
    judged = await ruler_score_group(group_of(*reversed(FOUR)), client, cache=cache)
    assert judged.rewards == [0.96, 0.05, 0.2, 0.98]


@pytest.mark.parametrize(
    "change",
    [{"rubric": "x"}, {"seed": 1}, {"extra_litellm_params": {"temperature": 0}}, {"judge_model": "m"}],
)
async def test_whatever_changes_the_answer_is_part_of_the_key(tmp_path, change):
    client = ScriptedClient(KeywordJudge(FOUR))
    cache = ReplyCache(tmp_path / "replies.sqlite")
    await ruler_score_group(group_of(*FOUR), client=client, cache=cache)
    await ruler_score_group(group_of(*FOUR), client=client, cache=cache, **change)
    assert len(client.requests) == 2


async def test_only_replies_that_could_be_read_enter_the_cache(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    bad = ScriptedClient(["?"], repeat_last=True)
    await ruler_score_group(group_of("a", "b"), bad, cache=cache, swallow_exceptions=True)
    good = ScriptedClient([scores_json(0.5, 0.6)])
    assert (await ruler_score_group(group_of("a", "b"), good, cache=cache)).trajectories[0].unscored is None
    assert len(good.requests) == 1


async def test_a_group_judged_many_times_at_once_is_asked_about_once(tmp_path):
    client = ScriptedClient(KeywordJudge(FOUR), delay_s=0.05)
    cache = ReplyCache(tmp_path / "replies.sqlite")
    judged = await asyncio.gather(
        *[ruler_score_group(group_of(*FOUR), client, cache=cache) for _ in range(16)]
    )
    assert len(client.requests) == 1
    assert all(group.rewards == [0.98, 0.2, 0.05, 0.96] for group in judged)


async def test_a_function_is_not_cached_unless_asked():
    judge = KeywordJudge(FOUR)

    async def answer(request):
        return judge(request)

    for _ in range(2):
        await ruler_score_group(group_of(*FOUR), answer)
    assert judge.calls == 2


class LengthScorer:
    """A scorer as a higher layer would register it."""

    async def score(self, group):
        return [Score(value=len(t.messages()[-1]["content"]) / 10, explanation="length") for t in group]


def make_length_scorer(rest, params):
    assert (rest, params) == ("length", {})
    return LengthScorer()


@pytest.fixture
def local_scorer(monkeypatch):
    monkeypatch.setattr(registry, "_TARGETS", {})
    register_prefix("local", f"{__name__}:make_length_scorer")


async def test_a_registered_name_can_be_a_scorer(local_scorer):
    judged = await ruler_score_group(group_of("ab", "abcd"), "local/length")
    assert judged.rewards == [0.2, 0.4]
    assert judged.trajectories[0].metrics == {"independent_reward": 0.0, "ruler_score": 0.2}
    assert [s.score for s in await ruler([chat("ab"), chat("abcd")], "local/length")] == [0.2, 0.4]


async def test_a_registered_scorer_can_be_the_fallback(local_scorer):
    client = ScriptedClient([LlmError("down")])
    judged = await ruler_score_group(group_of("ab", "abcd"), client, fallback="local/length")
    assert judged.rewards == [0.2, 0.4]


async def test_all_orders_of_four_give_each_trajectory_its_score():
    for order in itertools.permutations(FOUR):
        judged = await ruler_score_group(group_of(*order), ScriptedClient(KeywordJudge(FOUR)))
        assert judged.rewards == [FOUR[answer] for answer in order]


async def test_a_chinese_group_is_judged_in_chinese():
    worth = {"可以退款，30天内。": 0.9, "我不知道。": 0.1}
    client = ScriptedClient(KeywordJudge(worth))
    assert (await ruler_score_group(group_of(*worth), client)).rewards == [0.9, 0.1]
    assert "\\u" not in prompt_of(client.requests[0])


async def test_a_choice_without_logprobs_can_be_scored():
    def choice(text):
        return Choice(
            index=0, finish_reason="stop", message=ChatCompletionMessage(role="assistant", content=text)
        )

    group = TrajectoryGroup([Trajectory(messages_and_choices=[*chat("")[:2], choice(a)]) for a in FOUR])
    assert (await ruler_score_group(group, ScriptedClient(KeywordJudge(FOUR)))).rewards == [
        0.98,
        0.2,
        0.05,
        0.96,
    ]


async def test_passes_must_be_at_least_one():
    with pytest.raises(ConfigError, match="passes is 0"):
        await ruler_score_group(group_of("a", "b"), ScriptedClient([]), passes=0)


async def test_cancelling_a_judging_cancels_it():
    client = ScriptedClient([scores_json(0.5, 0.6)], delay_s=60)
    task = asyncio.ensure_future(ruler_score_group(group_of("a", "b"), client, swallow_exceptions=True))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_judging_logs_no_prompt(caplog):
    caplog.set_level(logging.DEBUG)
    await ruler_score_group(group_of("topsecret", "b"), ScriptedClient([scores_json(0.5, 0.6)]))
    assert not re.search("topsecret", caplog.text)
