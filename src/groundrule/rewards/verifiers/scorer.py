"""A verifier as a scorer: each member of a group is checked against the reference of the group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import Trajectory
from groundrule.errors import GroundRuleError

Read = TypeVar("Read")


class NoAnswer(Exception):
    """The trajectory holds nothing to verify; the message says what is missing."""


def answer_of(trajectory: Trajectory) -> str:
    """The text of the last assistant message."""
    answer = last_answer(trajectory.messages())
    if answer is None:
        raise NoAnswer("no assistant message to verify")
    return answer


def group_reference(group: TrajectoryGroup) -> Any:
    """`metadata["reference"]` of the group."""
    reference = group.metadata.get("reference")
    if reference is None:
        raise NoAnswer('the group has no metadata["reference"]; put it there, or pass reference=')
    return reference


class VerifierScorer:
    """`verify(answer, reference) -> Score` for every member of a group, side by side, in threads.

    `reference` takes the group; `read` takes a trajectory and gives what is verified. A member without an answer, a
    group without a reference and a verifier that fails give no score with the reason; a setting that cannot work is
    raised.
    """

    def __init__(
        self,
        verify: Callable[[Read, Any], Score],
        *,
        reference: Callable[[TrajectoryGroup], Any] = group_reference,
        read: Callable[[Trajectory], Read] = answer_of,  # type: ignore[assignment]
    ) -> None:
        self.verify = verify
        self.reference = reference
        self.read = read

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member, in group order."""
        return Scores(await asyncio.gather(*(asyncio.to_thread(self._score, t, group) for t in group)))

    def _score(self, trajectory: Trajectory, group: TrajectoryGroup) -> Score:
        try:
            return self.verify(self.read(trajectory), self.reference(group))
        except NoAnswer as missing:
            return Score.none(str(missing))
        except GroundRuleError:
            raise
        except (
            Exception
        ) as error:  # The user's own functions run here: one broken member must not cost the others.
            return Score.none(f"the verifier failed: {type(error).__name__}: {error}")
