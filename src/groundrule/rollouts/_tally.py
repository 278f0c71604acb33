"""What a gather counts while it runs: failures against their limit, and the numbers on the bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from groundrule._util.progress import Bar, SilentBar
from groundrule.data.group import RolloutException, TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, GatherError

CAUSES_SHOWN = 6


class Tally:
    """Counts over one gather of `total` rollouts."""

    def __init__(self, total: int, max_exceptions: int | float, *, max_metrics: int = 0) -> None:
        whole = max_exceptions == int(max_exceptions) if max_exceptions >= 0 else False
        if not whole and not 0 < max_exceptions < 1:
            raise ConfigError(
                f"max_exceptions={max_exceptions} is neither a count (0, 1, 2, ...) "
                "nor a fraction between 0 and 1"
            )
        self.total = total
        self.bar: Bar = SilentBar()
        self._max_exceptions = max_exceptions
        self._allowed = max_exceptions if whole else max_exceptions * total
        self._max_metrics = max_metrics
        self._exceptions: list[RolloutException] = []
        self._causes: Counter[str] = Counter()
        self._first: BaseException | None = None
        self._sums: dict[str, tuple[float, int]] = {}

    def fail(self, error: BaseException | RolloutException, *, during: str = "") -> None:
        """Count one failure."""
        if isinstance(error, BaseException) and self._first is None:
            self._first = error
        failure = error if isinstance(error, RolloutException) else RolloutException.of(error)
        self._exceptions.append(failure)
        self._causes[f"{during}: {failure}" if during else str(failure)] += 1

    def see(self, trajectories: Iterable[Trajectory]) -> None:
        """Take rewards and metrics into the averages on the bar; unscored members have no reward."""
        for trajectory in trajectories:
            numbers = {} if trajectory.unscored is not None else {"reward": trajectory.reward}
            for name, number in {**numbers, **trajectory.metrics}.items():
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + number, count + 1)

    def advance(self, count: int = 1) -> None:
        """Move the bar on by `count` rollouts."""
        self.bar.advance(count, self)

    def __str__(self) -> str:
        """What the bar shows beside the count."""
        failed = len(self._exceptions)
        names = [n for n in self._sums if n != "reward"][: self._max_metrics]
        names = ["reward", *names] if "reward" in self._sums else names
        means = [f"{name} {self._sums[name][0] / self._sums[name][1]:.3g}" for name in names]
        return ", ".join([f"{failed} exception{'' if failed == 1 else 's'}", *means])

    def check(self, groups: Callable[[], list[TrajectoryGroup]]) -> None:
        """Raise `GatherError`, with these groups, when more failed than allowed."""
        failed = len(self._exceptions)
        if failed <= self._allowed:
            return
        raise GatherError(
            f"{failed} failed in a gather of {self.total} rollouts, and "
            f"max_exceptions={self._max_exceptions} allows {int(self._allowed)}: {self._causes_text()}. "
            "This error's `groups` hold what was finished; "
            "a higher max_exceptions goes on without the failed ones.",
            groups=groups(),
            exceptions=list(self._exceptions),
        ) from self._first

    def _causes_text(self) -> str:
        shown = [
            f"{cause} ({count} times)" if count > 1 else cause for cause, count in self._causes.most_common()
        ]
        more = len(shown) - CAUSES_SHOWN
        return "; ".join(shown[:CAUSES_SHOWN]) + (f"; and {more} other causes" if more > 0 else "")
