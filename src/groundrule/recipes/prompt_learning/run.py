"""Learn a prompt to the last round: answers -> scores -> reflection -> tests -> record, and a final test."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy, Rollout, Scorer, Update
from groundrule.data.records import write_groups
from groundrule.data.runs import Run
from groundrule.errors import JudgeError, JudgeReplyError
from groundrule.prompt_learning.absorbed import drop_absorbed
from groundrule.prompt_learning.final_test import final_test
from groundrule.prompt_learning.learner import PromptLearner
from groundrule.prompt_learning.playbook import read_playbook
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.trial import Trial
from groundrule.prompt_learning.versions import Version
from groundrule.recipes.evaluate import scenario_metadata
from groundrule.recipes.prompt_learning.agent import agent_of
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.files import (
    PROMPT_FILE,
    absorbed_path,
    keep_spec,
    read_text,
    take_hand_edits,
    write_absorbed,
    write_prompt,
    write_round,
)
from groundrule.recipes.prompt_learning.lines import final_line, round_line, round_metrics
from groundrule.recipes.prompt_learning.material import Material, material_of
from groundrule.recipes.prompt_learning.others import (
    evolve,
    evolved_line,
    evolved_record,
    learner_of,
)
from groundrule.recipes.reward import reward_of, verifier_of, with_checklist
from groundrule.recipes.total_budget import within
from groundrule.rewards.checklist.extract import reading_judges
from groundrule.rollouts.scenarios import draw

Report = Callable[[str], None]
FINAL = "final"


@dataclass
class Learning:
    """A run under way."""

    config: PromptConfig
    run: Run
    learner: RoundLearner
    material: Material
    report: Report


async def learn_prompt(
    config: PromptConfig,
    *,
    rollout: Rollout | None = None,
    scorer: Scorer | None = None,
    reflector: Reflector | None = None,
    report: Report = print,
) -> Path:
    """Learn to `config.learn.rounds` and return the run folder; an interrupted run goes on where it was.

    `rollout` is the agent; it answers under `policy.system_prompt`. `scorer` and `reflector` replace those of the
    configuration.
    """
    material = material_of(config)
    kept = config.model_dump(mode="json", exclude={"run": {"folder"}, "budget": True})
    with Run.open_or_create(config.folder, kept) as run, within(config.budget, run.costs_path, work="run"):
        keep_spec(run.folder, material.spec)
        async with agent_of(config, rollout) as (agent, policy):
            trial = await _trial(config, material.spec, agent, policy, scorer, report)
            state = _state(config, run, material.spec, report)
            learner = learner_of(config, trial, reflector or reflector_of(config), material, state)
            await _learn(Learning(config, run, learner, material, report))
    return config.folder


async def _learn(t: Learning) -> None:
    if t.config.learn.drop_absorbed and t.run.step == 0 and not absorbed_path(t.run.folder).exists():
        await _drop(t)
    if t.config.learn.method == "gepa":
        if t.run.step == 0:
            await _evolve(t)
    else:
        for number in range(t.run.next_step, t.config.learn.rounds + 1):
            await _round(t, number)
    write_prompt(t.run.folder, t.learner)
    if t.material.final and not t.run.evaluation_path(t.run.step, FINAL).exists():
        await _final(t)


async def _round(t: Learning, number: int) -> None:
    started, learner, learn = time.perf_counter(), t.learner, t.config.learn
    asking = replace(learner.trial, attempts=learn.group_size)
    scenarios = draw(t.material.train, number, learn.groups_per_round, t.config.run.seed)
    groups = await asking.groups([learner.parent_prompt], scenarios, t.config.run.seed, "round", number)
    update = await _updated(t, groups, number)
    made = asking.rollouts + learner.trial.rollouts
    learner.trial.rollouts = 0
    metrics = {
        **round_metrics(groups),
        **update.metrics,
        "prompt/rollouts": made,
        "time/round_s": time.perf_counter() - started,
    }
    write_round(t.run.folder, number, learner.record)
    t.run.record_step(number, [*groups, *learner.tested_groups], metrics, state=learner.state.to_dict())
    write_prompt(t.run.folder, learner)
    t.report(round_line(number, learn.rounds, metrics, learner))


async def _updated(t: Learning, groups: Sequence[TrajectoryGroup], number: int) -> Update:
    """What the learner makes of the round. Where nothing readable was written, what waited from before is tested."""
    try:
        return await t.learner.update(groups)
    except JudgeError as error:
        if not any(isinstance(one, JudgeReplyError) for one in (error, error.__cause__)):
            raise
        t.report(f"round {number}: the reflection model wrote nothing usable ({error})")
        update = await t.learner.update([])
        t.learner.record["unreadable"] = str(error)
        return replace(update, metrics={**update.metrics, "prompt/unreadable": 1.0})


async def _evolve(t: Learning) -> None:
    found, metrics = await evolve(t.config, t.learner, t.material, t.run.folder)
    write_round(t.run.folder, 1, evolved_record(found))
    t.run.record_step(1, found.groups, metrics, state=t.learner.state.to_dict())
    t.report(evolved_line(found, metrics["prompt/gain"]))


async def _drop(t: Learning) -> None:
    assert isinstance(t.learner, PromptLearner), "the configuration refuses it for the other methods"
    found = await drop_absorbed(t.learner)
    t.run.keep_state(t.learner.state.to_dict())
    write_absorbed(t.run.folder, found)
    t.report(
        f"absorbed: {len(found.dropped)} of {len(found.dropped) + len(found.kept)} lessons are not needed any more"
    )
    for lesson in found.dropped:
        t.report(f"  dropped {lesson.id}: {lesson.text}")


async def _final(t: Learning) -> None:
    start = t.learner.state.pool[0].playbook.below(t.learner.spec)
    learned = t.learner.policy.system_prompt or ""
    t.report(f"final test on {len(t.material.final)} scenarios that decided nothing")
    record, groups = await final_test(t.learner.trial, start, learned, t.material.final, t.config.run.seed)
    write_groups(t.run.folder / "evaluations" / f"{FINAL}.jsonl", groups)
    t.run.write_evaluation(t.run.step, FINAL, record)
    t.report(final_line(record))


def _state(config: PromptConfig, run: Run, spec: str, report: Report) -> LearnerState:
    """As the last complete round left it, with what a person changed in the prompt file since."""
    if run.state:
        state = LearnerState.from_dict(run.state)
        if take_hand_edits(run.folder, state, spec):
            report(
                f"{run.folder / PROMPT_FILE} was edited by hand: that is version {state.pool.head.number} now"
            )
        return state
    state = LearnerState.at_start(config.learn)
    if config.learn.playbook:
        text = read_text(config.learn.playbook)
        begun = read_playbook(text, spec, state.ids, source=config.learn.playbook)
        state.pool.versions = [Version(0, begun)]
    return state


def reflector_of(config: PromptConfig) -> Reflector:
    """Who writes the lessons; a model that only scores is a `ConfigError`."""
    section = config.reflection
    model = section.model or config.policy.model
    return Reflector(
        reading_judges(model, section.params or None, fallback=section.fallback or None, to="write lessons")
    )


async def _trial(
    config: PromptConfig, spec: str, agent: Rollout, policy: Policy, scorer: Scorer | None, report: Report
) -> Trial:
    judging = config.judging()
    verifier = verifier_of(judging)
    judge = await with_checklist(scorer or reward_of(judging, verifier), {spec}, config.folder, report)
    return Trial(
        spec=spec,
        rollout=agent,
        policy=policy,
        scorer=judge,
        guards={"verifier": verifier} if verifier is not None else {},
        attempts=config.learn.attempts,
        max_concurrency=config.policy.max_concurrency,
        facts=partial(scenario_metadata, verified=verifier is not None),
    )
