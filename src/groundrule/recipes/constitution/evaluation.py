"""The revised model and what learned from the preferences, against the model that the chain began with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groundrule.data.scenario import Scenario
from groundrule.recipes.constitution.config import ConstitutionalConfig
from groundrule.recipes.constitution.preferences import judge_of
from groundrule.recipes.rlhf.comparison import Comparing, checked, judged
from groundrule.recipes.rlhf.evaluation import judges_without_part, reward_model_as_judge
from groundrule.recipes.rlhf.policy import trained_policies
from groundrule.recipes.rlhf.sampling import EVALUATION, kept_answers

REVISED = "revised"
"""The model after the first stage."""


async def evaluate(
    config: ConstitutionalConfig, scenarios: Sequence[Scenario], report: Callable[[str], None]
) -> dict[str, Any]:
    """Scores, win rates and checks of every policy; all answers are kept in `evaluation/`."""
    folder, rlhf = config.folder / EVALUATION, config.rlhf()
    begun = await kept_answers(config.start(), folder / "start.jsonl", scenarios)
    answers = {
        name: await kept_answers(rlhf, folder / f"{name}.jsonl", scenarios, trained)
        for name, trained in {REVISED: None, **trained_policies(rlhf)}.items()
    }
    report(f"comparing {' and '.join(answers)} with the start on {len(scenarios)} held-out scenarios")
    judges = await judged(_judges(config), begun, answers)
    found = {
        name: {"judges": judges[name], "checks": checked(scenarios, begun, groups)}
        for name, groups in answers.items()
    }
    return {"scenarios": len(scenarios), "attempts": config.evaluation.attempts, "policies": found}


def _judges(config: ConstitutionalConfig) -> dict[str, Comparing]:
    """By name."""
    rlhf = config.rlhf()
    own = Comparing(judge_of(config), "made the preferences")
    return {
        **judges_without_part(rlhf),
        f"constitution/{config.constitution.file}": own,
        **reward_model_as_judge(rlhf),
    }
