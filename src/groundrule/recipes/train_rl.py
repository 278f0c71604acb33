"""The main path: draw scenarios -> gather groups -> score groups -> update -> record -> evaluate.

Everything else in this library is one of these steps, or serves one of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from groundrule.algorithms.policy_loss import PolicyLossConfig
from groundrule.backends import backend_class
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import system_prompt_of
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.records import write_groups
from groundrule.data.runs import Run
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, GatherError, TrainingError
from groundrule.llm.cost import Ledger, current_ledger, use_ledger
from groundrule.models.lora import LoraSettings
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.evaluate import Evaluator, scenario_metadata, summary_line
from groundrule.recipes.judging import (
    degraded_line,
    estimate,
    judge_metrics,
    judge_of,
    purchase_for_step,
    run_budget,
    step_budget,
    with_checklist,
)
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.economy import LEFT_OUT, CallCost
from groundrule.rewards.jury import Jury
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rollouts.answer import AnswerOnce
from groundrule.rollouts.gather import gather_trajectory_groups
from groundrule.rollouts.scenarios import draw, load_scenarios
from groundrule.training.lora_trainer import TrainerSettings

logger = logging.getLogger(__name__)

Report = Callable[[str], None]


@dataclass
class Training:
    """What one run is made of."""

    config: TrainingConfig
    backend: LocalBackend
    model: TrainableModel
    rollout: Rollout
    scorer: Scorer
    scenarios: list[Scenario]
    evaluator: Evaluator | None
    report: Report
    expected: CallCost | None = None
    """What a judge call is expected to take; None where judging is free."""


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
        path = training.backend.run_of(training.model).costs_path
        with use_ledger(Ledger.reopened(path, budget=run_budget(config.judge.budget))) as ledger:
            await _settle_checklist(training)
            training.expected = _announce_cost(training, ledger)
            await _train(training)
    finally:
        await training.backend.close()
    return config.folder


async def _train(t: Training) -> None:
    run = t.backend.run_of(t.model)
    _align(t, (group for step in run.trajectory_steps() for group in run.groups(step)))
    await _evaluate_if_due(t, run, run.step)  # A crash may have come between a step and its evaluation.
    for step in range(run.next_step, t.config.train.steps + 1):
        started = time.perf_counter()
        scenarios = draw(t.scenarios, step, t.config.train.groups_per_step, t.config.run.seed)
        groups, judged = await judged_groups(t, run, step, scenarios)
        gathered = time.perf_counter() - started
        result = await t.backend.train(
            t.model, groups, metrics={"time/rollouts_and_judge_s": gathered, **judged}
        )
        _align(t, groups)
        run.prune_checkpoints(keep_last=t.config.run.keep_checkpoints, best=run.best_step("reward/mean"))
        t.report(_line(step, t.config.train.steps, result.metrics, time.perf_counter() - started))
        await _evaluate_if_due(t, run, step)


def _align(t: Training, groups: Iterable[TrajectoryGroup]) -> None:
    """A jury learns from scored groups how wide each juror's scale is; a single judge has nothing to learn."""
    if isinstance(t.scorer, Jury):
        t.scorer = t.scorer.aligned_on(groups)


async def _evaluate_if_due(t: Training, run: Run, step: int) -> None:
    if t.evaluator is None or not _is_due(step, t.config) or run.evaluation_path(step).exists():
        return
    t.report(f"evaluating {len(t.evaluator.scenarios)} held-out questions after step {step}")
    record = await t.evaluator.evaluate(t.model, step=step)
    run.write_evaluation(step, "", record)
    t.report(summary_line(record))


async def judged_groups(
    t: Training, run: Run, step: int, scenarios: list[Scenario]
) -> tuple[list[TrajectoryGroup], dict[str, float | None]]:
    """The scored groups of one step, and what judging them showed and cost; within the step's budget."""
    ledger = Ledger(budget=step_budget(t.config.judge.budget), parent=current_ledger())
    with use_ledger(ledger):
        bought = purchase_for_step(t.scorer, t.config, ledger, t.expected, step=step, groups=len(scenarios))
        scorer, chosen = (bought.scorer, bought.groups) if bought else (t.scorer, range(len(scenarios)))
        groups = await gather_or_note(t, run, scenarios, scorer, {scenarios[i].id for i in chosen})
    degraded = bought.metrics(of=len(scenarios)) if bought else {}
    if degraded:
        t.report(f"step {step}: the judge's budget is short: {degraded_line(degraded)}")
    return groups, {**judge_metrics(groups), **degraded, **_costs()}


