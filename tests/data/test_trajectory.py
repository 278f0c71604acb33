"""Trajectories, groups and scores as plain data."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat.chat_completion import Choice
from pydantic import ValidationError

from groundrule.data import History, PendingGroup, Score, Trajectory, TrajectoryGroup
from groundrule.data.messages import key_of

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Open?"}
TOOL = {"role": "tool", "tool_call_id": "c1", "content": "9 to 5"}


def sampled(content: str | None, **message: Any) -> Choice:
    whole = {"role": "assistant", "content": content, **message}
    return Choice.model_validate({"index": 0, "finish_reason": "stop", "message": whole})


def said(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


async def ok(reward: float, seconds: float = 0.0) -> Trajectory:
    await asyncio.sleep(seconds)
    return Trajectory(reward=reward)


async def broken() -> Trajectory:
    raise ValueError("boom")


def rewards(group: TrajectoryGroup) -> list[float]:
    return [t.reward for t in group]


def full_group() -> TrajectoryGroup:
    member = Trajectory(messages_and_choices=[USER, sampled("Yes.")], reward=0.5, metrics={"words": 1})
    return TrajectoryGroup([member, ValueError("boom")], scenario_id="faq-1", metadata={"a": 1}, shop="north")


def test_a_new_trajectory_is_empty_and_has_reward_zero() -> None:
    assert (Trajectory().messages(), Trajectory().reward, Trajectory().unscored) == ([], 0.0, None)


def test_choices_and_plain_messages_mix() -> None:
    t = Trajectory(messages_and_choices=[SYSTEM, USER, sampled("Yes.")])
    assert t.messages() == [SYSTEM, USER, said("Yes.")]


def test_an_answer_without_content_has_empty_text() -> None:
    assert Trajectory(messages_and_choices=[sampled(None)]).messages() == [said("")]


def test_reasoning_and_refusals_are_kept() -> None:
    [message] = Trajectory(
        messages_and_choices=[sampled("a", refusal="no", reasoning_content="hm")]
    ).messages()
    assert (message["refusal"], message["reasoning_content"]) == ("no", "hm")


def test_null_keys_of_a_message_mean_the_same_as_absent_ones() -> None:
    padded = {**USER, "tool_calls": None, "tool_call_id": None, "name": None}
    assert key_of(Trajectory(messages_and_choices=[padded]).messages()) == key_of([USER])


def test_something_that_is_no_message_is_refused() -> None:
    with pytest.raises(ValidationError, match="messages_and_choices holds str 'hello'"):
        Trajectory(messages_and_choices=["hello"])


def test_unknown_fields_are_kept() -> None:
    assert Trajectory(seed=7).model_dump()["seed"] == 7


def test_equal_content_is_equal_whenever_it_was_made() -> None:
    assert Trajectory(reward=0.5) == Trajectory(reward=0.5)


def test_another_reward_is_another_trajectory() -> None:
    assert Trajectory(reward=0.5) != Trajectory(reward=0.25)


def test_a_remark_is_kept() -> None:
    t = Trajectory()
    t.log("looked it up")
    assert t.logs == ["looked it up"]


def test_finish_notes_the_seconds_and_returns_the_trajectory() -> None:
    t = Trajectory()
    assert t.finish() is t and 0 <= t.metrics["duration"] < 5


async def test_a_tracked_block_adds_up_over_uses() -> None:
    t = Trajectory(metrics={"search_duration": 100.0})
    async with t.track_duration("search"):
        pass
    assert 100 < t.metrics["search_duration"] < 105


async def test_a_tracked_block_that_fails_is_still_timed() -> None:
    t = Trajectory()
    with pytest.raises(ValueError):
        async with t.track_duration("search"):
            raise ValueError("boom")
    assert "search_duration" in t.metrics


def test_a_history_has_messages_of_its_own() -> None:
    assert History(messages_and_choices=[USER, sampled("Yes.")]).messages() == [USER, said("Yes.")]


def test_histories_are_read_from_dicts() -> None:
    t = Trajectory(additional_histories=[{"messages_and_choices": [USER]}])
    assert t.additional_histories == [History(messages_and_choices=[USER])]


def test_a_log_view_holds_plain_messages_and_no_choices() -> None:
    record = Trajectory(messages_and_choices=[USER, sampled("Yes.")], reward=0.5).for_logging()
    assert (record["messages"], record["reward"]) == ([USER, said("Yes.")], 0.5)


def test_each_assistant_turn_is_an_action_in_the_state_before_it() -> None:
    t = Trajectory(messages_and_choices=[SYSTEM, USER, sampled("look"), TOOL, sampled("9 to 5.")])
    steps = [(len(s.state), s.action["content"], len(s.next_state)) for s in t.transitions()]
    assert steps == [(2, "look", 4), (4, "9 to 5.", 5)]


def test_only_the_last_action_gets_the_reward() -> None:
    t = Trajectory(messages_and_choices=[USER, sampled("look"), TOOL, sampled("9 to 5.")], reward=0.5)
    assert [s.reward for s in t.transitions()] == [0.0, 0.5]


def test_the_last_action_gets_the_reward_also_when_the_environment_answers_it() -> None:
    t = Trajectory(messages_and_choices=[USER, sampled("look"), TOOL], reward=0.5)
    assert [s.reward for s in t.transitions()] == [0.5]


def test_a_conversation_without_an_answer_has_no_transitions() -> None:
    assert Trajectory(messages_and_choices=[USER], reward=0.5).transitions() == []


def test_a_group_of_trajectories_is_there_at_once() -> None:
    assert rewards(TrajectoryGroup([Trajectory(reward=1), Trajectory(reward=2)])) == [1, 2]


def test_a_generator_is_accepted() -> None:
    assert len(TrajectoryGroup(Trajectory() for _ in range(3))) == 3


def test_exceptions_among_the_members_are_set_apart() -> None:
    group = TrajectoryGroup([Trajectory(), ValueError("boom")], exceptions=[KeyError("k")])
    assert (len(group), [str(e) for e in group.exceptions]) == (1, ["KeyError: 'k'", "ValueError: boom"])


def test_a_group_of_awaitables_is_pending() -> None:
    pending: Any = TrajectoryGroup(ok(n) for n in range(3))
    assert isinstance(pending, PendingGroup) and pending._num_trajectories == 3
    pending.close()


async def test_awaited_members_keep_the_order_given() -> None:
    group = await TrajectoryGroup([ok(1, 0.02), ok(2), ok(3, 0.01)])  # type: ignore[misc]
    assert rewards(group) == [1, 2, 3]


async def test_a_pending_group_keeps_failures_and_fields() -> None:
    group = await TrajectoryGroup([ok(1), broken()], scenario_id="faq-1")  # type: ignore[misc]
    assert (group.scenario_id, [str(e) for e in group.exceptions]) == ("faq-1", ["ValueError: boom"])


def test_trajectories_and_awaitables_do_not_mix() -> None:
    waiting = ok(1)
    with pytest.raises(TypeError, match="1 awaitables among 2 members"):
        TrajectoryGroup([Trajectory(), waiting])
    waiting.close()


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copied_group_is_equal(copied: Callable[[TrajectoryGroup], TrajectoryGroup]) -> None:
    assert copied(full_group()) == full_group()


def test_a_deep_copy_shares_nothing() -> None:
    group = full_group()
    copy.deepcopy(group).trajectories[0].metrics["words"] = 9
    assert group.trajectories[0].metrics == {"words": 1}


class Annotated(Trajectory):
    """A user's own kind of trajectory."""

    verdict: str = ""


