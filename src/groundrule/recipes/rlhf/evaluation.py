"""Every trained policy against the one that training began from, on scenarios that nothing was trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from groundrule.algorithms.versus import mean_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.scenario import Scenario
from groundrule.recipes.rlhf.comparison import Comparing, checked, judged
from groundrule.recipes.rlhf.config import HUMAN, RlhfConfig
from groundrule.recipes.rlhf.reward import reward_folder
from groundrule.recipes.rlhf.sampling import EVALUATION, answering, kept_answers
from groundrule.recipes.rlhf.scoring import scorer_named
from groundrule.recipes.trained_policy import Trained


async def evaluate(
    config: RlhfConfig,
    scenarios: Sequence[Scenario],
    policies: Mapping[str, Trained],
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Scores, win rates, drift and checks of every policy; all answers are kept in `evaluation/`."""
    folder = config.folder / EVALUATION
    start = await kept_answers(config, folder / "start.jsonl", scenarios)
    answers, found = dict[str, list[TrajectoryGroup]](), dict[str, Any]()
    for name, trained in policies.items():
        async with answering(config, EVALUATION, trained) as policy:
            answers[name] = await policy.sample_once(
                folder / f"{name}.jsonl", scenarios, config.evaluation.attempts
            )
            drift = await policy.kl(answers[name])
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
    found, ranker = judges_without_part(config), config.rankings.judge
    if not config.rankings.file and ranker != HUMAN:
        found[ranker] = Comparing(scorer_named(ranker, seed=config.run.seed), "ranked the answers")
    return found | reward_model_as_judge(config)


def judges_without_part(config: RlhfConfig) -> dict[str, Comparing]:
    """Those of the configuration, by name."""
    return {
        name: Comparing(scorer_named(name, seed=config.run.seed), "no part in the training")
        for name in config.evaluation.judges
    }


def reward_model_as_judge(config: RlhfConfig) -> dict[str, Comparing]:
    """The reward model by its name as a judge; none without PPO."""
    if config.ppo is None:
        return {}
    name = f"local/reward-model/{reward_folder(config)}"
    scorer = scorer_named(name, seed=config.run.seed, base_model=config.reward_model.base_model)
    return {name: Comparing(scorer, "PPO was trained on it")}
