"""The chain from principles to a better policy. Stages that are done stay done.

answers -> revisions -> sft -> samples -> preferences, then RLHF's own stages on the preferences, then the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from groundrule._util.aio import on_model_thread
from groundrule.errors import ConfigError
from groundrule.recipes.constitution.config import ConstitutionalConfig
from groundrule.recipes.constitution.evaluation import evaluate
from groundrule.recipes.constitution.preferences import judge_of, label_samples, sample_pairs
from groundrule.recipes.constitution.revisions import revise_answers, sample_answers, train_on_revisions
from groundrule.recipes.constitution.stages import (
    BEFORE,
    EVALUATION,
    OWN,
    all_stages,
    learning_stages,
    made_from,
)
from groundrule.recipes.rlhf.chain import run_rlhf
from groundrule.recipes.rlhf.stages import Stages, Work
from groundrule.recipes.total_budget import within
from groundrule.rewards.constitution.comparing import comparing_judge
from groundrule.rollouts.scenarios import load_scenarios

COSTS = "costs.jsonl"


async def run_constitution(
    config: ConstitutionalConfig, *, until: str | None = None, report: Callable[[str], None] = print
) -> dict[str, Any]:
    """Every stage up to `until` (the last by default), by name what it gave.

    A stage that is done is not done again; one that was interrupted goes on (revisions behind the last finished prompt,
    PPO and DPO where they were) or begins anew.
    """
    names = all_stages(config)
    if until is not None and until not in names:
        raise ConfigError(f"this chain has no stage {until!r}; its stages are {', '.join(names)}")
    chain = _Chain(config, report)
    with within(config.budget, config.folder / COSTS, work="chain"):
        return await chain.run(until)


class _Chain:
    """The stages of one configuration. What cannot work is said before anything is loaded."""

    def __init__(self, config: ConstitutionalConfig, report: Callable[[str], None]) -> None:
        self.config = config
        self.report = report
        self.files = Stages(config.folder, OWN, report)
        self.content_hash = config.principles().content_hash
        source, limits = config.scenarios.source, config.scenarios
        self.train = load_scenarios(source, split="train")[: limits.limit]
        self.held_out = load_scenarios(source, split="held-out")[: limits.held_out_limit]
        if not self.train:
            raise ConfigError(f"{source} has no scenario with split 'train' to answer")

    async def run(self, until: str | None) -> dict[str, Any]:
        """The stages in order."""
        results: dict[str, Any] = {}
        for name, work in self._before().items():
            results[name] = await self._do(name, work)
            if name == until:
                return results
        learning = learning_stages(self.config)
        last = until if until in learning else learning[-1]
        results |= await run_rlhf(self.config.rlhf(), until=last, report=self.report)
        if last != until and self.held_out:
            results[EVALUATION] = await self._do(
                EVALUATION, partial(evaluate, self.config, self.held_out, self.report)
            )
        return results

    def _before(self) -> dict[str, Work]:
        config = self.config
        works: tuple[Work, ...] = (
            partial(sample_answers, config, self.train),
            partial(revise_answers, config),
            partial(on_model_thread, train_on_revisions, config, self.report),
            partial(sample_pairs, config, self.train),
            partial(label_samples, config),
        )
        return dict(zip(BEFORE, works, strict=True))

    async def _do(self, name: str, work: Work) -> dict[str, Any]:
        if name == BEFORE[0] and not self.files.is_done(name):
            self._check()
        return await self.files.do(name, made_from(self.config, self.content_hash, name), work)

    def _check(self) -> None:
        """A critic or judge that cannot be had is an error before the first stage, not after an hour."""
        comparing_judge(self.config.critic, self.config.constitution.critic_params or None)
        _ = judge_of(self.config).comparer
