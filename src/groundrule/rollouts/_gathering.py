"""The work behind `gather_trajectory_groups`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from groundrule._util.aio import settle
from groundrule.data.group import PendingGroup, RolloutException, TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.rollouts._tally import Tally

logger = logging.getLogger(__name__)

AfterEach = Callable[[TrajectoryGroup], Awaitable[TrajectoryGroup | list[TrajectoryGroup] | None]]


def bounded(max_concurrency: int | None) -> asyncio.Semaphore | None:
    if max_concurrency is None:
        return None
    if max_concurrency < 1:
        raise ConfigError(
            f"max_concurrency={max_concurrency} would run nothing; use at least 1, or None for no bound"
        )
    return asyncio.Semaphore(max_concurrency)


class Gathering:
    """One call of `gather_trajectory_groups`: which group is how far."""

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
        self._limit = bounded(max_concurrency)
        # One of its own: what runs after a group, mostly a judge, must not take a rollout's place.
        self._after_limit = bounded(max_concurrency)
        self._timeout_s = timeout_s
        self.tally = Tally(sum(_size(item) for item in items), max_exceptions, max_metrics=max_metrics)
        self._done: list[list[TrajectoryGroup] | None] = [None] * len(items)
        self._failed_after: dict[int, TrajectoryGroup] = {}
        self._partial: dict[int, Callable[[], TrajectoryGroup]] = {}

    async def run(self) -> list[TrajectoryGroup]:
        """All groups, in order; or `GatherError`."""
        try:
            outcomes = await settle([self._one(index, item) for index, item in enumerate(self._items)])
        finally:
            for item in self._items:
                _drop_unrun(item)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        self.tally.check(self._through_or_unscored)
        return self.through()

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
        [result] = await settle([_call(self._after_each, group)], limit=self._after_limit)
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

    def through(self) -> list[TrajectoryGroup]:
        """The groups that are finished and that nothing is wrong with."""
        return [group for done in self._done if done for group in done]

    def _through_or_unscored(self) -> list[TrajectoryGroup]:
        outcomes = enumerate(self._done)
        return [
            g
            for i, done in outcomes
            for g in ([self._failed_after[i]] if i in self._failed_after else done or [])
        ]

    def unfinished(self) -> list[TrajectoryGroup]:
        """The other groups that have anything finished."""
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
