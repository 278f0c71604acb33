"""Ask scorers about a group, and what becomes of one that fails."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from groundrule._util.aio import settle
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score, Scores
from groundrule.errors import ConfigError, GroundRuleError

logger = logging.getLogger(__name__)


async def scores_or_reasons(scorer: Scorer, group: TrajectoryGroup) -> Scores:
    """What the scorer says. One that breaks leaves every member with the reason; a wrong setting raises."""
    try:
        scores = await scorer.score(group)
    except ConfigError:
        raise
    except Exception as error:
        logger.warning(
            "%s gave no scores", type(scorer).__name__, exc_info=not isinstance(error, GroundRuleError)
        )
        return _none_for(group, error)
    if len(scores) != len(group):
        reason = f"{type(scorer).__name__} gave {len(scores)} scores for a group of {len(group)} trajectories"
        return Scores(Score.none(reason) for _ in group)
    return _with_metrics(scores)


async def scores_of_each(
    scorers: Mapping[str, Scorer], group: TrajectoryGroup, *, role: str
) -> dict[str, Scores]:
    """What each of several scorers says, asked at once; `role` ("juror", "part") names them in the log.

    One that cannot score leaves every member with its reason. A wrong setting and a fault in a scorer's own code
    raise: the others alone would make another reward than the one that was asked for.
    """
    results = await settle([scorer.score(group) for scorer in scorers.values()])
    said: dict[str, Scores] = {}
    for name, result in zip(scorers, results, strict=True):
        if isinstance(result, GroundRuleError) and not isinstance(result, ConfigError):
            logger.warning("%s %s: %s", role, name, result)
            said[name] = _none_for(group, result)
        elif isinstance(result, BaseException):
            raise result
        else:
            said[name] = _with_metrics(result)
    return said


def _none_for(group: TrajectoryGroup, error: Exception) -> Scores:
    return Scores(Score.none(f"{type(error).__name__}: {error}") for _ in group)


def _with_metrics(scores: list[Score]) -> Scores:
    return scores if isinstance(scores, Scores) else Scores(scores)
