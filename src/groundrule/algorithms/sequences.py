"""Sampled token sequences of a trajectory, taken from what the endpoint returned and never re-tokenised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from groundrule.data.messages import is_choice
from groundrule.data.trajectory import Trajectory


@dataclass(frozen=True)
class TokenSequence:
    """A prompt and what followed it. `sampled[i]` is True where token i was drawn from the policy."""

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    sampled: tuple[bool, ...]
    logprobs: tuple[float, ...]
    """Of the sampled tokens when they were drawn; 0.0 at the others."""
    temperature: float = 1.0

    @property
    def trained(self) -> int:
        """How many tokens are trained on."""
        return sum(self.sampled)


def sequences_of(trajectory: Trajectory) -> list[TokenSequence]:
    """Every sampled token of the trajectory, each exactly once, after the prompt it was really drawn from.

    A turn whose prompt begins with all earlier tokens continues that sequence (tool results and
    headers in between are not trained on); any other turn starts a sequence of its own, as happens
    when a template drops earlier thinking.
    """
    return [sequence for sequences in histories_of(trajectory) for sequence in sequences]


def histories_of(trajectory: Trajectory) -> list[list[TokenSequence]]:
    """The same, conversation by conversation."""
    return [joined(filter(None, map(_turn, items))) for items in trajectory.conversations()]


def joined(turns: Iterable[TokenSequence]) -> list[TokenSequence]:
    """The turns of one conversation, those that continue each other as one sequence."""
    sequences: list[TokenSequence] = []
    for turn in turns:
        longer = _continued(sequences[-1], turn) if sequences else None
        if longer is None:
            sequences.append(turn)
        else:
            sequences[-1] = longer
    return sequences


def is_trainable(item: object) -> bool:
    """True for a Choice that carries its token ids, the prompt's, and a logprob for each token."""
    return _turn(item) is not None


def _turn(item: Any) -> TokenSequence | None:
    if not is_choice(item):
        return None
    ids, prompt = getattr(item, "token_ids", None), getattr(item, "prompt_token_ids", None)
    content = getattr(item.logprobs, "content", None) if getattr(item, "logprobs", None) else None
    if not ids or prompt is None or not content or len(content) != len(ids):
        return None
    temperature = (getattr(item, "sampling", None) or {}).get("temperature", 1.0)
    return TokenSequence(
        prompt_ids=tuple(prompt),
        ids=tuple(ids),
        sampled=(True,) * len(ids),
        logprobs=tuple(token.logprob for token in content),
        temperature=temperature or 1.0,
    )


def _continued(before: TokenSequence, turn: TokenSequence) -> TokenSequence | None:
    """Both as one sequence when the turn's prompt begins with everything before it; else None."""
    seen = before.prompt_ids + before.ids
    if turn.prompt_ids[: len(seen)] != seen or turn.temperature != before.temperature:
        return None
    between: Sequence[int] = turn.prompt_ids[len(seen) :]
    return TokenSequence(
        prompt_ids=before.prompt_ids,
        ids=(*before.ids, *between, *turn.ids),
        sampled=(*before.sampled, *(False for _ in between), *turn.sampled),
        logprobs=(*before.logprobs, *(0.0 for _ in between), *turn.logprobs),
        temperature=before.temperature,
    )
