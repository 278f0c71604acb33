"""Did the agent's tools leave the world as it should be? What the agent says about it does not count.

    value = state * (1 - waste / (2 * calls)), or 0 after a forbidden call or a change of what is protected

`state` is 1 where the final state is the expected one. Otherwise it is 0 without `initial`; with it, partial credit:
(changes made right - places harmed) / changes needed, never below 0. Places are the leaves of the nested state; a
change is needed where `expected` differs from `initial`, and harmed is every other place that differs from
`expected`. So doing nothing earns nothing, however large the state is.

`waste` counts redundant calls (the same name and arguments again, with no call in between that may have changed the
state) and those above `most_calls`, whichever are more. It never costs more than half.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.verifiers.scorer import NoAnswer, VerifierScorer, group_reference

State = Mapping[str, Any]
ForbiddenCall = str | tuple[str, Mapping[str, Any]]

_MISSING = object()
_MOST_SHOWN = 8

Path = tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """One tool call. Arguments that are no JSON object stay what they are."""

    name: str
    arguments: Any

    @property
    def key(self) -> str:
        """Equal for calls that ask for the same."""
        return json.dumps([self.name, self.arguments], sort_keys=True, default=str)


def verify_final_state(
    trajectory: Trajectory,
    expected: State,
    *,
    state: State | Callable[[Trajectory], State] | None = None,
    initial: State | None = None,
    forbidden_calls: Collection[ForbiddenCall] = (),
    allowed_calls: Collection[str] | None = None,
    changing_calls: Collection[str] | None = None,
    most_calls: int | None = None,
    ignore: Collection[str] = (),
    protected: Collection[str] = (),
    tolerance: float = 1e-9,
) -> Score:
    """How well the state that the tools left agrees with `expected`, in 0..1; the formula stands above.

    `state` is the final state or a function that reads it; None: `trajectory.metadata["final_state"]`, as JSON text
    because metadata holds scalars. Forbidden is a call by its name, or by its name and some of its arguments, and,
    with `allowed_calls`, every call of another name. `changing_calls` are the names of the tools that change the
    state; None: any other call may have changed it. `ignore` and `protected` are paths such as `orders.*.updated_at`
    with `*` for any part; a difference under a protected path is a veto. Numbers may differ by `tolerance`,
    relatively or absolutely; True is not 1, and null is not missing. Without a final state there is no score.
    """
    try:
        final = _final_state(trajectory, state)
    except NoAnswer as missing:
        return Score.none(str(missing))
    calls = calls_of(trajectory)
    differing = _differences(expected, final, ignore, tolerance)
    forbidden = [call for call in calls if _is_forbidden(call, forbidden_calls, allowed_calls)]
    touched = [path for path in differing if any(_under(path, pattern) for pattern in protected)]
    redundant = _redundant(calls, changing_calls)
    waste = max(redundant, len(calls) - most_calls if most_calls is not None else 0)
    share = _share(expected, initial, differing, ignore, tolerance)
    value = 0.0 if forbidden or touched else share * (1 - waste / (2 * max(len(calls), 1)))
    parts = {
        "state": share,
        "differences": float(len(differing)),
        "calls": float(len(calls)),
        "redundant": float(redundant),
        "forbidden": float(len(forbidden) + len(touched)),
    }
    said = [
        f"forbidden call {call.name}({json.dumps(call.arguments, default=str)[:80]})" for call in forbidden
    ]
    said += [f"protected {_dotted(path)} was changed" for path in touched]
    said += _shown(differing)
    if waste:
        said.append(f"{waste} of {len(calls)} calls wasted")
    return Score(value=value, explanation="; ".join(said) or "the expected state", parts=parts)


def _final_state(trajectory: Trajectory, state: State | Callable[[Trajectory], State] | None) -> State:
    found: Any = state(trajectory) if callable(state) else state
    if state is None:
        found = trajectory.metadata.get("final_state")
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError as error:
                raise NoAnswer(f'metadata["final_state"] is not JSON: {error}') from error
    if not isinstance(found, Mapping):
        raise NoAnswer('there is no final state; put it into metadata["final_state"] as JSON, or pass state=')
    return found


def calls_of(trajectory: Trajectory) -> list[Call]:
    """All tool calls in order, those of further histories last."""
    attempt = attempt_of(trajectory.messages_and_choices, histories=trajectory.additional_histories)
    turns = [turn for conversation in (attempt.turns, *attempt.histories) for turn in conversation]
    return [Call(call["name"], call["arguments"]) for turn in turns for call in turn["calls"]]


def _is_forbidden(call: Call, forbidden: Collection[ForbiddenCall], allowed: Collection[str] | None) -> bool:
    if allowed is not None and call.name not in allowed:
        return True
    for rule in forbidden:
        name, some = (rule, {}) if isinstance(rule, str) else rule
        given = call.arguments if isinstance(call.arguments, Mapping) else {}
        if call.name == name and all(given.get(key, _MISSING) == value for key, value in some.items()):
            return True
    return False


def _redundant(calls: list[Call], changing: Collection[str] | None) -> int:
    """Calls that ask again what was asked since the state may last have changed."""
    since: set[str] = set()
    count = 0
    for call in calls:
        count += call.key in since
        if (changing is None and call.key not in since) or (changing is not None and call.name in changing):
            since.clear()
        since.add(call.key)
    return count


def _differences(
    wanted: Any, found: Any, ignore: Collection[str], tolerance: float
) -> dict[Path, tuple[Any, Any]]:
    """Places where two states differ: path -> (wanted, found)."""
    return {
        path: pair
        for path, pair in _walk(wanted, found, (), tolerance)
        if not any(_under(path, pattern) for pattern in ignore)
    }


def _walk(wanted: Any, found: Any, path: Path, tolerance: float) -> Iterator[tuple[Path, tuple[Any, Any]]]:
    left, right = _children(wanted), _children(found)
    if left is None or right is None or type(left) is not type(right):
        if not _equal(wanted, found, tolerance):
            yield path, (wanted, found)
        return
    if not left and not right:
        return
    for key in dict.fromkeys([*left, *right]):
        yield from _walk(left.get(key, _MISSING), right.get(key, _MISSING), (*path, str(key)), tolerance)


class _List(dict[str, Any]):
    """The elements of a list by number; not to be taken for an object with such keys."""


def _children(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return _List((str(number), item) for number, item in enumerate(value))
    return None


def _equal(wanted: Any, found: Any, tolerance: float) -> bool:
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, int | float) and isinstance(found, int | float):
        return wanted == found or math.isclose(wanted, found, rel_tol=tolerance, abs_tol=tolerance)
    return type(wanted) is type(found) and bool(wanted == found)


def _share(
    expected: State,
    initial: State | None,
    differing: Mapping[Path, Any],
    ignore: Collection[str],
    tolerance: float,
) -> float:
    if not differing:
        return 1.0
    if initial is None:
        return 0.0
    needed = _differences(expected, initial, ignore, tolerance)
    if not needed:
        return 0.0
    undone = [path for path in needed if any(_overlap(path, other) for other in differing)]
    harmed = [path for path in differing if not any(_overlap(path, other) for other in needed)]
    return max(0.0, (len(needed) - len(undone) - len(harmed)) / len(needed))


def _overlap(path: Path, other: Path) -> bool:
    """One is the other, or lies below it."""
    short = min(len(path), len(other))
    return path[:short] == other[:short]


def _under(path: Path, pattern: str) -> bool:
    parts = pattern.split(".")
    return len(path) >= len(parts) and all(
        fnmatchcase(step, part) for step, part in zip(path, parts, strict=False)
    )


def _dotted(path: Path) -> str:
    return ".".join(path) or "the state"


def _shown(differing: Mapping[Path, tuple[Any, Any]]) -> list[str]:
    lines = [
        f"{_dotted(path)}: expected {_said(wanted)}, found {_said(found)}"
        for path, (wanted, found) in list(differing.items())[:_MOST_SHOWN]
    ]
    rest = len(differing) - len(lines)
    return [*lines, f"and {rest} more differences"] if rest > 0 else lines


def _said(value: Any) -> str:
    return "nothing" if value is _MISSING else json.dumps(value, default=str, ensure_ascii=False)[:60]


def final_state_scorer(
    *,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
    **options: Any,
) -> VerifierScorer:
    """`verify_final_state` for groups; the reference is the expected state, `options` are those of the function."""
    return VerifierScorer(
        partial(verify_final_state, **options), reference=reference, read=lambda trajectory: trajectory
    )