def test_fields_of_a_subclass_are_written() -> None:
    record = TrajectoryGroup([Annotated(verdict="good")]).model_dump()
    assert record["trajectories"][0]["verdict"] == "good"


def test_other_members_leave_the_rest_of_the_group_as_it_was() -> None:
    group = full_group()
    other = group.with_members([Trajectory(reward=1)])
    assert (rewards(other), other.scenario_id, other.exceptions) == ([1], "faq-1", group.exceptions)


def test_an_unscored_member_has_no_reward() -> None:
    group = TrajectoryGroup([Trajectory(reward=0.5), Trajectory(reward=0.0, unscored="the judge was down")])
    assert (group.rewards, len(group.scored)) == ([0.5, None], 1)


def test_a_score_of_zero_is_a_score() -> None:
    assert Score(value=0.0).reason is None


def test_no_score_needs_a_reason() -> None:
    with pytest.raises(ValidationError, match="needs a reason"):
        Score()


def test_a_score_has_no_reason_for_being_absent() -> None:
    with pytest.raises(ValidationError, match="not both"):
        Score(value=0.5, reason="the judge was down")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_score_is_a_finite_number(value: float) -> None:
    with pytest.raises(ValidationError):
        Score(value=value)


def test_none_is_made_from_its_reason() -> None:
    assert Score.none("the judge was down", cost=0.01) == Score(reason="the judge was down", cost=0.01)


def test_a_score_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Score(value=0.5).value = 1.0  # type: ignore[misc]
