"""Groups in files: what is written is read back equal, and what cannot be read says where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openai.types.chat.chat_completion import Choice

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.messages import key_of
from groundrule.data.records import append_group, read_groups, write_groups
from groundrule.errors import DataError

USER = {"role": "user", "content": "a"}


def sampled(content: str) -> Choice:
    return Choice.model_validate(
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": content, "refusal": None},
            "logprobs": {"content": [{"token": "x", "logprob": -0.5, "bytes": None, "top_logprobs": []}]},
            "token_ids": [1, 2],
        }
    )


def file_of(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def round_trip(path: Path, group: TrajectoryGroup) -> TrajectoryGroup:
    write_groups(path, [group])
    [got] = read_groups(path)
    return got


def refusal(path: Path, *records: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_groups(file_of(path, *records))
    return str(caught.value).removeprefix(str(path) + ", ")


def sizes(groups: list[TrajectoryGroup]) -> list[tuple[str | None, int]]:
    return [(group.scenario_id, len(group)) for group in groups]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "groups.jsonl"


def test_a_group_with_every_field_comes_back_equal(path: Path) -> None:
    member = Trajectory(
        messages_and_choices=[USER, sampled("b")],
        tools=[{"type": "function", "function": {"name": "find"}}],
        additional_histories=[{"messages_and_choices": [USER, sampled("c")]}],
        reward=0.25,
        unscored="the judge was down",
        initial_policy_version=3,
        metrics={"words": 2, "cited": True, "share": 0.5},
        metadata={"shop": "north", "none": None},
        logs=["one"],
    )
    group = TrajectoryGroup(
        [member, ValueError("boom")], scenario_id="faq-1", labels={"best": 0}, logs=["two"]
    )
    assert round_trip(path, group) == group


def test_a_sampled_choice_keeps_token_ids_and_logprobs(path: Path) -> None:
    got = round_trip(path, TrajectoryGroup([Trajectory(messages_and_choices=[USER, sampled("b")])]))
    choice = got.trajectories[0].messages_and_choices[1]
    assert (choice.token_ids, choice.logprobs.content[0].logprob) == ([1, 2], -0.5)


def test_half_a_surrogate_pair_in_messages_choices_and_logs_survives(path: Path) -> None:
    half = "a\ud835b"
    member = Trajectory(messages_and_choices=[{"role": "user", "content": half}, sampled(half)], logs=[half])
    assert round_trip(path, TrajectoryGroup([member])) == TrajectoryGroup([member])


def test_a_message_keeps_its_null_keys(path: Path) -> None:
    message = {**USER, "tool_calls": None}
    got = round_trip(path, TrajectoryGroup([Trajectory(messages_and_choices=[message])]))
    assert got.trajectories[0].messages_and_choices == [message]


def test_unknown_keys_of_groups_and_trajectories_are_kept(path: Path) -> None:
    [got] = read_groups(
        file_of(path, {"trajectories": [{"messages_and_choices": [], "seed": 7}], "shop": "north"})
    )
    record = got.model_dump()
    assert (record["shop"], record["trajectories"][0]["seed"]) == ("north", 7)


def test_a_reward_that_is_not_a_number_is_refused_at_writing(path: Path) -> None:
    with pytest.raises(DataError, match="NaN or infinite"):
        write_groups(path, [TrajectoryGroup([Trajectory(reward=float("nan"))])])
    assert not path.exists()


def test_appended_groups_follow_those_that_are_there(path: Path) -> None:
    write_groups(path, [TrajectoryGroup([Trajectory(reward=1)])])
    append_group(path, TrajectoryGroup([Trajectory(reward=2)]))
    assert [g.rewards for g in read_groups(path)] == [[1.0], [2.0]]


def test_a_plain_trajectory_is_a_group_of_one(path: Path) -> None:
    [got] = read_groups(file_of(path, {"messages_and_choices": [USER], "reward": 0.5}))
    assert got == TrajectoryGroup([Trajectory(messages_and_choices=[USER], reward=0.5)])


def test_a_record_with_messages_is_a_trajectory(path: Path) -> None:
    [got] = read_groups(file_of(path, {"messages": [USER], "metadata": {"shop": "north"}}))
    assert got == TrajectoryGroup([Trajectory(messages_and_choices=[USER], metadata={"shop": "north"})])


def test_trajectories_of_one_scenario_form_a_group_where_the_first_stood(path: Path) -> None:
    names = ["a", "b", "a", None, None, "b", "a"]
    file_of(path, *({"messages": [USER], **({"scenario_id": n} if n else {})} for n in names))
    assert sizes(read_groups(path)) == [("a", 3), ("b", 2), (None, 1), (None, 1)]


def test_groups_are_not_merged_with_each_other_or_with_single_trajectories(path: Path) -> None:
    group = {"trajectories": [{"messages_and_choices": [USER]}], "scenario_id": "a"}
    file_of(path, group, group, {"messages": [USER], "scenario_id": "a"})
    assert sizes(read_groups(path)) == [("a", 1), ("a", 1), ("a", 1)]


def test_a_scenario_id_that_is_a_number_becomes_text(path: Path) -> None:
    file_of(path, {"messages": [USER], "scenario_id": 7}, {"messages": [USER], "scenario_id": "7"})
    assert sizes(read_groups(path)) == [("7", 2)]


def test_a_null_reward_is_no_score_and_not_zero(path: Path) -> None:
    [got] = read_groups(file_of(path, {"messages": [USER], "reward": None}))
    assert got.rewards == [None]


def test_null_for_unused_columns_means_the_same_as_no_column(path: Path) -> None:
    nulls = {"tools": None, "metrics": None, "metadata": None, "logs": None, "additional_histories": None}
    padded, bare = read_groups(file_of(path, {"messages": [USER], **nulls}, {"messages": [USER]}))
    assert padded == bare


def test_null_keys_in_a_message_do_not_change_its_meaning(path: Path) -> None:
    padded = {**USER, "tool_calls": None, "tool_call_id": None, "name": None}
    [got] = read_groups(file_of(path, {"messages": [padded]}))
    assert key_of(got.trajectories[0].messages()) == key_of([USER])


def test_an_empty_file_has_no_groups(path: Path) -> None:
    assert read_groups(file_of(path)) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.jsonl: cannot be read: No such file"):
        read_groups(tmp_path / "absent.jsonl")


def test_a_wrong_reward_is_named_with_line_and_field(path: Path) -> None:
    good = {"messages": [USER]}
    assert refusal(path, good, {"trajectories": [{"messages_and_choices": []}, {"reward": "x"}]}) == (
        "line 2, column trajectories.1.reward: 'x' should be a valid number, "
        "unable to parse string as a number; write a number, or null with the reason in 'unscored'"
    )


def test_wrong_messages_are_named_as_the_file_spells_them(path: Path) -> None:
    assert refusal(path, {"messages": "hi"}) == (
        "line 1, column messages: 'hi' should be a valid list; "
        'write a list of {"role": ..., "content": ...} objects'
    )


def test_a_wrong_metric_is_named(path: Path) -> None:
    assert refusal(path, {"messages": [], "metrics": {"words": "many"}}).startswith(
        "line 1, column metrics.words: 'many' should be a valid number"
    )


def test_trajectories_that_are_no_list_are_refused(path: Path) -> None:
    assert refusal(path, {"trajectories": None}) == (
        "line 1, column trajectories: None is not a list; write a list of trajectories"
    )


def test_a_record_of_another_kind_is_told_what_is_needed(path: Path) -> None:
    assert refusal(path, {"question": "Open?"}) == (
        "line 1: has the keys 'question'; a group needs 'trajectories', "
        "a single trajectory 'messages_and_choices' or 'messages'"
    )


def test_a_line_that_is_no_object_is_refused(path: Path) -> None:
    assert refusal(path, 5) == "line 1: holds 5; each line must be an object with trajectories or messages"
