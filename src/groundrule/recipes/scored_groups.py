"""The groups of a step: attempts gathered from the policy and scored as soon as a group is complete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import takewhile

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import system_prompt_of
from groundrule.data.protocols import Scorer
from groundrule.data.records import write_groups
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, GatherError, TrainingError
from groundrule.llm.cost import Ledger, current_ledger, use_ledger
from groundrule.recipes.answer_metrics import answer_metrics
from groundrule.recipes.evaluate import groups_of
from groundrule.recipes.judging import degraded_line, judge_metrics, purchase_for_step, step_budget
from groundrule.recipes.training import Training
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.economy import LEFT_OUT
from groundrule.rewards.frozen_spec import by_spec
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rollouts.gather import gather_trajectory_groups

Attempt = Callable[[Scenario], Awaitable[Trajectory]]


async def judged_groups(
    t: Training, step: int, scenarios: list[Scenario]
) -> tuple[list[TrajectoryGroup], dict[str, float | None]]:
    """The scored groups of one step, in scenario order, and what judging them showed and cost; within its budget."""
    ledger = Ledger(budget=step_budget(t.config.judge.budget), parent=current_ledger())
    policy = t.model.policy(version=await t.model.get_step())
    count = len(scenarios) * t.config.train.group_size
    with use_ledger(ledger), t.backend.lockstep(t.model, t.rollout, policy, count) as attempt:
        bought = purchase_for_step(t.scorer, t.config, ledger, t.expected, step=step, groups=len(scenarios))
        scorer, chosen = (bought.scorer, bought.groups) if bought else (t.scorer, range(len(scenarios)))
        groups = await gather(t, scenarios, attempt, scorer, {scenarios[i].id for i in chosen})
    degraded = bought.metrics(of=len(scenarios)) if bought else {}
    if degraded:
        t.report(f"step {step}: the judge's budget is short: {degraded_line(degraded)}")
    return groups, {**judge_metrics(groups), **answer_metrics(groups), **degraded, **costs_so_far()}


async def gather(
    t: Training, scenarios: Sequence[Scenario], attempt: Attempt, scorer: Scorer, judged: Set[str]
) -> list[TrajectoryGroup]:
    """One group for each scenario; those of the scenarios `judged` are scored once complete.

    What stops the run is kept in its folder, for `groundrule doctor`.
    """
    judge = _Judge(by_spec(scorer, t.spec), judged, "reward" if t.verified else "ruler")
    with _noted(t):
        groups = await gather_trajectory_groups(
            groups_of(scenarios, attempt, t.config.train.group_size, verified=t.verified),
            pbar_desc=None,
            after_each=judge,
            max_exceptions=t.config.train.max_exceptions,
            max_concurrency=None,
            timeout_s=t.config.train.rollout_timeout_s,
        )
    if judge.faults:
        raise judge.faults[0]
    return groups


@contextmanager
def _noted(t: Training) -> Iterator[None]:
    try:
        yield
    except GatherError as error:
        finished = [group.with_members(group, exceptions=[]) for group in error.groups]
        write_groups(t.run.failed_path, [*finished, TrajectoryGroup(exceptions=error.exceptions)])
        raise


class _Judge:
    """Scores a complete group; a fault that would be the same for every group is kept and stops the step."""

    def __init__(self, scorer: Scorer, judged: Set[str], name: str) -> None:
        self.scorer = scorer
        self.judged = judged
        self.name = name
        self.faults: list[ConfigError | TrainingError] = []

    async def __call__(self, group: TrajectoryGroup) -> TrajectoryGroup | None:
        try:
            group = with_prompt_hash(group)
            if group.scenario_id not in self.judged:
                return apply_scores(group, [Score.none(LEFT_OUT) for _ in group], name=self.name)
            return apply_scores(group, await scores_or_reasons(self.scorer, group), name=self.name)
        except (ConfigError, TrainingError) as error:
            self.faults.append(error)
            return None


def costs_so_far() -> dict[str, float | None]:
    """What judging has cost in this run; None where a price is unknown."""
    total = current_ledger().total()
    return {
        "judge/calls_total": total.calls,
        "judge/tokens_total": total.tokens,
        "judge/cost_usd_total": total.cost_usd,
    }


def with_prompt_hash(group: TrajectoryGroup) -> TrajectoryGroup:
    """Each member with the hash of its system prompt in `metadata["prompt"]`.

    Members that were told different things cannot be compared by one rule: that is a `TrainingError`.
    """
    prompts = [_opening(member) for member in group]
    differing = [i for i, prompt in enumerate(prompts) if prompt != prompts[0]]
    if differing:
        raise TrainingError(
            f"scenario {group.scenario_id!r}: the system prompt of trajectory {differing[0]} "
            f"({_start(prompts[differing[0]])}) is not that of trajectory 0 ({_start(prompts[0])}), so their scores "
            f"cannot be compared ({len(differing)} of {len(prompts)} differ); the rollout must give all attempts at a "
            "scenario the same system prompt"
        )
    return group.with_members(m.noting_prompt(prompt) for m, prompt in zip(group, prompts, strict=True))


def _opening(member: Trajectory) -> str:
    """The system prompt: the messages that open the conversation, not what a tool adds later."""
    first = takewhile(lambda m: m.get("role") in ("system", "developer"), member.messages())
    return system_prompt_of(first)


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
