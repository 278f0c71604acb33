"""Evaluation on held-out scenarios: one answer each, scored by the judge and by checks that no judge uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.evaluation import EvaluatedAnswer, Evaluation
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import text_of
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.checks import check_answer, summarise
from groundrule.rollouts.gather import gather_trajectory_groups


@dataclass
class Evaluator:
    """Answers every held-out scenario once, with the agent as it is then."""

    scenarios: Sequence[Scenario]
    scorer: Scorer
    rollout: Rollout
    backend: LocalBackend

    async def evaluate(self, model: TrainableModel, *, step: int) -> Evaluation:
        """The record that goes into the run folder."""
        groups = await self.answer(model)
        scores = [await score_alone(self.scorer, group) for group in groups]
        return record(step, self.scenarios, [answer_of(g) for g in groups], scores)

    async def answer(self, model: TrainableModel) -> list[TrajectoryGroup]:
        """A group of one per scenario; an attempt that failed leaves its group empty."""
        policy = model.policy(version=await model.get_step())
        with self.backend.lockstep(model, self.rollout, policy, len(self.scenarios)) as attempt:
            return await gather_trajectory_groups(
                (TrajectoryGroup([attempt(s)], metadata=scenario_metadata(s)) for s in self.scenarios),
                pbar_desc=None,
                max_concurrency=None,
            )


def scenario_metadata(scenario: Scenario) -> dict[str, Any]:
    """What a judge may know about the scenario: never its reference or facts."""
    return {"question": scenario.question, "context": scenario.context}


def answer_of(group: TrajectoryGroup) -> str:
    """The text of the last assistant turn of the group's only member."""
    turns = group.trajectories[0].messages()
    return text_of(next(t.get("content") for t in reversed(turns) if t.get("role") == "assistant"))


async def score_alone(scorer: Scorer, group: TrajectoryGroup) -> Score:
    """An absolute score. Judges that only compare give none, with the reason."""
    return (await scorer.score(group))[0]


def group_of_texts(
    scenario: Scenario, answers: Sequence[str], *, system: str | None = None
) -> TrajectoryGroup:
    """Given answers as a group, optionally under another system prompt."""
    opening = scenario.messages(system=system)
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=[*opening, {"role": "assistant", "content": a}]) for a in answers],
        scenario_id=scenario.id,
        metadata=scenario_metadata(scenario),
    )


def record(
    step: int, scenarios: Sequence[Scenario], answers: Sequence[str], scores: Sequence[Score]
) -> Evaluation:
    """Answers, scores and checks in the form of the run folder."""
    values = [s.value for s in scores if s.value is not None]
    raws = [s.parts["raw"] for s in scores if "raw" in s.parts]
    return Evaluation(
        step=step,
        split="held-out",
        judge={"mean": fmean(values) if values else None, "raw_mean": fmean(raws) if raws else None},
        checks=dict(summarise(answers, scenarios)),
        answers=[_answer(*item) for item in zip(scenarios, answers, scores, strict=True)],
    )


def summary_line(record: Evaluation) -> str:
    """The evaluation in one line, with one of its answers."""
    numbers = {"judge": record["judge"]["mean"], **record["checks"]}
    said = ", ".join(f"{k} {v:.3f}" for k, v in numbers.items() if v is not None and k in _SHOWN)
    example = record["answers"][0]
    return (
        f"held-out: {said}\n  asked: {example['question']}\n  answered: {' '.join(example['answer'].split())}"
    )


_SHOWN = ("judge", "facts", "grounded", "copied")


def _answer(scenario: Scenario, answer: str, score: Score) -> EvaluatedAnswer:
    return EvaluatedAnswer(
        scenario_id=scenario.id,
        question=scenario.question,
        context=scenario.context,
        reference=scenario.reference,
        kind=str(scenario.metadata.get("kind", "")),
        answer=answer,
        score=score.value,
        raw=score.parts.get("raw"),
        explanation=score.explanation if score.value is not None else str(score.reason),
        checks=asdict(check_answer(answer, scenario)),
    )
