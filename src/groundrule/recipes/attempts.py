"""Several sampled answers to each held-out scenario, verified: pass@1, pass@k and the vote of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import fmean
from typing import Any

from groundrule.algorithms.pass_at_k import majority_is_right, pass_at_k
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.evaluation import Attempts
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.recipes.answer_metrics import answer_metrics
from groundrule.recipes.evaluate import groups_of
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.verifiers.math_answer import find_answer
from groundrule.rollouts.gather import gather_trajectory_groups

RIGHT = 1.0
"""A verifier's value from which an attempt counts as right; partial credit is not enough."""
AT_ONCE = 512
"""Attempts that are decoded as one gather."""

Vote = Callable[[str], str | None]


@dataclass
class Sampler:
    """Answers every held-out scenario several times, with the agent as it is then."""

    scenarios: Sequence[Scenario]
    verifier: Scorer
    rollout: Rollout
    backend: LocalBackend
    attempts: int
    vote: Vote
    max_exceptions: float = 0.5
    timeout_s: float | None = None

    async def __call__(self, model: TrainableModel) -> Attempts:
        """The record that goes into an evaluation."""
        groups = await gather_attempts(
            self.backend,
            model,
            self.rollout,
            self.scenarios,
            self.attempts,
            max_exceptions=self.max_exceptions,
            timeout_s=self.timeout_s,
        )
        scored = [await scores_or_reasons(self.verifier, group) for group in groups]
        return record(self.scenarios, groups, scored, attempts=self.attempts, vote=self.vote)


async def gather_attempts(
    backend: LocalBackend,
    model: TrainableModel,
    rollout: Rollout,
    scenarios: Sequence[Scenario],
    attempts: int,
    *,
    max_exceptions: float = 0.5,
    timeout_s: float | None = None,
) -> list[TrajectoryGroup]:
    """A group of so many attempts for each scenario, with the references that a verifier needs."""
    policy = model.policy(version=await model.get_step())
    size = max(1, AT_ONCE // attempts)
    groups: list[TrajectoryGroup] = []
    for start in range(0, len(scenarios), size):
        part = scenarios[start : start + size]
        with backend.lockstep(model, rollout, policy, len(part) * attempts) as attempt:
            groups += await gather_trajectory_groups(
                groups_of(part, attempt, attempts, verified=True),
                pbar_desc=None,
                max_exceptions=max_exceptions,
                max_concurrency=None,
                timeout_s=timeout_s,
            )
    return groups


def vote_by(verifier: str | None) -> Vote:
    """What an answer votes for: of mathematics what its last box holds, otherwise its whole text."""
    return _boxed if verifier == "math" else _whole


def record(
    scenarios: Sequence[Scenario],
    groups: Sequence[TrajectoryGroup],
    scored: Sequence[Sequence[Score]],
    *,
    attempts: int,
    vote: Vote,
) -> Attempts:
    """Means over scenarios of what was verified: an attempt that the verifier cannot decide is not right here, and is
    counted in `unscored`, while as a reward it has no score.

    Where nothing of a scenario could be decided it is left out; one with fewer than k attempts only of that pass@k.
    """
    rows = [
        _row(scenario, group, scores, vote)
        for scenario, group, scores in zip(scenarios, groups, scored, strict=True)
    ]
    ks = list(takewhile(lambda k: k <= attempts, (2**i for i in range(attempts))))
    if attempts not in ks:
        ks.append(attempts)
    return Attempts(
        attempts=attempts,
        pass_at={
            str(k): _mean(
                pass_at_k(r["attempts"], r["right"], k) for r in rows if r["verdicts"] and r["attempts"] >= k
            )
            for k in ks
        },
        majority=_mean(r["majority"] for r in rows if r["majority"] is not None),
        unscored=sum(score.value is None for scores in scored for score in scores),
        answers=answer_metrics(groups),
        scenarios=rows,
    )


def _row(scenario: Scenario, group: TrajectoryGroup, scores: Sequence[Score], vote: Vote) -> dict[str, Any]:
    texts = [last_answer(member.messages()) or "" for member in group]
    is_right = [score.value is not None and score.value >= RIGHT for score in scores]
    verdicts = sum(score.value is not None for score in scores)
    return {
        "scenario_id": scenario.id,
        "attempts": len(texts),
        "verdicts": verdicts,
        "right": sum(is_right),
        "majority": majority_is_right([vote(text) for text in texts], is_right) if verdicts else None,
        "answers": texts,
    }


def _boxed(answer: str) -> str | None:
    found = find_answer(answer).text
    return None if found is None else "".join(found.split())


def _whole(answer: str) -> str | None:
    return " ".join(answer.lower().split()) or None


def _mean(values: Any) -> float | None:
    known = list(values)
    return fmean(known) if known else None
