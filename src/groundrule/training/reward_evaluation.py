"""A reward model on rankings that it did not learn from."""

from __future__ import annotations

from collections.abc import Sequence

from groundrule.algorithms.reward_evaluation import RewardEvaluation, ValuedRanking, evaluate_values
from groundrule.data.preferences import Ranking
from groundrule.errors import TrainingError
from groundrule.models.reward_model import RewardModel
from groundrule.training.ranking_batch import read_rankings


def evaluate_rankings(
    reward_model: RewardModel, rankings: Sequence[Ranking], *, margin_bins: int = 4
) -> RewardEvaluation:
    """Accuracy, by margin, calibration and length; lengths are characters of what the agent wrote.

    Raises `TrainingError` where no ranking puts one answer above another, and for an answer that the model cannot
    read whole. Certainties are not looked at: the orders given count as right.
    """
    read = read_rankings(rankings, reward_model)
    if not any(ranking.comparisons for ranking in read):
        raise TrainingError(
            f"{len(read)} rankings, and none puts one answer above another; there is nothing to measure a reward "
            "model on"
        )
    raw = iter(reward_model.raw_values([path for ranking in read for path in ranking.paths]))
    valued = [
        ValuedRanking(r.prompt, tuple(next(raw) for _ in r.paths), r.lengths, r.comparisons) for r in read
    ]
    return evaluate_values(valued, margin_bins=margin_bins)
