"""Every trained policy against the one that training began from, on scenarios that nothing was trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from groundrule.algorithms.versus import Pair, mean_of, versus
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.data.score import Scores
from groundrule.recipes.rlhf.config import HUMAN, RlhfConfig
from groundrule.recipes.rlhf.reward import reward_folder
from groundrule.recipes.rlhf.sampling import Trained, answering
from groundrule.recipes.rlhf.scoring import scorer_named, scores_of
from groundrule.rewards.checks import check_answer

CHECKS = ("facts", "grounded", "copied", "words")
"""Counted without any judge, where scenarios have passages and facts."""


async def evaluate(
    config: RlhfConfig,
    scenarios: Sequence[Scenario],
    policies: Mapping[str, Trained],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Scores, win rates, drift and checks of every policy; all answers are kept in `evaluation/`."""
    folder = config.folder / "evaluation"
    start, _ = await _answers(config, scenarios, "start", None, folder)
    found: dict[str, Any] = {}
    for name, trained in policies.items():
        report(f"comparing {name} with the start on {len(scenarios)} held-out scenarios")
        answers, drift = await _answers(config, scenarios, name, trained, folder)
        found[name] = {
            "kl_answer": asdict(mean_of([fmean(row) for row in drift if row])),
            "judges": await _judged(config, start, answers),
            "checks": _checked(scenarios, start, answers),
        }
    return {"scenarios": len(scenarios), "attempts": config.evaluation.attempts, "policies": found}


def roles(config: RlhfConfig) -> dict[str, str]:
    """Who compares, and what part it had in the training."""
    named = dict.fromkeys(config.evaluation.judges, "no part in the training")
    if not config.rankings.file and config.rankings.judge != HUMAN:
        named[config.rankings.judge] = "ranked the answers"
    if config.ppo is not None:
        named[f"local/reward-model/{reward_folder(config)}"] = "PPO was trained on it"
    return named


async def _answers(
    config: RlhfConfig, scenarios: Sequence[Scenario], name: str, trained: Trained | None, folder: Path
) -> tuple[list[TrajectoryGroup], list[list[float]]]:
    """Sampled once; an evaluation that was interrupted, or is made anew by other judges, reads them again."""
    path = folder / f"{name}.jsonl"
    async with answering(config, "evaluation", trained) as policy:
        groups = (
            read_groups(path) if path.exists() else await policy.sample(scenarios, config.evaluation.attempts)
        )
        if not path.exists():
            write_groups(path, groups)
        return groups, await policy.kl(groups) if trained else []


async def _judged(
    config: RlhfConfig, start: Sequence[TrajectoryGroup], trained: Sequence[TrajectoryGroup]
) -> dict[str, Any]:
    """Every judge is shown the answers two by two, one of each policy, without being told whose they are."""
    found = {}
    for name, role in roles(config).items():
        params = config.reward_model.base_model if name.startswith("local/reward-model/") else None
        scorer = scorer_named(name, seed=config.run.seed, base_model=params)
        pairs = [_pairs(a, b) for a, b in zip(start, trained, strict=True)]
        scored = iter(await scores_of(scorer, [pair for row in pairs for pair in row]))
        given = [[next(scored) for _ in row] for row in pairs]
        result = versus([[both for s in row if (both := _both(s))] for row in given])
        unscored = sum(_both(scores) is None for row in given for scores in row)
        found[name] = {"role": role, "unscored": unscored, **(asdict(result) if result else {})}
    return found


def _pairs(start: TrajectoryGroup, trained: TrajectoryGroup) -> list[TrajectoryGroup]:
    """The i-th attempts of both as groups of two; the start's first."""
    return [
        start.with_members([a, b], exceptions=[])
        for a, b in zip(start.trajectories, trained.trajectories, strict=False)
    ]


def _both(scores: Scores) -> Pair | None:
    first, second = (score.value for score in scores)
    return None if first is None or second is None else (first, second)


def _checked(
    scenarios: Sequence[Scenario], start: Sequence[TrajectoryGroup], trained: Sequence[TrajectoryGroup]
) -> dict[str, Any]:
    """Each check over the scenarios that it applies to on both sides."""
    found = {}
    for name in CHECKS:
        sides = [
            [_mean(g, s, name) for g, s in zip(groups, scenarios, strict=True)] for groups in (start, trained)
        ]
        known = [(a, b) for a, b in zip(*sides, strict=True) if a is not None and b is not None]
        if known and any(scenario.context for scenario in scenarios):
            found[name] = {
                "scenarios": len(known),
                "first": fmean(a for a, _ in known),
                "second": fmean(b for _, b in known),
                "difference": asdict(mean_of([b - a for a, b in known])),
            }
    return found


def _mean(group: TrajectoryGroup, scenario: Scenario, name: str) -> float | None:
    texts = [last_answer(member.messages()) or "" for member in group]
    values = [getattr(check_answer(text, scenario), name) for text in texts]
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
