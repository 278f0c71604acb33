"""Answers of the policy as it began, and who ranks them; or rankings that are there already."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groundrule.algorithms.preference_summary import summarise
from groundrule.data.group import TrajectoryGroup
from groundrule.data.judged_rankings import rankings_from_groups
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.preferences import Ranking
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError, TrainingError
from groundrule.recipes.rlhf.config import HUMAN, RlhfConfig
from groundrule.recipes.rlhf.references import with_references
from groundrule.recipes.rlhf.sampling import answering
from groundrule.recipes.rlhf.scoring import scorer_named, scores_of
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.functions import BUILT_IN

ANSWERS, HUMAN_RANKINGS = "answers.jsonl", "human.jsonl"
TRAIN, HELD_OUT = "rankings.jsonl", "held-out-rankings.jsonl"


async def sample_answers(
    config: RlhfConfig, train: Sequence[Scenario], held_out: Sequence[Scenario]
) -> dict[str, Any]:
    """Write `answers.jsonl`: a group for each scenario, those of held-out scenarios last."""
    async with answering(config, "rankings") as policy:
        groups = await policy.sample([*train, *held_out], config.rankings.answers)
    write_groups(config.folder / ANSWERS, groups)
    return {
        "scenarios": len(train),
        "held_out_scenarios": len(held_out),
        "answers": sum(len(group) for group in groups),
        "failed": sum(len(group.exceptions) for group in groups),
    }


async def rank_answers(
    config: RlhfConfig, train: Sequence[Scenario], held_out: Sequence[Scenario]
) -> dict[str, Any]:
    """Write `rankings.jsonl` and `held-out-rankings.jsonl`; what they hold."""
    if config.rankings.file or config.rankings.judge == HUMAN:
        learned, measured = _parted(_given(config), config)
        left_out: list[str] = []
    else:
        learned, measured, left_out = await _judged(config, train, held_out)
    if not any(len(ranking.order) > 1 for ranking in learned):
        raise TrainingError(
            f"{len(learned)} rankings, and in none is one answer above another, so nothing can be learned from them; "
            f"lower rankings.margin (now {config.rankings.margin}), raise rankings.answers, or ask another judge"
        )
    write_rankings(config.folder / TRAIN, learned)
    write_rankings(config.folder / HELD_OUT, measured)
    summary = summarise(learned)
    return {
        "rankings": len(learned),
        "pairs": summary.pairs,
        "ties": summary.ties,
        "held_out_rankings": len(measured),
        "held_out_pairs": sum(len(ranking.pairs()) for ranking in measured),
        "left_out": left_out,
    }


def learned_from(folder: Path) -> list[Ranking]:
    """What reward model and DPO are trained on."""
    return read_rankings(folder / TRAIN)


def measured_on(folder: Path) -> list[Ranking]:
    """What the reward model is measured on; may be empty."""
    path = folder / HELD_OUT
    return read_rankings(path) if path.stat().st_size else []


async def _judged(
    config: RlhfConfig, train: Sequence[Scenario], held_out: Sequence[Scenario]
) -> tuple[list[Ranking], list[Ranking], list[str]]:
    judge = config.rankings.judge
    scorer = scorer_named(judge, seed=config.run.seed)
    count, system = config.rankings.references, config.policy.system
    groups = [
        with_references(group, train, count, seed=config.run.seed, system=system)
        for group in read_groups(config.folder / ANSWERS)
        if len(group)
    ]
    scored = await scores_of(scorer, groups)
    judged = [apply_scores(g, s, name="rank") for g, s in zip(groups, scored, strict=True)]
    made = rankings_from_groups(
        judged,
        margin=config.rankings.margin,
        source="rule" if _is_rule(judge) else "ruler",
        annotator=judge,
    )
    if not made.rankings:
        raise TrainingError(
            f"{judge} ranked none of {made.groups} groups ({'; '.join(made.left_out)}; first reason: "
            f"{_first_reason(judged)})"
        )
    measured = {scenario.id for scenario in held_out}
    learned = [r for r in made.rankings if r.scenario_id not in measured]
    return learned, [r for r in made.rankings if r.scenario_id in measured], made.left_out


def _given(config: RlhfConfig) -> list[Ranking]:
    if config.rankings.file:
        return read_rankings(config.rankings.file)
    path, answers = config.folder / HUMAN_RANKINGS, config.folder / ANSWERS
    if not path.exists():
        raise ConfigError(
            f"rankings.judge is {HUMAN!r}: let a person rank the answers with `groundrule rank {answers} --out "
            f"{path}`, then run the same command again"
        )
    return read_rankings(path)


def _parted(rankings: Sequence[Ranking], config: RlhfConfig) -> tuple[list[Ranking], list[Ranking]]:
    """By prompt, drawn by the seed: no prompt is both learned from and measured on."""
    prompts = sorted({ranking.prompt_key for ranking in rankings})
    count = config.rankings.held_out
    if len(prompts) <= count:
        raise ConfigError(
            f"there are rankings of {len(prompts)} prompts, and rankings.held_out = {count} keeps {count} of them from "
            "being learned from; lower it"
        )
    chosen = set(random.Random(f"{config.run.seed}/held out").sample(prompts, count))
    return (
        [r for r in rankings if r.prompt_key not in chosen],
        [r for r in rankings if r.prompt_key in chosen],
    )


def _is_rule(judge: str) -> bool:
    return judge in BUILT_IN or ".py:" in judge


def _first_reason(groups: Sequence[TrajectoryGroup]) -> str:
    return next((str(t.unscored) for group in groups for t in group if t.unscored), "none")
