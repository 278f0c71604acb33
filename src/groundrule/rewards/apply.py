"""Write scores into a group: the one place where a `Score` becomes a reward."""

from __future__ import annotations

from collections.abc import Sequence

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import Trajectory

_OF_THE_GROUP = ("judge_", "judge/")


def apply_scores(group: TrajectoryGroup, scores: Sequence[Score], *, name: str) -> TrajectoryGroup:
    """A new group whose rewards are the scores, in group order; the given group is not changed.

    Everything else survives. The reward from before the first scoring stays in
    `metrics["independent_reward"]`, the score goes to `metrics["<name>_score"]`, its parts beside it, and
    the explanation into the logs. A member without a score keeps its reward and gets the reason in
    `unscored`, which every reader of rewards respects. What `Scores` say of the whole group becomes its
    metrics, in place of what an earlier scoring said.
    """
    if len(scores) != len(group):
        raise ValueError(f"{name} gave {len(scores)} scores for a group of {len(group)} trajectories")
    members = [_scored(member, score, name) for member, score in zip(group, scores, strict=True)]
    metrics = {key: value for key, value in group.metrics.items() if not key.startswith(_OF_THE_GROUP)}
    metrics |= scores.metrics if isinstance(scores, Scores) else {}
    costs = [score.cost for score in scores if score.cost is not None]
    if scores and len(costs) == len(scores):
        metrics[f"{name}_cost_usd"] = sum(costs)
    return group.with_members(members, metrics=metrics)


def _scored(member: Trajectory, score: Score, name: str) -> Trajectory:
    metrics = dict(member.metrics)
    logs = list(member.logs)
    if score.value is None:
        metrics.pop(f"{name}_score", None)
        logs.append(f"{name.upper()}: not scored: {score.reason}")
    else:
        metrics.setdefault("independent_reward", member.reward)
        metrics[f"{name}_score"] = score.value
        logs.append(f"{name.upper()} explanation: {score.explanation}")
    metrics.update({f"{name}/{part}": value for part, value in score.parts.items()})
    return member.model_copy(
        update={
            "messages_and_choices": list(member.messages_and_choices),
            "metadata": dict(member.metadata),
            "metrics": metrics,
            "logs": logs,
            "reward": member.reward if score.value is None else score.value,
            "unscored": score.reason,
        }
    )
