"""What a jury said of the answers, step by step: the score that is trained on, each held-out juror, and the KL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import Any

from groundrule.data.trajectory import Trajectory
from groundrule.viewer.steps import Step

Values = Mapping[int, Sequence[Sequence[float]]]
"""By step: the scores of the answers of each group. Steps and groups without any are left out."""

_JURY = "/jury/"
_AGREEMENT = "judge/holdout/"
_KL = "ppo/kl_answer"
"""Other recorded KLs are nats a token, or not to the reference."""


@dataclass(frozen=True)
class Judged:
    """Of scored answers only, so that all judges are compared on what was trained on."""

    trained: Values
    """What the jurors that count said together."""
    held_out: Mapping[str, Values]
    """By juror; only those that gave scores."""
    kl: Mapping[int, float]
    """By step: KL to the reference in nats an answer, where it was measured."""


def judged(config: Mapping[str, Any], steps: Sequence[Step], metrics: Sequence[Mapping[str, Any]]) -> Judged:
    """Read it from the parts of a run; empty for a run without a jury."""
    names = dict.fromkeys([*_in_config(config), *_in_groups(steps)])
    said = {name: _values(steps, _part(name)) for name in names}
    kl = {int(line["step"]): line[_KL] for line in metrics if line.get(_KL) is not None}
    return Judged(_values(steps, _joined), {name: values for name, values in said.items() if values}, kl)


def step_means(values: Values) -> dict[int, float]:
    """The mean over all answers of each step."""
    return {step: fmean(chain.from_iterable(groups)) for step, groups in values.items()}


def _in_config(config: Mapping[str, Any]) -> Iterator[str]:
    judge = config.get("judge")
    jury = judge.get("jury") if isinstance(judge, Mapping) else None
    for juror in jury if isinstance(jury, list) else []:
        if isinstance(juror, Mapping) and juror.get("role") == "holdout":
            yield str(juror.get("name") or juror.get("model"))


def _in_groups(steps: Sequence[Step]) -> Iterator[str]:
    """A program's own jury stands in no configuration, but in what its groups say of held-out jurors."""
    for step in steps:
        for group in step.groups:
            yield from (n.removeprefix(_AGREEMENT) for n in group.metrics if n.startswith(_AGREEMENT))


def _values(steps: Sequence[Step], value_of: Callable[[Trajectory], float | None]) -> Values:
    found = {}
    for step in steps:
        groups = [[v for t in group.scored if (v := value_of(t)) is not None] for group in step.groups]
        if known := [values for values in groups if values]:
            found[step.number] = known
    return found


def _joined(member: Trajectory) -> float | None:
    """The jury's part of a reward that has others beside it, such as a verifier; else the reward."""
    under = _under(member)
    return None if under is None else float(member.metrics.get(under, member.reward))


def _part(name: str) -> Callable[[Trajectory], float | None]:
    def value_of(member: Trajectory) -> float | None:
        under = _under(member)
        value = None if under is None else member.metrics.get(f"{under}{_JURY}{name}")
        return None if value is None else float(value)

    return value_of


def _under(member: Trajectory) -> str | None:
    """What the metrics of a jury's scorer begin with: `ruler`, or `reward/ruler` beside a verifier."""
    return next((key.partition(_JURY)[0] for key in member.metrics if _JURY in key), None)
