"""A plain function as a scorer, and scorers by name: a built-in one, one of the user's own, or a judge."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError
from groundrule.rewards.situation import case_of

BUILT_IN = {
    "code": "groundrule.rewards.verifiers.code:code_scorer",
    "exact": "groundrule.rewards.verifiers.exact:exact_scorer",
    "json_schema": "groundrule.rewards.verifiers.json_schema:json_schema_scorer",
    "math": "groundrule.rewards.verifiers.math:math_scorer",
    "rag": "groundrule.rewards.handwritten.rag:RagReward",
    "regex": "groundrule.rewards.verifiers.exact:regex_scorer",
}
"""Name -> "module:factory" of scorers that need no settings."""

_TEXTS = ("answer", "response", "question", "context", "passage", "reference")


@dataclass(frozen=True)
class FunctionScorer:
    """Scores each member by a function, which may be async.

    Its parameters say what it gets: `trajectory` (or a single parameter of another name), `answer` or `response`,
    `question`, `context` or `passage`, and `reference` from the group's metadata. It returns a number, a `Score`,
    or None for no score. An exception is that member's reason, not the end of the group.
    """

    function: Callable[..., Any]
    name: str = "function"

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member."""
        return Scores([await self._one(member, group) for member in group])

    async def _one(self, member: Trajectory, group: TrajectoryGroup) -> Score:
        given = self._arguments(member, group)
        if isinstance(given, str):
            return Score.none(given)
        try:
            result = self.function(**given)
            found = await result if inspect.isawaitable(result) else result
        except Exception as error:
            return Score.none(f"{self.name} failed: {type(error).__name__}: {error}")
        if isinstance(found, Score):
            return found
        if found is None:
            return Score.none(f"{self.name} gave no score")
        try:
            return Score(value=float(found), cost=0.0)
        except (TypeError, ValueError):
            return Score.none(f"{self.name} returned {found!r}, which is no finite number")

    def _arguments(self, member: Trajectory, group: TrajectoryGroup) -> dict[str, Any] | str:
        names = list(inspect.signature(self.function).parameters)
        if not set(names) & set(_TEXTS):
            return {names[0]: member} if names else f"{self.name} takes no parameter to score"
        case = case_of(member, group)
        if isinstance(case, str):
            return case
        situation, answer = case
        known = {
            "answer": answer,
            "response": answer,
            "question": situation.question or "",
            "context": situation.passage or "",
            "passage": situation.passage or "",
            "reference": group.metadata.get("reference"),
            "trajectory": member,
        }
        unknown = [name for name in names if name not in known and self._is_needed(name)]
        if unknown:
            return f"{self.name} wants {unknown[0]!r}; a reward function can have {', '.join(known)}"
        return {name: known[name] for name in names if name in known}

    def _is_needed(self, name: str) -> bool:
        return inspect.signature(self.function).parameters[name].default is inspect.Parameter.empty


def scorer_of(name: str, settings: Mapping[str, Any] | None = None) -> Scorer:
    """A scorer by name; `settings` are for a built-in one.

    A built-in one (a name of `BUILT_IN`), a function or scorer of the user's own (`my_rewards.py:faithful`,
    `package.module:name`), or a judge under any name that `Ruler` takes. Raises `ConfigError` for one that cannot
    be had.
    """
    from groundrule.rewards.ruler import Ruler

    target = BUILT_IN.get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        try:
            made: Scorer = getattr(importlib.import_module(module), attribute)(**dict(settings or {}))
        except TypeError as error:
            raise ConfigError(f"{name} cannot be made with {dict(settings or {})}: {error}") from error
        return made
    if settings:
        raise ConfigError(
            f"{name} takes no settings, but got {', '.join(settings)}; those are for built-in ones"
        )
    place, _, attribute = name.rpartition(":")
    if place and attribute.isidentifier() and "/" not in name.removeprefix("/").partition(".py")[2]:
        if place.endswith(".py"):
            return _as_scorer(_from_file(Path(place), attribute), name)
        if place.replace(".", "").isidentifier():
            return _as_scorer(_attribute(_imported(place), attribute, name), name)
    return Ruler(name)


def weights_of(scorer: Scorer) -> dict[str, float] | None:
    """What each part of a hand-written reward counts; None for scorers without weights of that kind."""
    weights = getattr(scorer, "weights", None)
    if weights is None or not is_dataclass(weights) or isinstance(weights, type):
        return None
    return {name: float(value) for name, value in asdict(weights).items()}


def _from_file(path: Path, attribute: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"groundrule_user_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise ConfigError(f"{path} cannot be read: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return _attribute(module, attribute, str(path))


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"{module} cannot be imported: {error}") from error


def _attribute(module: Any, attribute: str, place: str) -> Any:
    if not hasattr(module, attribute):
        raise ConfigError(f"{place} has no {attribute!r}")
    return getattr(module, attribute)


def _as_scorer(found: Any, name: str) -> Scorer:
    if inspect.isclass(found):
        found = found()
    if hasattr(found, "score"):
        scorer: Scorer = found
        return scorer
    if callable(found):
        return FunctionScorer(found, name)
    raise ConfigError(f"{name} is {type(found).__name__}, neither a function nor a scorer")
