"""Evaluation on held-out scenarios: one answer each, scored by the judge and by checks that no judge uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.evaluation import Attempts, EvaluatedAnswer, Evaluation
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.checks import check_answer, summarise
from groundrule.rewards.frozen_spec import by_spec
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rollouts.gather import gather_trajectories


@dataclass
class Evaluator:
    """Answers every held-out scenario once, with the agent as it is then."""

    scenarios: Sequence[Scenario]
    scorer: Scorer
    rollout: Rollout
    backend: LocalBackend
    max_exceptions: float = 0.5
    """Failed rollouts that an evaluation survives: a count, or a share below 1."""
    timeout_s: float | None = None
    verified: bool = False
    """Whether a verifier has a part in the score."""
    spec: str | None = None
    """What answers are judged by, where it is not what the agent is given."""
    sample: Callable[[TrainableModel], Awaitable[Attempts]] | None = None
    """Several sampled answers to each scenario, verified; see `recipes.attempts`."""

    async def evaluate(self, model: TrainableModel, *, step: int) -> Evaluation:
        """The record that goes into the run folder."""
        groups = await self.attempts(model)
        scores = [await score_alone(by_spec(self.scorer, self.spec), group) for group in groups]
        found = record(step, self.scenarios, [answer_of(g) for g in groups], scores)
        if self.sample is not None:
            found["attempts"] = await self.sample(model)
        return found

    async def attempts(self, model: TrainableModel) -> list[TrajectoryGroup]:
        """A group of one per scenario; where the attempt failed, it holds the exception instead."""
        policy = model.policy(version=await model.get_step())
        with self.backend.lockstep(model, self.rollout, policy, len(self.scenarios)) as attempt:
            results = await gather_trajectories(
                (attempt(s) for s in self.scenarios),
                pbar_desc=None,
                max_exceptions=self.max_exceptions,
                max_concurrency=None,
                timeout_s=self.timeout_s,
            )
        return [
            TrajectoryGroup([result], scenario_id=s.id, metadata=scenario_metadata(s, verified=self.verified))
            for s, result in zip(self.scenarios, results, strict=True)
        ]


def groups_of(
    scenarios: Iterable[Scenario],
    attempt: Callable[[Scenario], Awaitable[Trajectory]],
    size: int,
    *,
    verified: bool,
) -> Iterator[TrajectoryGroup]:
    """For each scenario a group of so many attempts that are under way, to be gathered."""
    for scenario in scenarios:
        yield TrajectoryGroup(
            [attempt(scenario) for _ in range(size)],
            scenario_id=scenario.id,
            metadata=scenario_metadata(scenario, verified=verified),
        )


def scenario_metadata(scenario: Scenario, *, verified: bool = False) -> dict[str, Any]:
    """What a scorer may know about the scenario: only a verifier its reference and metadata, nobody its facts."""
    known: dict[str, Any] = {"question": scenario.question, "context": scenario.context}
    return {**scenario.metadata, **known, "reference": scenario.reference} if verified else known


def answer_of(group: TrajectoryGroup) -> str | None:
    """The text of the last assistant turn of the group's only member; None where there is none."""
    return last_answer(group.trajectories[0].messages()) if group.trajectories else None


async def score_alone(scorer: Scorer, group: TrajectoryGroup) -> Score:
    """An absolute score. Judges that only compare give none, with the reason; so does a failed attempt."""
    if not group.trajectories:
        return Score.none(f"the attempt failed: {group.exceptions[0]}")
    return (await scores_or_reasons(scorer, group))[0]


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
    step: int, scenarios: Sequence[Scenario], answers: Sequence[str | None], scores: Sequence[Score]
) -> Evaluation:
    """Answers, scores and checks in the form of the run folder. Missing answers count in no mean."""
    given = [(a, s) for a, s in zip(answers, scenarios, strict=True) if a is not None]
    values = [s.value for s in scores if s.value is not None]
    raws = [s.parts["raw"] for s in scores if "raw" in s.parts]
    return Evaluation(
        step=step,
        split="held-out",
        judge={"mean": fmean(values) if values else None, "raw_mean": fmean(raws) if raws else None},
        checks=dict(summarise([a for a, _ in given], [s for _, s in given])),
        answers=[_answer(*item) for item in zip(scenarios, answers, scores, strict=True)],
    )


def summary_line(record: Evaluation) -> str:
    """The evaluation in a line or two, with one of its answers."""
    has_passages = any(answer["context"] for answer in record["answers"])
    numbers = {"score": record["judge"]["mean"], **(record["checks"] if has_passages else {})}
    said = ", ".join(f"{k} {v:.3f}" for k, v in numbers.items() if v is not None and k in _SHOWN)
    example = record["answers"][0]
    answered = " ".join(example["answer"].split())
    lines = [f"held-out: {said}", f"  asked: {example['question']}", f"  answered: {answered}"]
    if "attempts" in record:
        lines.insert(1, f"  {_attempts_line(record['attempts'])}")
    return "\n".join(lines)


def _attempts_line(attempts: Attempts) -> str:
    """Of several sampled answers."""
    named = {
        **{f"pass@{k}": v for k, v in attempts["pass_at"].items()},
        f"maj@{attempts['attempts']}": attempts["majority"],
    }
    return "sampled: " + ", ".join(
        f"{name} {value:.3f}" for name, value in named.items() if value is not None
    )


_SHOWN = ("score", "facts", "grounded", "copied")


def _answer(scenario: Scenario, answer: str | None, score: Score) -> EvaluatedAnswer:
    return EvaluatedAnswer(
        scenario_id=scenario.id,
        question=scenario.question,
        context=scenario.context,
        reference=scenario.reference,
        kind=str(scenario.metadata.get("kind", "")),
        answer=answer or "",
        score=score.value,
        raw=score.parts.get("raw"),
        explanation=score.explanation if score.value is not None else str(score.reason),
        checks={} if answer is None else asdict(check_answer(answer, scenario)),
    )
