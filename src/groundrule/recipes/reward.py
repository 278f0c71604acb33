"""The reward that a configuration names: a judge, a verifier, or both as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.judging import judge_of
from groundrule.rewards.checklist import Checklist, extract_checklist
from groundrule.rewards.compose import Composite, Part
from groundrule.rewards.functions import BUILT_IN, scorer_of
from groundrule.rewards.jury import Jury
from groundrule.rewards.ruler import Ruler

JUDGE, VERIFIER = "ruler", "verifier"
"""Names of the two parts: on a trajectory the metrics `reward/ruler` and `reward/verifier`."""

_NEEDS = {"math": "reference", "exact": "reference", "code": "metadata.tests"}


def reward_of(config: TrainingConfig, verifier: Scorer | None) -> Scorer:
    """The scorer of a run, with what `verifier_of` gave. One that cannot be had is a `ConfigError` now, not after an
    hour."""
    if verifier is None:
        return judge_of(config)
    if config.judge.combine == "verifier":
        return Composite([Part(VERIFIER, verifier)], how="sum")
    is_first = config.judge.combine in ("lexicographic", "gated")
    parts = [Part(VERIFIER, verifier, is_first=is_first), Part(JUDGE, judge_of(config))]
    return Composite(parts, how=config.judge.combine)


def verifier_of(config: TrainingConfig) -> Scorer | None:
    """The verifier alone; None where the configuration has none."""
    name = config.judge.verifier
    if name is None:
        return None
    verifier = scorer_of(name)
    if isinstance(verifier, Ruler):
        raise ConfigError(
            f"judge.verifier is {name!r}, which would be a judge; verifiers are {', '.join(sorted(BUILT_IN))}, or "
            "my_rewards.py:function; a judge's name goes into judge.model"
        )
    return verifier


def asks_a_judge(config: TrainingConfig) -> bool:
    """Whether anything of the reward reads the system prompt."""
    return config.judge.verifier is None or config.judge.combine != "verifier"


def check_references(config: TrainingConfig, scenarios: Sequence[Scenario]) -> None:
    """A scenario without anything to verify against would only ever be unscored."""
    needed = _NEEDS.get(config.judge.verifier or "")
    if needed is None:
        return
    missing = [s.id for s in scenarios if not (s.metadata.get("tests") if "tests" in needed else s.reference)]
    if missing:
        raise ConfigError(
            f"scenario {missing[0]!r} (and {len(missing) - 1} more) has no `{needed}`, which judge.verifier = "
            f"{config.judge.verifier!r} compares answers with; fill the column"
        )


def aligned(scorer: Scorer, groups: Iterable[TrajectoryGroup]) -> Scorer:
    """The scorer after these scored groups: a jury learns from them how wide each juror's scale is."""
    if isinstance(scorer, Jury):
        return scorer.aligned_on(groups)
    if isinstance(scorer, Composite):
        juries = [part.scorer for part in scorer.parts if isinstance(part.scorer, Jury)]
        learned = {id(jury): jury.aligned_on(groups, under=f"reward/{JUDGE}") for jury in juries}
        return replace(
            scorer, parts=[replace(p, scorer=learned.get(id(p.scorer), p.scorer)) for p in scorer.parts]
        )
    return scorer


async def with_checklist(
    scorer: Scorer, specs: Set[str], folder: Path, report: Callable[[str], None]
) -> Scorer:
    """The scorer with the checklist of the run, where one is to be made from the only system prompt there is.

    It is made once, shown, and kept as `checklist.toml` in the run folder, so that a resumed run judges by
    the same list. With several system prompts each gets its own list while it is judged.
    """
    makers = [ruler for ruler in rulers(scorer) if ruler.checklist == "auto"]
    if not makers or len(specs) != 1:
        return scorer
    path = folder / "checklist.toml"
    if not path.exists():
        maker = makers[0]
        checklist = await extract_checklist(
            min(specs),
            maker.judge_model,
            maker.extra_litellm_params,
            client=maker.client,
            cache=maker.cache,
            fallback=maker.fallback,
        )
        checklist.save(path)
        report(f"the system prompt as a checklist ({path}; edit a copy and name it in judge.checklist):")
        report(str(checklist))
    return _with_list(scorer, Checklist.load(path))


def rulers(scorer: Scorer) -> Iterator[Ruler]:
    """Every judge inside a scorer."""
    if isinstance(scorer, Ruler):
        yield scorer
    elif isinstance(scorer, Jury):
        for juror in scorer.jurors:
            yield from rulers(juror.scorer)
    elif isinstance(scorer, Composite):
        for part in scorer.parts:
            yield from rulers(part.scorer)


def _with_list(scorer: Scorer, checklist: Checklist) -> Scorer:
    """The scorer with this checklist for every judge that was to make one."""
    if isinstance(scorer, Ruler):
        return replace(scorer, checklist=checklist) if scorer.checklist == "auto" else scorer
    if isinstance(scorer, Jury):
        return replace(
            scorer, jurors=[replace(j, scorer=_with_list(j.scorer, checklist)) for j in scorer.jurors]
        )
    if isinstance(scorer, Composite):
        return replace(
            scorer, parts=[replace(p, scorer=_with_list(p.scorer, checklist)) for p in scorer.parts]
        )
    return scorer
