"""The main path: draw scenarios -> gather groups -> score groups -> update -> record -> evaluate.

Everything else in this library is one of these steps, or serves one of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from groundrule.algorithms.policy_loss import PolicyLossConfig
from groundrule.backends import backend_class
from groundrule.backends.model import TrainableModel
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.models.lora import LoraSettings
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.evaluate import Evaluator, summary_line
from groundrule.recipes.judging import (
    estimate,
    judge_of,
    run_budget,
    step_budget,
    with_checklist,
)
from groundrule.recipes.off_policy import Source, source_of
from groundrule.recipes.training import Report, Training
from groundrule.rewards.economy import CallCost
from groundrule.rewards.jury import Jury
from groundrule.rollouts.answer import AnswerOnce
from groundrule.rollouts.scenarios import load_scenarios
from groundrule.training.lora_trainer import TrainerSettings


async def train_rl(
    config: TrainingConfig,
    *,
    rollout: Rollout | None = None,
    scorer: Scorer | None = None,
    report: Report = print,
) -> Path:
    """Train to `config.train.steps` and return the run folder; an interrupted run goes on where it was.

    `rollout` is the agent: one attempt at a scenario, by default a single answer of the policy.
    `scorer` replaces the judge of the configuration.
    """
    training = await _prepare(config, rollout, scorer, report)
    try:
        path = training.run.costs_path
        with use_ledger(Ledger.reopened(path, budget=run_budget(config.judge.budget))) as ledger:
            await _settle_checklist(training)
            training.expected = _announce_cost(training, ledger)
            await _train(training)
    finally:
        await training.backend.close()
    return config.folder


async def _train(t: Training) -> None:
    _align(t, (group for step in t.run.trajectory_steps() for group in t.run.groups(step)))
    source = source_of(t)
    try:
        # A crash may have come between a step and its evaluation.
        await _evaluate_if_due(t, source, t.run.step)
        for step in range(t.run.next_step, t.config.train.steps + 1):
            await _train_step(t, source, step)
    finally:
        await source.close()


async def _train_step(t: Training, source: Source, step: int) -> None:
    started = time.perf_counter()
    groups, judged = await source.groups_for(step)
    gathered = time.perf_counter() - started
    result = await t.backend.train(t.model, groups, metrics={"time/rollouts_and_judge_s": gathered, **judged})
    _align(t, groups)
    t.run.prune_checkpoints(keep_last=t.config.run.keep_checkpoints, best=t.run.best_step("reward/mean"))
    t.report(_line(step, t.config.train.steps, result.metrics, time.perf_counter() - started))
    await _evaluate_if_due(t, source, step)


def _align(t: Training, groups: Iterable[TrajectoryGroup]) -> None:
    """A jury learns from scored groups how wide each juror's scale is; a single judge has nothing to learn."""
    if isinstance(t.scorer, Jury):
        t.scorer = t.scorer.aligned_on(groups)


async def _evaluate_if_due(t: Training, source: Source, step: int) -> None:
    every, last = t.config.run.evaluate_every, t.config.train.steps
    is_due = step in (0, last) or bool(every and step % every == 0)
    if t.evaluator is None or not is_due or t.run.evaluation_path(step).exists():
        return
    await source.settle()
    t.report(f"evaluating {len(t.evaluator.scenarios)} held-out questions after step {step}")
    record = await t.evaluator.evaluate(t.model, step=step)
    t.run.write_evaluation(step, "", record)
    t.report(summary_line(record))


