"""Stage 2: answers of the revised model are compared by the constitution, and the labels become rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from groundrule.data.judged_rankings import rankings_from_groups
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.errors import TrainingError
from groundrule.recipes.constitution.config import PREFERENCES, ConstitutionalConfig
from groundrule.recipes.rlhf.sampling import answering
from groundrule.rewards.constitution import ConstitutionJudge
from groundrule.rewards.constitution.labels import label

SAMPLES = "samples.jsonl"


async def sample_pairs(config: ConstitutionalConfig, train: Sequence[Scenario]) -> dict[str, Any]:
    """Write `samples.jsonl`: some answers of the revised model to each scenario."""
    async with answering(config.rlhf(), "samples") as policy:
        groups = await policy.sample(train, config.preferences.answers)
    write_groups(config.folder / SAMPLES, groups)
    return {"scenarios": len(train), "answers": sum(map(len, groups))}


async def label_samples(config: ConstitutionalConfig) -> dict[str, Any]:
    """Write `preferences.jsonl`, and what each principle decided."""
    # No margin, no scores: only what belongs together, said once, and without empty answers.
    found = rankings_from_groups(read_groups(config.folder / SAMPLES), margin=0.0)
    labels = await label(found.rankings, judge_of(config).comparer)
    untied = sum(len(ranking.order) > 1 for ranking in labels.rankings)
    if not untied:
        why = labels.failed[0] if labels.failed else "; ".join(found.left_out) or "all of them are ties"
        raise TrainingError(
            f"{config.judge} put no answer above another in {len(labels.rankings)} comparisons ({why}); ask another "
            "judge, or raise preferences.answers"
        )
    others = read_rankings(config.preferences.also) if config.preferences.also else []
    write_rankings(config.folder / PREFERENCES, [*labels.rankings, *others])
    return {
        "comparisons": len(labels.rankings),
        "ties": len(labels.rankings) - untied,
        "others": len(others),
        "failed": labels.failed,
        "left_out": found.left_out,
        "sampled": labels.sampled,
        "mass": labels.mass,
        "principles": {name: asdict(one) for name, one in labels.by_principle().items()},
    }


def judge_of(config: ConstitutionalConfig) -> ConstitutionJudge:
    """The constitution as the judge of this chain."""
    section = config.preferences
    return ConstitutionJudge(
        config.principles(),
        config.judge,
        config.constitution.judge_params or None,
        principles=section.principles,
        think=section.think,
        logprobs=section.logprobs,
        samples=section.samples,
        seed=config.run.seed,
    )
