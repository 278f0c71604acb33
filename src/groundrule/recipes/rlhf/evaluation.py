"""Every trained policy against the one that training began from, on scenarios that nothing was trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from groundrule.algorithms.versus import mean_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.recipes.rlhf.comparison import Comparing, checked, judged
from groundrule.recipes.rlhf.config import HUMAN, RlhfConfig
from groundrule.recipes.rlhf.reward import reward_folder
from groundrule.recipes.rlhf.sampling import Trained, answering
from groundrule.recipes.rlhf.scoring import scorer_named


async def evaluate(
    config: RlhfConfig,
    scenarios: Sequence[Scenario],
    policies: Mapping[str, Trained],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Scores, win rates, drift and checks of every policy; all answers are kept in `evaluation/`."""
    folder = config.folder / "evaluation"
    start, _ = await _answers(config, scenarios, "start", None, folder)
    answers, found = dict[str, list[TrajectoryGroup]](), dict[str, Any]()
    for name, trained in policies.items():
        answers[name], drift = await _answers(config, scenarios, name, trained, folder)
        found[name] = {
            "kl_answer": asdict(mean_of([fmean(row) for row in drift if row])),
            "checks": checked(scenarios, start, answers[name]),
        }
    report(f"comparing {' and '.join(policies)} with the start on {len(scenarios)} held-out scenarios")
    for name, rows in (await judged(_judges(config), start, answers)).items():
        found[name]["judges"] = rows
    return {"scenarios": len(scenarios), "attempts": config.evaluation.attempts, "policies": found}


def _judges(config: RlhfConfig) -> dict[str, Comparing]:
    """By name."""
    seed, base = config.run.seed, config.reward_model.base_model
    return {
        name: Comparing(
            scorer_named(
                name, seed=seed, base_model=base if name.startswith("local/reward-model/") else None
            ),
            role,
        )
        for name, role in _roles(config).items()
    }


def _roles(config: RlhfConfig) -> dict[str, str]:
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