async def _prepare(
    config: TrainingConfig, rollout: Rollout | None, scorer: Scorer | None, report: Report
) -> Training:
    scenarios = load_scenarios(config.scenarios.source, split="train")[: config.scenarios.limit]
    held_out = load_scenarios(config.scenarios.source, split="held-out")[: config.scenarios.held_out_limit]
    if not scenarios:
        raise ConfigError(
            f"{config.scenarios.source} has no scenario with split 'train', so nothing can be trained on"
        )
    _check_spec(config, scenarios)
    _check_budget(config)
    judge = scorer or judge_of(config)
    make_backend = backend_class(config.policy.backend)
    backend = make_backend(device=config.policy.device, settings=_trainer(config), seed=config.run.seed)
    model = TrainableModel(
        name=config.run.name, project=config.run.project, base_model=config.policy.base_model
    )
    # Without the folder's own name: a run that was moved is still the same run.
    kept = config.model_dump(mode="json", exclude={"run": {"folder"}})
    await backend.register_at(model, config.folder, kept)
    agent = rollout or answer_once(config, model)
    greedy = rollout or answer_once(config, model, temperature=0.0)
    evaluator = Evaluator(
        held_out, judge, greedy, backend, config.train.max_exceptions, config.train.rollout_timeout_s
    )
    return Training(config, backend, model, agent, judge, scenarios, evaluator if held_out else None, report)


def answer_once(
    config: TrainingConfig, model: TrainableModel, *, temperature: float | None = None
) -> AnswerOnce:
    """The default agent, asking the model's own endpoint."""
    return AnswerOnce(
        model.openai_client(),
        max_tokens=config.policy.max_tokens,
        temperature=config.policy.temperature if temperature is None else temperature,
        top_p=config.policy.top_p,
        system=config.policy.system,
    )


def _trainer(config: TrainingConfig) -> TrainerSettings:
    return TrainerSettings(
        learning_rate=config.train.learning_rate,
        advantage=config.train.advantage,
        tie_band=config.train.tie_band,
        policy_loss=PolicyLossConfig(
            kl_coef=config.train.kl_coef,
            importance=config.train.importance if config.train.max_staleness else "none",
            importance_cap=config.train.importance_cap,
        ),
        epochs=config.train.epochs,
        lora=LoraSettings(rank=config.train.lora_rank, alpha=2 * config.train.lora_rank),
    )


def _check_spec(config: TrainingConfig, scenarios: list[Scenario]) -> None:
    """Without a system prompt there is no rule to judge by."""
    missing = [s.id for s in scenarios if not (config.policy.system or s.system)]
    if missing:
        raise ConfigError(
            f"scenario {missing[0]!r} (and {len(missing) - 1} more) has no system prompt, which is what answers are "
            "judged by; fill the column `system` or set policy.system"
        )


def _check_budget(config: TrainingConfig) -> None:
    """Judging that goes on beside a step belongs to no step."""
    if config.train.max_staleness and step_budget(config.judge.budget) != Budget():
        raise ConfigError(
            "judge.budget limits a step, but with train.max_staleness > 0 answers are judged beside the steps; "
            "limit the run instead (usd_per_run, tokens_per_run, calls_per_run), or set max_staleness = 0"
        )


async def _settle_checklist(t: Training) -> None:
    specs = {t.config.policy.system or scenario.system for scenario in t.scenarios}
    t.scorer = await with_checklist(t.scorer, specs, t.config.folder, t.report)
    if t.evaluator is not None:
        t.evaluator.scorer = t.scorer


def _announce_cost(t: Training, ledger: Ledger) -> CallCost | None:
    """Say what judging will take, before anything is spent."""
    left = t.config.train.steps - t.run.step
    expected = estimate(t.config, t.scorer, t.scenarios, ledger, steps=left)
    if expected is None:
        return None
    t.report(f"judging the {left} steps to go: {expected}; {ledger}")
    return expected.each


def _line(step: int, steps: int, metrics: dict[str, float | None], seconds: float) -> str:
    if not metrics.get("train/updated"):
        return (
            f"step {step}/{steps}: no signal, nothing learned (`groundrule doctor` says why), {seconds:.0f} s"
        )
    return (
        f"step {step}/{steps}: reward {metrics['reward/mean']:.3f} "
        f"(spread within groups {metrics['reward/group_std']:.3f}), "
        f"{metrics['train/sequences']:.0f} answers, {seconds:.0f} s"
    )
