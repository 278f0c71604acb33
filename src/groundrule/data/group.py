"""TrajectoryGroup: several attempts at the same scenario; the unit that is judged and trained on."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Generator, Iterable, Iterator
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from groundrule._util.aio import settle
from groundrule.data.trajectory import Trajectory


class RolloutException(BaseModel):
    """A failed attempt as data: what was raised, and where."""

    type: str
    message: str
    traceback: str = ""

    @classmethod
    def of(cls, error: BaseException) -> RolloutException:
        """Keeps the traceback as text, so it survives files and processes."""
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return cls(type=type(error).__name__, message=str(error), traceback=text)

    def __str__(self) -> str:
        return f"{self.type}: {self.message}"


class PendingGroup(Awaitable["TrajectoryGroup"]):
    """A group whose rollouts have not run yet; `await` it, or give it to a gather."""

    def __init__(
        self, kind: type[TrajectoryGroup], rollouts: list[Awaitable[Any]], more: dict[str, Any]
    ) -> None:
        self._kind = kind
        self.rollouts = rollouts
        self._more = more
        self._num_trajectories = len(rollouts)

    def __await__(self) -> Generator[Any, None, TrajectoryGroup]:
        return self.run().__await__()

    async def run(
        self, *, limit: asyncio.Semaphore | None = None, timeout_s: float | None = None
    ) -> TrajectoryGroup:
        """Run all rollouts. Members keep the order given; failures become `exceptions`."""
        return self.finished(await settle(self.rollouts, limit=limit, timeout_s=timeout_s))

    def finished(self, results: list[Any]) -> TrajectoryGroup:
        """The group made of these results, one per rollout."""
        return self._kind([self.member(i, r) for i, r in enumerate(results)], **self._more)

    @staticmethod
    def member(index: int, result: Any) -> Trajectory | BaseException:
        """What becomes of one rollout's result: anything but a trajectory is a failure."""
        if isinstance(result, Trajectory | BaseException):
            return result
        kind = type(result).__name__
        return TypeError(f"rollout {index} returned {kind}; a rollout must return a Trajectory")

    def close(self) -> None:
        """Drop rollouts that will not be run."""
        for rollout in self.rollouts:
            if inspect.iscoroutine(rollout):
                rollout.close()


class TrajectoryGroup(BaseModel):
    """Attempts at one scenario, in the order in which they were given.

    Built from trajectories (and exceptions, which become `exceptions`) it is there at once; built
    from awaitables it is a `PendingGroup` to be awaited.
    """

    model_config = ConfigDict(extra="allow")

    trajectories: list[SerializeAsAny[Trajectory]] = Field(default_factory=list)
    exceptions: list[RolloutException] = Field(default_factory=list)
    scenario_id: str | None = None
    labels: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    metrics: dict[str, float | int | bool] = Field(default_factory=dict)
    logs: list[str] = Field(default_factory=list)

    def __new__(cls, trajectories: Iterable[Any] = (), **more: Any) -> Self:
        members, pending = _split(trajectories)
        if pending:
            return cast(Self, PendingGroup(cls, members, more))
        self = super().__new__(cls)
        object.__setattr__(self, "_given", members)
        return self

    def __init__(
        self,
        trajectories: Iterable[Any] = (),
        *,
        exceptions: Iterable[BaseException | RolloutException] = (),
        metadata: dict[str, Any] | None = None,
        metrics: dict[str, float | int | bool] | None = None,
        logs: list[str] | None = None,
        **more: Any,
    ) -> None:
        members = self.__dict__.pop("_given", None)
        members = list(trajectories) if members is None else members
        failed = [*exceptions, *(m for m in members if isinstance(m, BaseException))]
        super().__init__(
            trajectories=[m for m in members if not isinstance(m, BaseException)],
            exceptions=[RolloutException.of(e) if isinstance(e, BaseException) else e for e in failed],
            metadata=metadata or {},
            metrics=metrics or {},
            logs=logs or [],
            **more,
        )

    def __iter__(self) -> Iterator[Trajectory]:  # type: ignore[override]
        return iter(self.trajectories)

    def __len__(self) -> int:
        return len(self.trajectories)

    @property
    def scored(self) -> list[Trajectory]:
        """The members whose reward means something."""
        return [t for t in self.trajectories if t.unscored is None]

    @property
    def rewards(self) -> list[float | None]:
        """Each member's reward in group order; None where it is unscored."""
        return [None if t.unscored is not None else t.reward for t in self.trajectories]

    def with_members(self, trajectories: Iterable[Trajectory], **changes: Any) -> Self:
        """A new group with other members; everything else, unknown fields too, is kept."""
        update = {"trajectories": list(trajectories), **changes}
        copy = self.model_copy(update=update)
        copy.metadata, copy.metrics, copy.logs = (
            changes.get("metadata", dict(self.metadata)),
            changes.get("metrics", dict(self.metrics)),
            changes.get("logs", list(self.logs)),
        )
        return copy


def _split(trajectories: Iterable[Any]) -> tuple[list[Any], bool]:
    members = list(trajectories)
    awaitable = [inspect.isawaitable(m) for m in members]
    if any(awaitable) and not all(awaitable):
        raise TypeError(
            f"a group got {sum(awaitable)} awaitables among {len(members)} members; "
            "give it either finished trajectories or awaitables"
        )
    return members, bool(members) and all(awaitable)
