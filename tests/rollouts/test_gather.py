"""Gathering rollouts: bounded, in order, and nothing that was finished is lost."""

from __future__ import annotations

import asyncio
import io
import logging
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groundrule._util.progress import progress_bar
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError, GatherError
from groundrule.rollouts import GatherCancelled, gather_trajectories, gather_trajectory_groups

Group = Awaitable[TrajectoryGroup]


class Room:
    """Counts how many rollouts run at the same time."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0

    async def rollout(self, reward: float = 0.0, seconds: float = 0.0) -> Trajectory:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(seconds)
            return Trajectory(reward=reward)
        finally:
            self.inside -= 1


async def ok(reward: float, seconds: float = 0.0) -> Trajectory:
    await asyncio.sleep(seconds)
    return Trajectory(reward=reward)


async def failing(error: BaseException) -> Trajectory:
    raise error


async def nothing() -> Any:
    return None


def group(*rollouts: Awaitable[Any], **more: Any) -> Group:
    return TrajectoryGroup(rollouts, **more)  # type: ignore[return-value]


async def quiet(groups: list[Any], **options: Any) -> list[TrajectoryGroup]:
    return await gather_trajectory_groups(groups, progress=False, **options)


async def gather_error(groups: list[Any], **options: Any) -> GatherError:
    with pytest.raises(GatherError) as caught:
        await quiet(groups, **options)
    return caught.value


def rewards(groups: list[TrajectoryGroup]) -> list[list[float]]:
    return [[t.reward for t in g] for g in groups]


async def cancelled_after(seconds: float, gather: Awaitable[Any]) -> GatherCancelled:
    task = asyncio.ensure_future(gather)
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(GatherCancelled) as caught:
        await task
    return caught.value


async def test_groups_and_members_keep_the_order_in_which_they_were_given() -> None:
    groups = [group(ok(1, 0.02), ok(2), ok(3, 0.01)), group(ok(4), ok(5, 0.01))]
    assert rewards(await quiet(groups)) == [[1, 2, 3], [4, 5]]


async def test_one_failing_rollout_leaves_its_siblings_running() -> None:
    mixed = group(ok(1.0), failing(ValueError("boom")), ok(0.0, 0.02), ok(0.5, 0.02))
    assert rewards(await quiet([mixed], max_exceptions=1)) == [[1.0, 0.0, 0.5]]


async def test_a_failure_is_kept_in_its_group_with_the_place_where_it_was_raised() -> None:
    [got] = await quiet([group(ok(1.0), failing(ValueError("boom")))], max_exceptions=1)
    [failure] = got.exceptions
    assert (str(failure), "in failing" in failure.traceback) == ("ValueError: boom", True)


async def test_with_no_failure_allowed_the_siblings_finish_before_the_error() -> None:
    error = await gather_error([group(failing(ValueError("boom")), ok(0.5, 0.02)), group(ok(1.0, 0.03))])
    assert rewards(error.groups) == [[0.5], [1.0]]


async def test_the_error_counts_distinct_causes() -> None:
    error = await gather_error(
        [group(failing(ValueError("boom")), failing(KeyError("k")), failing(ValueError("boom")), ok(1))]
    )
    assert "ValueError: boom (2 times); KeyError: 'k'." in str(error)


async def test_the_error_has_the_first_failure_as_its_cause() -> None:
    boom = ValueError("boom")
    assert (await gather_error([group(failing(boom), ok(1))])).__cause__ is boom


async def test_the_error_survives_another_process() -> None:
    error = await gather_error([group(failing(ValueError("boom")), ok(0.25))])
    assert rewards(pickle.loads(pickle.dumps(error)).groups) == [[0.25]]


async def test_a_fraction_allows_that_share_of_the_rollouts() -> None:
    groups = [group(failing(ValueError("boom")), ok(1), ok(1), ok(1))]
    assert rewards(await quiet(groups, max_exceptions=0.25)) == [[1, 1, 1]]


async def test_a_fraction_refuses_more_than_that_share() -> None:
    error = await gather_error([group(failing(ValueError("boom")), ok(1), ok(1), ok(1))], max_exceptions=0.2)
    assert len(error.exceptions) == 1


@pytest.mark.parametrize("limit", [-1, 1.5, float("nan")])
async def test_a_limit_that_is_neither_count_nor_fraction_is_refused(limit: float) -> None:
    waiting = group(ok(1))
    with pytest.raises(ConfigError, match=f"max_exceptions={limit}"):
        await quiet([waiting], max_exceptions=limit)
    waiting.close()  # type: ignore[attr-defined]


async def test_a_group_whose_rollouts_all_failed_is_dropped_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = group(failing(ValueError("a")), failing(ValueError("b")))
    with caplog.at_level(logging.WARNING):
        assert rewards(await quiet([lost, group(ok(1))], max_exceptions=2)) == [[1]]
    assert caplog.messages == [
        "group 0 is dropped: none of its rollouts gave a trajectory (ValueError: a; ValueError: b)"
    ]


async def test_four_different_failures_are_all_named() -> None:
    error = await gather_error([group(*(failing(ValueError(name)) for name in "abcd"))])
    assert "ValueError: a; ValueError: b; ValueError: c; ValueError: d" in str(error)


async def test_system_exit_in_a_rollout_does_not_end_the_program() -> None:
    [got] = await quiet([group(ok(1.0), failing(SystemExit(0)))], max_exceptions=1)
    assert (len(got), [str(e) for e in got.exceptions]) == (1, ["SystemExit: 0"])


async def test_a_rollout_that_returns_nothing_is_named() -> None:
    [got] = await quiet([group(ok(1.0), nothing())], max_exceptions=1)
    assert str(got.exceptions[0]) == (
        "TypeError: rollout 1 returned NoneType; a rollout must return a Trajectory"
    )


async def test_a_cancellation_inside_one_rollout_is_that_rollouts_failure() -> None:
    [got] = await quiet([group(ok(1.0), failing(asyncio.CancelledError()))], max_exceptions=1)
    assert got.exceptions[0].type == "CancelledError"


async def test_a_rollout_over_its_time_is_stopped() -> None:
    [got] = await quiet([group(ok(1.0), ok(2.0, 5))], max_exceptions=1, timeout_s=0.02)
    assert str(got.exceptions[0]) == "TimeoutError: no result after 0.02 s"


async def test_waiting_for_a_turn_does_not_count_as_running_time() -> None:
    groups = [group(*(ok(n, 0.03) for n in range(4)))]
    assert rewards(await quiet(groups, max_concurrency=1, timeout_s=0.1)) == [[0, 1, 2, 3]]


async def test_the_bound_holds_over_all_groups() -> None:
    room = Room()
    groups = [group(*(room.rollout(seconds=0.005) for _ in range(4))) for _ in range(3)]
    await quiet(groups, max_concurrency=2)
    assert room.most == 2


async def test_the_bound_holds_for_what_runs_after_each_group() -> None:
    room = Room()

    async def judged(scored: TrajectoryGroup) -> TrajectoryGroup:
        await room.rollout(seconds=0.005)
        return scored

    await quiet([group(ok(n)) for n in range(6)], max_concurrency=2, after_each=judged)
    assert room.most == 2


async def test_a_bound_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_concurrency=0 would run nothing"):
        await quiet([], max_concurrency=0)


async def test_no_groups_give_no_groups() -> None:
    assert await quiet([]) == []


async def test_a_coroutine_that_returns_a_group_is_taken() -> None:
    async def made() -> TrajectoryGroup:
        return TrajectoryGroup([Trajectory(reward=0.5)])

    assert rewards(await quiet([made(), group(ok(1))])) == [[0.5], [1]]


async def test_a_coroutine_that_returns_something_else_is_a_failure() -> None:
    assert "TypeError: group 0 is a NoneType; it must be a TrajectoryGroup" in str(
        await gather_error([nothing()])
    )


async def test_failures_inside_a_finished_group_count() -> None:
    with_failure = TrajectoryGroup([Trajectory(reward=1), ValueError("boom")])
    assert "ValueError: boom" in str(await gather_error([with_failure]))


async def test_fields_given_with_pending_rollouts_reach_the_group() -> None:
    [got] = await quiet([group(ok(1), scenario_id="faq-1", metadata={"shop": "north"})])
    assert (got.scenario_id, got.metadata) == ("faq-1", {"shop": "north"})


async def test_after_each_replaces_drops_and_multiplies_groups() -> None:
    async def change(g: TrajectoryGroup) -> Any:
        reward = g.trajectories[0].reward
        return {0: None, 1: g, 2: [g, g]}[int(reward)]

    assert rewards(await quiet([group(ok(2)), group(ok(0)), group(ok(1))], after_each=change)) == [
        [2],
        [2],
        [1],
    ]


async def test_after_each_runs_while_other_groups_still_generate() -> None:
    room = Room()
    still_running = []

    async def look(g: TrajectoryGroup) -> TrajectoryGroup:
        still_running.append(room.inside)
        return g

    await quiet([group(ok(1)), group(room.rollout(seconds=0.05))], after_each=look)
    assert still_running == [1, 0]


async def down(_: TrajectoryGroup) -> TrajectoryGroup:
    raise ConnectionError("judge is down")


async def test_a_judge_that_is_down_stops_the_step_and_gives_no_zeros() -> None:
    error = await gather_error([group(ok(0), ok(0)), group(ok(0), ok(0))], after_each=down)
    assert [g.rewards for g in error.groups] == [[None, None], [None, None]]


async def test_a_judge_that_is_down_is_named_with_its_place() -> None:
    error = await gather_error([group(ok(0)), group(ok(0))], after_each=down)
    assert "after_each: ConnectionError: judge is down (2 times)" in str(error)


async def test_within_the_limit_a_group_that_could_not_be_judged_is_left_out() -> None:
    async def down_once(g: TrajectoryGroup) -> TrajectoryGroup:
        return await down(g) if g.trajectories[0].reward == 0 else g

    assert rewards(await quiet([group(ok(0)), group(ok(1))], after_each=down_once, max_exceptions=1)) == [[1]]


async def test_after_each_that_returns_something_else_is_a_failure() -> None:
    async def wrong(_: TrajectoryGroup) -> Any:
        return 0.5

    assert "after_each returned float" in str(await gather_error([group(ok(1))], after_each=wrong))


async def test_cancelling_leaves_no_rollout_running() -> None:
    room = Room()
    await cancelled_after(0.02, quiet([group(*(room.rollout(seconds=9) for _ in range(4)))]))
    assert room.inside == 0


async def test_cancelling_waits_for_rollouts_that_clean_up() -> None:
    cleaned = []

    async def careful() -> Trajectory:
        try:
            await asyncio.sleep(9)
        finally:
            await asyncio.sleep(0.02)
            cleaned.append(True)
        return Trajectory()

    await cancelled_after(0.01, quiet([group(careful())]))
    assert cleaned == [True]


async def test_cancelling_keeps_the_finished_groups() -> None:
    error = await cancelled_after(0.05, quiet([group(ok(1)), group(ok(2, 9))]))
    assert rewards(error.groups) == [[1]]


async def test_cancelling_keeps_the_finished_members_of_unfinished_groups() -> None:
    error = await cancelled_after(0.05, quiet([group(ok(1), ok(2, 9)), group(ok(3, 9))]))
    assert rewards(error.unfinished) == [[1]]


async def test_cancelling_before_the_first_rollout_leaves_no_unawaited_coroutine() -> None:
    error = await cancelled_after(0, quiet([group(ok(1)), group(ok(2))]))
    assert (error.groups, error.unfinished) == ([], [])


async def test_cancelling_also_ends_a_task_that_waits_for_its_turn() -> None:
    waiting = asyncio.create_task(ok(1, 9))
    await cancelled_after(0.01, quiet([group(ok(2, 9), waiting)], max_concurrency=1))
    assert waiting.cancelled()


async def test_single_trajectories_come_back_in_order_with_failures_in_place() -> None:
    boom = ValueError("boom")
    got = await gather_trajectories([ok(1, 0.01), failing(boom), ok(2)], max_exceptions=1, pbar_desc=None)
    assert got == [Trajectory(reward=1), boom, Trajectory(reward=2)]


async def test_a_rollout_may_give_several_trajectories() -> None:
    async def two() -> list[Trajectory]:
        return [Trajectory(reward=1), Trajectory(reward=2)]

    got = await gather_trajectories([two(), ok(3)], pbar_desc=None)
    assert got == [[Trajectory(reward=1), Trajectory(reward=2)], Trajectory(reward=3)]


async def test_too_many_failures_among_single_trajectories_keep_what_was_finished() -> None:
    with pytest.raises(GatherError) as caught:
        await gather_trajectories([ok(1), failing(ValueError("boom"))], pbar_desc=None)
    assert rewards(caught.value.groups) == [[1]]


async def test_cancelling_single_trajectories_keeps_what_was_finished() -> None:
    error = await cancelled_after(0.05, gather_trajectories([ok(1), ok(2, 9)], pbar_desc=None))
    assert rewards(error.unfinished) == [[1]]


async def test_without_a_terminal_one_line_reports_the_gather(capsys: pytest.CaptureFixture[str]) -> None:
    await gather_trajectory_groups([group(ok(0.25), ok(0.75), failing(ValueError("boom")))], max_exceptions=1)
    assert capsys.readouterr().err == "gather: 3/3 (1 exception, reward 0.5)\n"


async def test_no_description_silences_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    await gather_trajectory_groups([group(ok(1))], pbar_desc=None)
    assert capsys.readouterr().err == ""


async def test_as_many_metrics_as_asked_for_stand_beside_the_reward(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def measured() -> Trajectory:
        return Trajectory(reward=1, metrics={"words": 12, "turns": 2})

    await gather_trajectory_groups([group(measured())], max_metrics=1)
    assert capsys.readouterr().err == "gather: 1/1 (0 exceptions, reward 1, words 12)\n"


def ticking(step_s: float) -> Callable[[], float]:
    times = iter(range(1000))
    return lambda: next(times) * step_s


def test_plain_lines_are_seconds_apart() -> None:
    out = io.StringIO()
    with progress_bar("train", 10, stream=out, clock=ticking(1.0)) as bar:
        for _ in range(10):
            bar.advance()
    assert out.getvalue() == "train: 5/10\ntrain: 10/10\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_two_bars_share_one_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with progress_bar("train", 2, stream=out) as outer, progress_bar("gather", 1, stream=out) as inner:
        inner.advance(note="reward [0.5]")
        outer.advance()
    assert "train" in out.getvalue() and "reward [0.5]" in out.getvalue()
