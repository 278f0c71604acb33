"""Gather: run many rollouts at once, bounded and in order, and keep whatever was finished.

One failure never touches its neighbours. It is kept in its group's `exceptions` and counts against
`max_exceptions`; when more fail than that, everything else finishes first, and then `GatherError`
is raised with the finished groups in `groups`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from groundrule._util.aio import settle
from groundrule._util.progress import progress_bar
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.rollouts._gathering import AfterEach, Gathering, bounded
from groundrule.rollouts._tally import Tally

DEFAULT_CONCURRENCY = 64
"""Rollouts at once. An OpenAI client keeps at most 100 connections open between calls."""


class GatherCancelled(asyncio.CancelledError):
    """The gather was cancelled. Nothing of it is running any more; what was finished is kept here."""

    def __init__(self, *, groups: list[TrajectoryGroup], unfinished: list[TrajectoryGroup]) -> None:
        super().__init__(f"gather cancelled with {len(groups)} groups finished")
        self.groups = groups
        """What the gather would have returned for the groups that were through."""
        self.unfinished = unfinished
        """The others with at least one finished rollout, as they were; `after_each` did not touch them."""


async def gather_trajectory_groups(
    groups: Iterable[Awaitable[TrajectoryGroup] | TrajectoryGroup],
    *,
    pbar_desc: str | None = "gather",
    pbar_total_completion_tokens: bool = False,
    max_exceptions: int | float = 0,
    max_metrics: int | None = None,
    after_each: AfterEach | None = None,
    max_concurrency: int | None = DEFAULT_CONCURRENCY,
    timeout_s: float | None = None,
    progress: bool = True,
) -> list[TrajectoryGroup]:
    """Run the rollouts of all groups; the groups come back in the order given, and so do their members.

    - `groups`: `TrajectoryGroup(rollout(...) for ...)`, or any coroutine that returns a group. Such a
      coroutine counts as one rollout, because the gather cannot see inside it.
    - `max_exceptions`: how many failures to go on with: a count, or a fraction of the rollouts (0 < x < 1).
    - `after_each(group)`: runs as soon as a group is complete, while others still run. It returns the
      group, several groups, or None to drop it. Its failure counts as one exception and the group is not
      in the result; `GatherError.groups` still has it, with every member marked `unscored`.
    - A group without a single finished rollout is dropped with a warning.
    - `max_concurrency`: rollouts at once, over all groups, and as many `after_each` beside them; None for no
      bound.
    - `timeout_s`: for one rollout, counted from its start.
    - `max_metrics`: how many of the trajectories' metrics the bar shows beside the reward.
      `pbar_total_completion_tokens` is accepted and has no effect.
    - Cancelled, it cancels and awaits every rollout and raises `GatherCancelled` with what was finished.
    """
    items = list(groups)
    gathering = Gathering(items, max_exceptions, max_metrics or 0, after_each, max_concurrency, timeout_s)
    with progress_bar(pbar_desc if progress else None, gathering.tally.total) as bar:
        gathering.tally.bar = bar
        try:
            return await gathering.run()
        except asyncio.CancelledError as error:
            raise GatherCancelled(groups=gathering.through(), unfinished=gathering.unfinished()) from error


async def gather_trajectories(
    trajectories: Iterable[Awaitable[Any]],
    *,
    pbar_desc: str | None = "gather",
    pbar_total_completion_tokens: bool = False,
    max_exceptions: int | float = 0,
    max_concurrency: int | None = DEFAULT_CONCURRENCY,
    timeout_s: float | None = None,
    progress: bool = True,
) -> list[Any]:
    """Run rollouts that belong to no group; results come back in the order given.

    A rollout returns a trajectory, or several. Where one failed its exception stands in its place, as long
    as `max_exceptions` allows; otherwise, and on cancellation, what was finished is carried as one group.
    """
    rollouts = list(trajectories)
    tally = Tally(len(rollouts), max_exceptions)
    limit = bounded(max_concurrency)
    results: list[Any] = [None] * len(rollouts)

    def note(index: int, result: Any) -> None:
        results[index] = result = _trajectories_or_error(index, result)
        if isinstance(result, BaseException):
            tally.fail(result)
        else:
            tally.see([result] if isinstance(result, Trajectory) else result)
        tally.advance()

    def finished() -> list[TrajectoryGroup]:
        members = [
            t
            for r in results
            for t in ([r] if isinstance(r, Trajectory) else r if isinstance(r, list) else [])
        ]
        return [TrajectoryGroup(members)] if members else []

    with progress_bar(pbar_desc if progress else None, tally.total) as bar:
        tally.bar = bar
        try:
            await settle(rollouts, limit=limit, timeout_s=timeout_s, on_each=note)
        except asyncio.CancelledError as error:
            raise GatherCancelled(groups=[], unfinished=finished()) from error
    tally.check(finished)
    return results


def _trajectories_or_error(index: int, result: Any) -> Any:
    if isinstance(result, Trajectory | BaseException):
        return result
    if isinstance(result, list | tuple) and all(isinstance(t, Trajectory) for t in result):
        return list(result)
    return TypeError(f"rollout {index} returned {type(result).__name__}; a rollout must return a Trajectory")