async def gather_or_note(
    t: Training, run: Run, scenarios: list[Scenario], scorer: Scorer, judged: Set[str]
) -> list[TrajectoryGroup]:
    """The groups of one step. What stops the run is kept in its folder, for `groundrule doctor`."""
    try:
        return await gather(t, scenarios, scorer, judged)
    except GatherError as error:
        finished = [group.with_members(group, exceptions=[]) for group in error.groups]
        write_groups(run.failed_path, [*finished, TrajectoryGroup(exceptions=error.exceptions)])
        raise


async def gather(
    t: Training, scenarios: list[Scenario], scorer: Scorer, judged: Set[str]
) -> list[TrajectoryGroup]:
    """The groups of one step, in scenario order; those of the scenarios `judged` are scored once complete."""
    size = t.config.train.group_size
    policy = t.model.policy(version=await t.model.get_step())
    faults: list[ConfigError | TrainingError] = []

    async def judge(group: TrajectoryGroup) -> TrajectoryGroup | None:
        try:
            check_one_system_prompt(group)
            if group.scenario_id not in judged:
                return apply_scores(group, [Score.none(LEFT_OUT) for _ in group], name="ruler")
            return apply_scores(group, await scores_or_reasons(scorer, group), name="ruler")
        except (ConfigError, TrainingError) as error:  # Wrong for every group: to go on would teach nothing.
            faults.append(error)
            return None

    with t.backend.lockstep(t.model, t.rollout, policy, len(scenarios) * size) as attempt:
        groups = await gather_trajectory_groups(
            (
                TrajectoryGroup(
                    [attempt(scenario) for _ in range(size)],
                    scenario_id=scenario.id,
                    metadata=scenario_metadata(scenario),
                )
                for scenario in scenarios
            ),
            pbar_desc=None,
            after_each=judge,
            max_exceptions=t.config.train.max_exceptions,
            max_concurrency=None,
            timeout_s=t.config.train.rollout_timeout_s,
        )
    if faults:
        raise faults[0]
    return groups


def check_one_system_prompt(group: TrajectoryGroup) -> None:
    """Members that were told different things cannot be compared by one rule."""
    prompts = [_opening(member) for member in group]
    differing = [i for i, prompt in enumerate(prompts) if prompt != prompts[0]]
    if differing:
        raise TrainingError(
            f"scenario {group.scenario_id!r}: the system prompt of trajectory {differing[0]} "
            f"({_start(prompts[differing[0]])}) is not that of trajectory 0 ({_start(prompts[0])}), so their scores "
            f"cannot be compared ({len(differing)} of {len(prompts)} differ); the rollout must give all attempts at a "
            "scenario the same system prompt"
        )


def _opening(member: Trajectory) -> str:
    """The system prompt: the messages that open the conversation, not what a tool adds later."""
    first = takewhile(lambda m: m.get("role") in ("system", "developer"), member.messages())
    return system_prompt_of(first)


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


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
        policy_loss=PolicyLossConfig(kl_coef=config.train.kl_coef),
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


async def _settle_checklist(t: Training) -> None:
    specs = {t.config.policy.system or scenario.system for scenario in t.scenarios}
    t.scorer = await with_checklist(t.scorer, specs, t.config.folder, t.report)
    if t.evaluator is not None:
        t.evaluator.scorer = t.scorer


def _announce_cost(t: Training, ledger: Ledger) -> CallCost | None:
    """Say what judging will take, before anything is spent."""
    left = t.config.train.steps - t.backend.run_of(t.model).step
    expected = estimate(t.config, t.scorer, t.scenarios, ledger, steps=left)
    if expected is None:
        return None
    t.report(f"judging the {left} steps to go: {expected}; {ledger}")
    return expected.each


def _costs() -> dict[str, float | None]:
    """What judging has cost in this run so far; None where a price is unknown."""
    total = current_ledger().total()
    return {
        "judge/calls_total": total.calls,
        "judge/tokens_total": total.tokens,
        "judge/cost_usd_total": total.cost_usd,
    }


def _is_due(step: int, config: TrainingConfig) -> bool:
    every = config.run.evaluate_every
    return step in (0, config.train.steps) or bool(every and step % every == 0)


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
