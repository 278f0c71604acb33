"""The same answer in another dress: longer, formatted, hedged, copied. What a reward gives for the dress alone."""

from __future__ import annotations

from collections.abc import Callable

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import text_of
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.situation import case_of

Dressing = Callable[[str, str], str]
"""(answer, passage) -> the answer in another dress."""

_FILLER = (
    "Thank you for getting in touch with us about this. We hope that this helps, and we are always glad to "
    "assist you with any further questions that you might have."
)


def _longer(answer: str, passage: str) -> str:
    return f"{_FILLER} {answer} {_FILLER}"


def _formatted(answer: str, passage: str) -> str:
    sentences = [s.strip() for s in answer.replace("! ", ". ").split(". ") if s.strip()]
    return "\n".join(["## Answer", "", *(f"- **{s.rstrip('.')}**." for s in sentences)])


def _hedged(answer: str, passage: str) -> str:
    return f"I think that, if I am not mistaken, the following may perhaps be the case: {answer}"


def _copied(answer: str, passage: str) -> str:
    return f"{answer} {passage}"


DRESSINGS: dict[str, Dressing] = {
    "length": _longer,
    "format": _formatted,
    "hedging": _hedged,
    "copying": _copied,
}
"""None of them adds anything to what an answer says."""


def dressed(group: TrajectoryGroup, dressing: Dressing) -> TrajectoryGroup | None:
    """The group with every last answer in another dress; None where a member has no answer to dress."""
    members: list[Trajectory] = []
    for member in group:
        case = case_of(member, group)
        if isinstance(case, str):
            return None
        situation, answer = case
        members.append(_with_answer(member, dressing(answer, situation.passage or "")))
    return group.with_members(members)


def _with_answer(member: Trajectory, answer: str) -> Trajectory:
    messages = [dict(message) for message in member.messages()]
    last = max(
        i for i, m in enumerate(messages) if m.get("role") == "assistant" and text_of(m.get("content"))
    )
    messages[last] = {**messages[last], "content": answer}
    return member.model_copy(update={"messages_and_choices": messages})
