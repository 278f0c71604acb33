"""The revised model and what learned from the preferences, against the model that the chain began with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.recipes.constitution.config import ConstitutionalConfig
from groundrule.recipes.constitution.preferences import judge_of
from groundrule.recipes.rlhf.comparison import Comparing, checked, judged
from groundrule.recipes.rlhf.config import RlhfConfig
from groundrule.recipes.rlhf.policy import trained_dpo, trained_ppo
from groundrule.recipes.rlhf.reward import reward_folder
from groundrule.recipes.rlhf.sampling import Trained, answering
from groundrule.recipes.rlhf.scoring import scorer_named

REVISED = "revised"
"""The model after the first stage."""


async def evaluate(
    config: ConstitutionalConfig, scenarios: Sequence[Scenario], report: Callable[[str], None]
) -> dict[str, Any]:
    """Scores, win rates and checks of every policy; all answers are kept in `evaluation/`."""
    begun = await _answers(config, scenarios, "start", config.start(), None)
    answers = {
        name: await _answers(config, scenarios, name, config.rlhf(), trained)
        for name, trained in _policies(config).items()
    }
    report(f"comparing {' and '.join(answers)} with the start on {len(scenarios)} held-out scenarios")
    judges = await judged(dict(_judges(config)), begun, answers)
    found = {
        name: {"judges": judges[name], "checks": checked(scenarios, begun, groups)}
        for name, groups in answers.items()
    }
    return {"scenarios": len(scenarios), "attempts": config.evaluation.attempts, "policies": found}


def _policies(config: ConstitutionalConfig) -> dict[str, Trained | None]:
    """What is compared with the start. None: the revised model without an adapter."""
    rlhf, policies = config.rlhf(), dict[str, Trained | None]({REVISED: None})
    if rlhf.ppo is not None:
        policies["ppo"] = trained_ppo(rlhf, rlhf.ppo)
    if rlhf.dpo is not None:
        policies["dpo"] = trained_dpo(rlhf, rlhf.dpo)
    return policies


def _judges(config: ConstitutionalConfig) -> Iterator[tuple[str, Comparing]]:
    """By name."""
    for name in config.evaluation.judges:
        yield name, Comparing(scorer_named(name, seed=config.run.seed), "no part in the training")
    yield f"constitution/{config.constitution.file}", Comparing(judge_of(config), "made the preferences")
    if config.ppo is not None:
        name = f"local/reward-model/{reward_folder(config.rlhf())}"
        base = config.reward_model.base_model
        yield (
            name,
            Comparing(scorer_named(name, seed=config.run.seed, base_model=base), "PPO was trained on it"),
        )


async def _answers(
    config: ConstitutionalConfig,
    scenarios: Sequence[Scenario],
    name: str,
    policy: RlhfConfig,
    trained: Trained | None,
) -> list[TrajectoryGroup]:
    """Sampled once; an evaluation that was interrupted reads them again."""
    path = config.folder / "evaluation" / f"{name}.jsonl"
    if not path.exists():
        async with answering(policy, "evaluation", trained) as asked:
            write_groups(path, await asked.sample(scenarios, config.evaluation.attempts))
    return read_groups(path)
