"""The judge that a configuration names, what it will cost, and how a step stays within its budget."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer, Usage
from groundrule.data.scenario import Scenario
from groundrule.errors import BudgetError, ConfigError
from groundrule.llm.cost import Budget, Ledger
from groundrule.recipes.config import BudgetConfig, JudgeConfig, JurorConfig, TrainingConfig
from groundrule.recipes.evaluate import group_of_texts
from groundrule.rewards import DEFAULT_RUBRIC, Ruler
from groundrule.rewards.ask import estimated_tokens
from groundrule.rewards.attempt import attempts_of
from groundrule.rewards.checklist import Checklist
from groundrule.rewards.economy import CallCost, Priced, Purchase, calls_of, purchase
from groundrule.rewards.functions import scorer_of
from groundrule.rewards.judges import judge_chain
from groundrule.rewards.jury import Juror, Jury
from groundrule.rewards.passes import Passes
from groundrule.rewards.probes import Probes
from groundrule.rewards.prompt import judge_messages

REPLY_TOKENS = 80
"""What a judge writes about one answer: an id, a number and a sentence or two."""


def judge_of(config: TrainingConfig) -> Ruler | Jury:
    """The judge or jury of a configuration. One that cannot be had is a `ConfigError` now, not after an hour."""
    judge = config.judge
    main = _ruler(config, judge.model, judge.params)
    if not judge.jury:
        return main
    jurors = [Juror(j.name or j.model, _juror(config, j), j.weight, j.role) for j in judge.jury]
    return Jury([Juror(judge.model, main), *jurors], judge.min_reliability)


def _juror(config: TrainingConfig, juror: JurorConfig) -> Scorer:
    """A judge, or whatever else has a name and scores: a hand-written reward, the user's own function."""
    found = scorer_of(juror.model)
    if isinstance(found, Ruler):
        return _ruler(config, juror.model, juror.params)
    if juror.params:
        raise ConfigError(
            f"judge.jury: {juror.model!r} is no judge and takes no parameters; take {min(juror.params)!r} out"
        )
    return found


def _ruler(config: TrainingConfig, model: str, params: Mapping[str, Any]) -> Ruler:
    judge = config.judge
    judge_chain(model, params or None, fallback=judge.fallback or None)
    return Ruler(
        model,
        params or None,
        judge.rubric or DEFAULT_RUBRIC,
        passes=judge.passes,
        max_passes=judge.max_passes,
        min_reliability=judge.min_reliability,
        seed=config.run.seed,
        fallback=judge.fallback or None,
        probes=Probes(judge.canary_rate, judge.twin_rate),
        context_tokens=judge.context_tokens,
        checklist=_checklist(judge, config.policy.system),
    )


def _checklist(judge: JudgeConfig, spec: str | None) -> Checklist | Literal["auto"] | None:
    if judge.checklist is None or judge.checklist == "auto":
        return "auto" if judge.checklist else None
    checklist = Checklist.load(judge.checklist)
    if spec and not checklist.fits(spec):
        raise ConfigError(
            f"{judge.checklist} was made from another system prompt than policy.system; make it anew, or take "
            "spec_sha256 out of it if it still holds"
        )
    return checklist


def run_budget(budget: BudgetConfig) -> Budget:
    """The limits of a whole run."""
    return Budget(usd=budget.usd_per_run, tokens=budget.tokens_per_run, calls=budget.calls_per_run)


def step_budget(budget: BudgetConfig) -> Budget:
    """The limits of one step."""
    return Budget(usd=budget.usd_per_step, tokens=budget.tokens_per_step, calls=budget.calls_per_step)


@dataclass(frozen=True)
class Estimate:
    """What judging is expected to take."""

    calls: int
    tokens: int
    usd: float | None
    """None: the price of a judge is unknown."""
    each: CallCost

    def __str__(self) -> str:
        money = "cost unknown" if self.usd is None else f"about ${self.usd:.2f}"
        return f"about {self.calls:,} judge calls, {self.tokens:,} tokens, {money}"


def estimate(
    config: TrainingConfig, scorer: Scorer, scenarios: Sequence[Scenario], ledger: Ledger, *, steps: int
) -> Estimate | None:
    """For so many steps, from prompts made up of real scenarios and answers of full length; None: free of charge.

    Answers usually are shorter and passes may be added, so this is a guide and no promise.
    """
    size = config.train.group_size
    calls = calls_of(scorer, size)
    if not calls:
        return None
    shown = min(size, Passes().most)
    prompt = fmean(_prompt_tokens(s, shown, config.policy.max_tokens) for s in scenarios[:8])
    usage = Usage(prompt_tokens=round(prompt), completion_tokens=REPLY_TOKENS * shown)
    prices = [ledger.price_of(model) for model in _models(config)]
    costs = [price.cost_usd(usage) for price in prices if price is not None]
    known = [cost for cost in costs if cost is not None]
    usd = fmean(known) if len(known) == len(prices) else None
    each = CallCost(prompt + REPLY_TOKENS * shown, usd)
    total = calls * config.train.groups_per_step * steps
    return Estimate(total, round(total * each.tokens), None if usd is None else usd * total, each)


def _models(config: TrainingConfig) -> list[str]:
    return [config.judge.model, *(juror.model for juror in config.judge.jury)]


def _prompt_tokens(scenario: Scenario, members: int, max_tokens: int) -> int:
    answers = [f"{number} " + "word " * max_tokens for number in range(members)]
    attempts = attempts_of(group_of_texts(scenario, answers))
    return estimated_tokens(judge_messages(attempts, rubric=DEFAULT_RUBRIC, seed=0))


def purchase_for_step(
    scorer: Scorer, config: TrainingConfig, ledger: Ledger, each: CallCost | None, *, step: int, groups: int
) -> Purchase | None:
    """How the groups of a step are judged; None for a judge that costs nothing.

    Raises `BudgetError` when the budget of the run does not reach for a single group any more.
    """
    if each is None or not isinstance(scorer, Priced):
        return None
    seen = CallCost.of(ledger.total()) or each
    rng = random.Random(derive("budget", config.run.seed, step))
    bought = purchase(scorer, [config.train.group_size] * groups, seen, ledger.left(), rng)
    if not bought.groups:
        raise BudgetError(
            f"step {step}: the judge's budget ({ledger.parent or ledger}) does not reach for one more group; raise "
            "[judge.budget] and start the same command again: the run goes on at this step"
        )
    return bought


def degraded_line(degraded: Mapping[str, float]) -> str:
    """In words."""
    cheaper = "groups are judged more cheaply, " if degraded["judge/degraded"] else ""
    return f"{cheaper}{degraded['judge/groups_left_out']:.0f} left unscored"


def judge_metrics(groups: Sequence[TrajectoryGroup]) -> dict[str, float]:
    """Means over the groups of what was measured about the judge, as metrics of a step."""
    seen: dict[str, list[float]] = {}
    for group in groups:
        for name, value in group.metrics.items():
            if name.startswith(("judge_", "judge/")):
                seen.setdefault(name.replace("judge_", "judge/", 1), []).append(float(value))
    return {name: fmean(values) for name, values in sorted(seen.items())}
