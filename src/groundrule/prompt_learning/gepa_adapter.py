"""The optimiser of the `gepa` package (Agrawal et al. 2025) on our scenarios, agent, judge and lint.

gepa evolves free text. Here that is the list of lessons; the spec is not part of it. Candidates are judged by the
frozen spec, in a group with answers of the prompt that the learning began with, because a judge that compares needs
company: a score is the gain on those.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groundrule._util.bridge import Bridge, bridged
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy, Rollout
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError
from groundrule.prompt_learning.gepa_reflection import (
    Failed,
    ListWriter,
    Trace,
    playbook_of,
    record_of,
    template,
    text_of,
    trace_of,
    with_ids,
)
from groundrule.prompt_learning.lint import Leaks
from groundrule.prompt_learning.playbook import LessonIds, Playbook
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.screening import Screen
from groundrule.prompt_learning.trial import Trial

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

COMPONENT = "lessons"
_NONE = Playbook()
logger = logging.getLogger(__name__)

Better = Callable[[Playbook, int], None]
"""Told of each playbook that is the best so far, and how many rollouts were made by then."""


@dataclass(frozen=True)
class Evolved:
    """What gepa found."""

    playbook: Playbook
    gains: Mapping[str, float]
    """By validation scenario, on the start."""
    rollouts: int
    candidates: int
    """That were scored on all of those, with the start."""
    refused: tuple[tuple[str, str], ...]
    """Lessons that the lint took out of what the model wrote, each with the reason."""
    groups: Sequence[TrajectoryGroup]
    """All that was judged."""


async def learn_with_gepa(
    trial: Trial,
    reflector: Reflector,
    train: Sequence[Scenario],
    validation: Sequence[Scenario],
    *,
    budget: int,
    seed: int = 0,
    start: Playbook = _NONE,
    ids: LessonIds | None = None,
    known: Sequence[Scenario] = (),
    check_contradictions: bool = True,
    folder: Path | None = None,
    on_better: Better = lambda playbook, rollouts: None,
) -> Evolved:
    """The best list of lessons that gepa finds with about `budget` rollouts: a round that has begun is ended.

    `known` are further scenarios whose words no lesson may repeat. In `folder` gepa keeps its state, partly as a
    pickle, and goes on from it; nobody else may be able to write there. Raises `ConfigError` where gepa is not
    installed, `JudgeError` or `LlmError` without a usable reply.
    """
    if find_spec("gepa") is None:
        raise ConfigError("this needs the gepa package; install it: pip install 'groundrule[gepa]'")
    leaks = Leaks.of([*train, *validation, *known], trial.spec)
    screen = Screen(trial.spec, leaks, LessonIds(), reflector if check_contradictions else None)

    def evolved(bridge: Bridge) -> Evolved:
        adapter = GEPAAdapter(trial, start, bridge, seed)
        writer = ListWriter(reflector, screen, start, bridge, seed)
        result = _optimized(adapter, writer, train, validation, budget, folder, on_better)
        best = result.best_idx
        texts = result.candidates[best][COMPONENT].splitlines()
        return Evolved(
            playbook=with_ids(texts, start, ids or LessonIds()),
            gains={validation[at].id: score for at, score in result.val_subscores[best].items()},
            rollouts=adapter.agent.answers,
            candidates=len(result.candidates),
            refused=tuple(writer.refused.items()),
            groups=adapter.groups,
        )

    try:
        return await bridged(evolved)
    except Failed as failed:
        raise failed.error from None


def _optimized(
    adapter: GEPAAdapter,
    writer: ListWriter,
    train: Sequence[Scenario],
    validation: Sequence[Scenario],
    budget: int,
    folder: Path | None,
    on_better: Better,
) -> Any:
    """In gepa's thread. It also ends after as many of gepa's rounds: one that asks nothing new makes no rollouts."""
    gepa: Any = importlib.import_module("gepa")
    return gepa.optimize(
        seed_candidate={COMPONENT: text_of(adapter.start)},
        trainset=list(train),
        valset=list(validation),
        adapter=adapter,
        reflection_lm=writer,
        reflection_prompt_template=template(adapter.trial.spec),
        skip_perfect_score=False,
        stop_callbacks=lambda state: adapter.agent.answers >= budget or state.i >= budget,
        callbacks=[_Watch(adapter, on_better)],
        logger=_Log(),
        run_dir=None if folder is None else str(folder),
        track_best_outputs=False,
        seed=derive("gepa", adapter.seed),
    )


class GEPAAdapter:
    """What gepa asks for; its methods are called in gepa's thread. No group is judged twice."""

    propose_new_texts = None
    """gepa's own way of asking is used."""

    def __init__(self, trial: Trial, start: Playbook, bridge: Bridge, seed: int = 0) -> None:
        """`trial` itself is not changed: answers are remembered, and counted, in a copy of it."""
        self.agent = Remembered(trial.rollout)
        self.trial = replace(trial, rollout=self.agent)
        self.start, self.seed, self._bridge = start, seed, bridge
        self._judged: dict[tuple[str, str | None], TrajectoryGroup] = {}

    def evaluate(
        self, batch: list[Scenario], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Trace, str]:
        """Each scenario's gain on the start: 0 for the start itself, and where the judge gives no score."""
        from gepa.core.adapter import EvaluationBatch

        spec = self.trial.spec
        start, prompt = self.start.below(spec), playbook_of(candidate[COMPONENT]).below(spec)
        if prompt == start and not capture_traces:
            return EvaluationBatch(outputs=[""] * len(batch), scores=[0.0] * len(batch))
        prompts = list(dict.fromkeys([start, prompt]))
        new = [scenario for scenario in batch if (prompt, scenario.id) not in self._judged]
        groups = self._bridge(self.trial.groups(prompts, new, "gepa", self.seed)) if new else []
        self._judged |= {(prompt, group.scenario_id): group for group in groups if group.scored}
        traces = [trace_of(s, self._judged.get((prompt, s.id)), start, prompt) for s in batch]
        return EvaluationBatch(
            outputs=[trace.answer for trace in traces],
            scores=[trace.score for trace in traces],
            trajectories=traces if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: EvaluationBatch[Trace, str],
        components_to_update: list[str],
    ) -> dict[str, list[dict[str, str]]]:
        """Tasks, answers and the judge's words about them."""
        records = [record_of(trace) for trace in eval_batch.trajectories or []]
        return dict.fromkeys(components_to_update, records)

    @property
    def groups(self) -> list[TrajectoryGroup]:
        """All that was judged."""
        return list(self._judged.values())

    def get_adapter_state(self) -> dict[str, Any]:
        """What gepa keeps beside its own state."""
        return {"answers": self.agent.answers}

    def set_adapter_state(self, state: dict[str, Any]) -> None:
        """As an interrupted run left it; empty for a new one."""
        self.agent.answers += state.get("answers", 0)


@dataclass
class Remembered:
    """A rollout that answers once for each prompt, scenario and seed; the same question again costs nothing."""

    rollout: Rollout
    answers: int = 0
    """Attempts that were really made."""
    _kept: dict[tuple[str | None, str, int | None], Trajectory] = field(default_factory=dict)

    async def __call__(self, policy: Policy, scenario: Scenario) -> Trajectory:
        """The answer, new or kept."""
        key = (policy.system_prompt, scenario.id, policy.seed)
        if key not in self._kept:
            self.answers += 1
            self._kept[key] = await self.rollout(policy, scenario)
        return self._kept[key]


@dataclass
class _Watch:
    """Called by gepa when a candidate was scored on all validation scenarios."""

    adapter: GEPAAdapter
    on_better: Better

    def on_valset_evaluated(self, event: Mapping[str, Any]) -> None:
        if event["is_best_program"]:
            self.on_better(playbook_of(event["candidate"][COMPONENT]), self.adapter.agent.answers)


class _Log:
    """gepa prints where it is given nothing."""

    def log(self, message: str) -> None:
        logger.info("%s", message)
