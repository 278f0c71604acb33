"""The main path: draw scenarios -> gather groups -> score groups -> update -> record -> evaluate.

Everything else in this library is one of these steps, or serves one of them.
"""

from __future__ import annotations

import time
from pathlib import Path

from groundrule.backends import backend_class
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.recipes.attempts import Sampler, vote_by
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.evaluate import Evaluator, summary_line
from groundrule.recipes.given_prompt import learned_prompt
from groundrule.recipes.judging import estimate, run_budget, step_budget
from groundrule.recipes.off_policy import Source, source_of
from groundrule.recipes.reward import (
    aligned,
    asks_a_judge,
    check_references,
    reward_of,
    verifier_of,
    with_checklist,
)
from groundrule.recipes.shared_base import check_shared_reward_model
from groundrule.recipes.step_line import step_line
from groundrule.recipes.trainer_settings import settings_of
from groundrule.recipes.training import Report, Training
from groundrule.rewards.economy import CallCost
from groundrule.rollouts.answer import AnswerOnce
from groundrule.rollouts.scenarios import load_scenarios


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
    t.scorer = aligned(t.scorer, (group for step in t.run.trajectory_steps() for group in t.run.groups(step)))
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
    t.scorer = aligned(t.scorer, groups)
    t.run.prune_checkpoints(keep_last=t.config.run.keep_checkpoints, best=t.run.best_step("reward/mean"))
    t.report(step_line(step, t.config.train.steps, result.metrics, time.perf_counter() - started))
    await _evaluate_if_due(t, source, step)


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
    _check(config, scenarios, held_out)
    learned = learned_prompt(config, [*scenarios, *held_out])
    verifier = verifier_of(config)
    scores = scorer or reward_of(config, verifier)
    make_backend = backend_class(config.policy.backend)
    backend = make_backend(device=config.policy.device, settings=settings_of(config), seed=config.run.seed)
    model = TrainableModel(
        name=config.run.name, project=config.run.project, base_model=config.policy.base_model
    )
    # Without the folder's own name: a run that was moved is still the same run.
    kept = config.model_dump(mode="json", exclude={"run": {"folder"}})
    await backend.register_at(model, config.folder, kept)
    if learned is not None:
        learned.keep_in(config.folder)
        model.system_prompt = learned.text
    if config.ppo is not None and not config.ppo.apart:
        await _check_reward_model(scores, backend, model)
    agent = rollout or answer_once(config, model)
    greedy = rollout or answer_once(config, model, temperature=0.0)
    evaluator = Evaluator(
        held_out, scores, greedy, backend, config.train.max_exceptions, config.train.rollout_timeout_s
    )
    evaluator.spec = learned.spec if learned else None
    if verifier is not None:
        _verify(evaluator, verifier, agent, config)
    return Training(
        config,
        backend,
        model,
        agent,
        scores,
        scenarios,
        evaluator if held_out else None,
        report,
        verified=verifier is not None,
        spec=evaluator.spec,
    )


async def _check_reward_model(scorer: Scorer, backend: LocalBackend, model: TrainableModel) -> None:
    try:
        check_shared_reward_model(scorer, backend.served(model).language_model)
    except ConfigError:
        await backend.close()
        raise


def _verify(evaluator: Evaluator, verifier: Scorer, agent: Rollout, config: TrainingConfig) -> None:
    """Let an evaluation show its scenarios' references to the verifier, and verify several attempts if asked to."""
    evaluator.verified = True
    if config.run.evaluate_attempts:
        evaluator.sample = Sampler(
            evaluator.scenarios,
            verifier,
            agent,
            evaluator.backend,
            config.run.evaluate_attempts,
            vote_by(config.judge.verifier),
            evaluator.max_exceptions,
            evaluator.timeout_s,
        )


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


def _check(config: TrainingConfig, scenarios: list[Scenario], held_out: list[Scenario]) -> None:
    """What cannot work is said before anything is loaded."""
    if not scenarios:
        raise ConfigError(
            f"{config.scenarios.source} has no scenario with split 'train', so nothing can be trained on"
        )
    if config.run.evaluate_attempts and config.judge.verifier is None:
        raise ConfigError(
            "run.evaluate_attempts counts right answers, which needs judge.verifier; set it, or leave the attempts out"
        )
    if asks_a_judge(config):
        _check_spec(config, scenarios)
    check_references(config, [*scenarios, *held_out])
    _check_budget(config)


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
