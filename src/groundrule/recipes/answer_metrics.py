"""What the answers of a step look like, whatever they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import is_choice, text_of
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.self_check import checks_itself


def answer_metrics(groups: Sequence[TrajectoryGroup]) -> dict[str, float | None]:
    """Mean sampled tokens of an attempt, the share that was cut, and the share that checks itself."""
    sampled = [choices for group in groups for member in group if (choices := sampled_by(member))]
    if not sampled:
        return {}
    return {
        "answers/tokens": fmean(sum(map(tokens_of, choices)) for choices in sampled),
        "answers/truncated": fmean(choices[-1].finish_reason == "length" for choices in sampled),
        "answers/self_check": fmean(any(map(_checks_itself, choices)) for choices in sampled),
    }


def sampled_by(member: Trajectory) -> list[Any]:
    """The policy's own turns of an attempt."""
    return [item for items in member.conversations() for item in items if is_choice(item)]


def tokens_of(choice: Any) -> int:
    """Sampled tokens of a choice; 0 where the endpoint did not return them."""
    return len(getattr(choice, "token_ids", None) or ())


def _checks_itself(choice: Any) -> bool:
    thinking = getattr(choice.message, "reasoning_content", None) or ""
    return checks_itself(f"{thinking}\n{text_of(choice.message.content)}")
