"""Gather: run many rollouts at once, bounded and in order, and keep whatever was finished.

One failure never touches its neighbours. It is kept in its group's `exceptions` and counts against
`max_exceptions`; when more fail than that, everything else finishes first, and then `GatherError`
is raised with the finished groups in `groups`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from groundrule._util.aio import settle
from groundrule._util.progress import progress_bar
from groundrule.data.group import PendingGroup, RolloutException, TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError
from groundrule.rollouts._tally import Tally

logger = logging.getLogger(__name__)

DEFAULT_CONCURRENCY = 64
"""Rollouts at once. Below the 100 connections that an OpenAI client opens by default."""

AfterEach = Callable[[TrajectoryGroup], Awaitable[TrajectoryGroup | list[TrajectoryGroup] | None]]


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
    - `max_concurrency`: rollouts at once, over all groups; None for no bound.
    - `timeout_s`: for one rollout, counted from its start.
    - `max_metrics`: how many of the trajectories' metrics the bar shows beside the reward.
      `pbar_total_completion_tokens` is accepted and has no effect.
    - Cancelled, it cancels and awaits every rollout and raises `GatherCancelled` with what was finished.
    """
    items = list(groups)
    gather = _Gather(items, max_exceptions, max_metrics or 0, after_each, max_concurrency, timeout_s)
    with progress_bar(pbar_desc if progress else None, gather.tally.total) as bar:
        gather.tally.bar = bar
        return await gather.run()


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
    limit = _semaphore(max_concurrency)
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


def _semaphore(max_concurrency: int | None) -> asyncio.Semaphore | None:
    if max_concurrency is None:
        return None
    if max_concurrency < 1:
        raise ConfigError(
            f"max_concurrency={max_concurrency} would run nothing; use at least 1, or None for no bound"
        )
    return asyncio.Semaphore(max_concurrency)


class _Gather:
    """One call of `gather_trajectory_groups`."""

    def __init__(
        self,
        items: list[Any],
        max_exceptions: int | float,
        max_metrics: int,
        after_each: AfterEach | None,
        max_concurrency: int | None,
        timeout_s: float | None,
    ) -> None:
        self._items = items
        self._after_each = after_each
        self._limit = _semaphore(max_concurrency)
        self._timeout_s = timeout_s
        self.tally = Tally(sum(_size(item) for item in items), max_exceptions, max_metrics=max_metrics)
        self._done: list[list[TrajectoryGroup] | None] = [None] * len(items)
        self._failed_after: dict[int, TrajectoryGroup] = {}
        self._partial: dict[int, Callable[[], TrajectoryGroup]] = {}

    async def run(self) -> list[TrajectoryGroup]:
        try:
            outcomes = await settle([self._one(index, item) for index, item in enumerate(self._items)])
        except asyncio.CancelledError as error:
            raise GatherCancelled(groups=self._through(), unfinished=self._unfinished()) from error
        finally:
            for item in self._items:
                _drop_unrun(item)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        self.tally.check(self._through_or_unscored)
        return self._through()

    async def _one(self, index: int, item: Any) -> None:
        """Run one group to its end and note the outcome."""
        group = await self._generated(index, item)
        if group is not None and not group.trajectories:
            causes = "; ".join(dict.fromkeys(str(e) for e in group.exceptions)) or "it had none"
            logger.warning("group %d is dropped: none of its rollouts gave a trajectory (%s)", index, causes)
            group = None
        self._done[index] = [] if group is None else await self._followed_up(index, group)
        self.tally.see(t for through in self._done[index] or [] for t in through)
        self.tally.advance(0)

    async def _generated(self, index: int, item: Any) -> TrajectoryGroup | None:
        """The group with all its rollouts done; None where there is no group at all."""
        if isinstance(item, PendingGroup):
            return await self._rolled_out(index, item)
        if isinstance(item, TrajectoryGroup):
            result: Any = item
        else:
            [result] = await settle([item], limit=self._limit, timeout_s=self._timeout_s)
        if not isinstance(result, TrajectoryGroup):
            if not isinstance(result, BaseException):
                result = TypeError(
                    f"group {index} is a {type(result).__name__}; it must be a TrajectoryGroup"
                )
            self.tally.fail(result)
            self.tally.advance()
            logger.warning("group %d is dropped: %s", index, RolloutException.of(result))
            return None
        self._partial[index] = lambda: result
        for failure in result.exceptions:
            self.tally.fail(failure)
        self.tally.advance(_size(item))
        return result

    async def _rolled_out(self, index: int, pending: PendingGroup) -> TrajectoryGroup:
        results: list[Any] = [asyncio.CancelledError("cancelled before its end") for _ in pending.rollouts]
        self._partial[index] = lambda: pending.finished(results)

        def note(member: int, result: Any) -> None:
            results[member] = result = pending.member(member, result)
            if isinstance(result, BaseException):
                self.tally.fail(result)
            self.tally.advance()

        await settle(pending.rollouts, limit=self._limit, timeout_s=self._timeout_s, on_each=note)
        return pending.finished(results)

    async def _followed_up(self, index: int, group: TrajectoryGroup) -> list[TrajectoryGroup]:
        if self._after_each is None:
            return [group]
        [result] = await settle([_call(self._after_each, group)])
        if result is None:
            return []
        returned: list[Any] = result if isinstance(result, list) else [result]
        wrong = next((r for r in returned if not isinstance(r, TrajectoryGroup)), None)
        if wrong is None:
            return returned
        if not isinstance(wrong, BaseException):
            wrong = TypeError(
                f"after_each returned {type(wrong).__name__}; it must return a group, several, or None"
            )
        self.tally.fail(wrong, during="after_each")
        logger.warning("group %d is left out: after_each failed: %s", index, RolloutException.of(wrong))
        self._failed_after[index] = _unscored(group, wrong)
        return []

    def _through(self) -> list[TrajectoryGroup]:
        return [group for done in self._done if done for group in done]

    def _through_or_unscored(self) -> list[TrajectoryGroup]:
        outcomes = enumerate(self._done)
        return [
            g
            for i, done in outcomes
            for g in ([self._failed_after[i]] if i in self._failed_after else done or [])
        ]

    def _unfinished(self) -> list[TrajectoryGroup]:
        groups = dict(self._failed_after)
        groups |= {i: made() for i, made in self._partial.items() if self._done[i] is None}
        return [groups[i] for i in sorted(groups) if groups[i].trajectories]


async def _call(after_each: AfterEach, group: TrajectoryGroup) -> Any:
    result: Any = after_each(group)
    return await result if inspect.isawaitable(result) else result


def _unscored(group: TrajectoryGroup, error: BaseException) -> TrajectoryGroup:
    """The group as it was before `after_each` failed, marked so that no reward in it is ever used."""
    failure = RolloutException.of(error)
    reason = f"after_each failed: {failure}"
    members = [t.model_copy(update={"unscored": t.unscored or reason}) for t in group]
    return group.with_members(members, exceptions=[*group.exceptions, failure])


def _size(item: Any) -> int:
    """How many rollouts the gather sees in this group."""
    if isinstance(item, PendingGroup):
        return len(item.rollouts)
    return len(item.trajectories) + len(item.exceptions) if isinstance(item, TrajectoryGroup) else 1


def _drop_unrun(item: Any) -> None:
    """A coroutine that never ran would warn when it is collected; closing a finished one does nothing."""
    if isinstance(item, PendingGroup) or inspect.iscoroutine(item):
        item.close()
