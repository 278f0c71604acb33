"""Rankings from groups that a judge or a rule has scored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from groundrule.data.answers import Answer, is_empty
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, key_of
from groundrule.data.pair_layouts import shared_len
from groundrule.data.preferences import Ranking
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, DataError

_ROUNDING = 1e-9
"""0.85 - 0.80 is a little below 0.05, and is meant to be 0.05."""


@dataclass
class GroupRankings:
    """The rankings, and what did not become part of one."""

    rankings: list[Ranking] = field(default_factory=list)
    groups: int = 0
    """All groups that were given."""
    unscored: int = 0
    """Answers without a score."""
    empty: int = 0
    """Answers that say nothing."""
    repeated: int = 0
    """Answers that say what another one of their group says."""
    chained: int = 0
    """Pairs at least the margin apart that are tied all the same, through answers between them."""
    too_few: int = 0
    """Groups with fewer than two different scored answers."""
    differing: list[str] = field(default_factory=list)
    """Groups whose members answer different prompts, by scenario or position."""

    @property
    def left_out(self) -> list[str]:
        """A line for each kind of thing that is in no ranking."""
        counts = {
            "answers without a score": self.unscored,
            "empty answers": self.empty,
            "answers that repeat another": self.repeated,
            "groups with fewer than two different scored answers": self.too_few,
            f"groups whose members answer different prompts ({', '.join(self.differing[:3])})": len(
                self.differing
            ),
            "pairs that are tied only through answers between them": self.chained,
        }
        return [f"{count} {what}" for what, count in counts.items() if count]


def rankings_from_groups(
    groups: Iterable[TrajectoryGroup],
    *,
    margin: float,
    source: str = "ruler",
    annotator: str | None = None,
) -> GroupRankings:
    """One ranking for each group, best score first.

    Scores less than `margin` apart are tied, and ties are transitive: in order of score, a new tier begins where
    an answer is at least `margin` below the one before it. So no pair is ever made of two answers closer than the
    margin; the price is that 0.50, 0.54 and 0.58 are one tier at 0.05, though the ends are 0.08 apart (counted as
    `chained`). Equal scores are tied at any margin.

    The prompt is what all members begin with, up to an agent's message. Members that say the same count once, with
    the mean of their scores. Unscored and empty members are left out and counted. Further conversations of an
    attempt are no part of its answer.
    """
    if not (math.isfinite(margin) and margin >= 0):
        raise ConfigError(
            f"margin is {margin}; it must be a finite number from 0 up, on the scale of the scores"
        )
    result = GroupRankings()
    for position, group in enumerate(groups, start=1):
        result.groups += 1
        answers = _answers(group, result)
        if answers is None:
            result.differing.append(group.scenario_id or f"#{position}")
        elif len(answers.members) < 2:
            result.too_few += 1
        else:
            tiers = _tiers(answers.members, margin)
            result.chained += sum(_apart_in(tier, margin) for tier in tiers)
            result.rankings.append(_ranking(group, answers, tiers, source=source, annotator=annotator))
    return result


@dataclass(frozen=True)
class _Answers:
    """The different answers of a group to one prompt."""

    prompt: list[Message]
    members: list[Answer]


def _answers(group: TrajectoryGroup, result: GroupRankings) -> _Answers | None:
    """None: the members do not answer one prompt."""
    spoken = [(member, member.messages()) for member in group.scored]
    spoken = [(member, messages) for member, messages in spoken if not is_empty(messages)]
    scores: dict[str, list[float]] = {}
    different: dict[str, tuple[Trajectory, list[Message]]] = {}
    for member, messages in spoken:
        key = key_of(messages)
        scores.setdefault(key, []).append(_finite(member.reward, group))
        different.setdefault(key, (member, messages))
    count = _prompt_len([messages for _, messages in different.values()])
    if len(different) > 1 and (
        count == 0 or not _have_same_tools([member for member, _ in different.values()])
    ):
        return None
    whole = {key: messages for key, (_, messages) in different.items() if not is_empty(messages[count:])}
    result.unscored += len(group) - len(group.scored)
    result.repeated += len(spoken) - len(different)
    result.empty += len(group.scored) - len(spoken) + len(different) - len(whole)
    members = [Answer(messages=whole[key][count:], score=fmean(scores[key])) for key in whole]
    return _Answers(next(iter(whole.values()), [])[:count], members)


def _finite(reward: float, group: TrajectoryGroup) -> float:
    if not math.isfinite(reward):
        raise DataError(
            f"an answer of scenario {group.scenario_id!r} has the reward {reward}; give it a number, or say in "
            "'unscored' why it has none"
        )
    return reward


def _prompt_len(conversations: Sequence[Sequence[Message]]) -> int:
    """The longest shared beginning after which every member goes on with a message of the agent's; 0 without one."""
    if not conversations:
        return 0
    for count in range(shared_len(conversations), 0, -1):
        if all(len(c) > count and c[count].get("role") == "assistant" for c in conversations):
            return count
    return 0


def _have_same_tools(members: Sequence[Trajectory]) -> bool:
    return all((member.tools or None) == (members[0].tools or None) for member in members)


def _is_apart(high: float, low: float, margin: float) -> bool:
    return high - low > max(margin - _ROUNDING, _ROUNDING)


def _tiers(answers: Sequence[Answer], margin: float) -> list[list[Answer]]:
    tiers: list[list[Answer]] = []
    for answer in sorted(answers, key=_score, reverse=True):
        if tiers and not _is_apart(_score(tiers[-1][-1]), _score(answer), margin):
            tiers[-1].append(answer)
        else:
            tiers.append([answer])
    return tiers


def _apart_in(tier: Sequence[Answer], margin: float) -> int:
    """How many pairs of one tier are not close themselves."""
    scores = [_score(answer) for answer in tier]
    return sum(_is_apart(high, low, margin) for i, high in enumerate(scores) for low in scores[i + 1 :])


def _score(answer: Answer) -> float:
    assert answer.score is not None
    return answer.score


def _ranking(
    group: TrajectoryGroup,
    answers: _Answers,
    tiers: Sequence[Sequence[Answer]],
    *,
    source: str,
    annotator: str | None,
) -> Ranking:
    return Ranking(
        prompt=answers.prompt,
        answers=answers.members,
        order=[[answer.id for answer in tier] for tier in tiers],
        source=source,
        annotator=annotator,
        scenario_id=group.scenario_id,
        tools=group.scored[0].tools,
    )
