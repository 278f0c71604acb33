"""What passes through the model at once, as the trainer cuts a step: the largest piece, and what is held above it.

A group is a tree: the prompt once, and behind it all answers but for their last tokens, which nothing is predicted
from. Groups that fit into `tokens_at_once` together are one piece. A group that does not fit is cut behind its
prompt: the prompt's graph stays, and as many answers as fit are one piece behind it. A single answer is never cut.
Answers are taken to be of full length and to differ from their first token on.
"""

from __future__ import annotations

from dataclasses import dataclass

from groundrule.algorithms.memory_plan.settings import PlanSettings


@dataclass(frozen=True)
class Pass:
    """One forward pass whose graph is held."""

    tokens: int
    past: int = 0
    """Tokens before it whose keys and values are copied in front of its own."""


@dataclass(frozen=True)
class Piece:
    """All graphs that exist together at the worst moment of an update."""

    passes: tuple[Pass, ...]
    scored: int
    """Positions of the last pass that reach the output layer."""

    @property
    def tokens(self) -> int:
        return sum(p.tokens for p in self.passes)

    @property
    def cut(self) -> int:
        """Tokens whose keys and values gather gradients of their own."""
        return self.passes[-1].past


def largest_piece(settings: PlanSettings, *, answers: int | None = None) -> Piece:
    """The piece of a step that needs most memory."""
    size = answers or settings.group_size
    read = settings.answer_tokens - 1
    group = settings.prompt_tokens + size * read
    if group <= settings.tokens_at_once or size == 1 or read == 0:
        together = max(1, min(settings.groups, settings.tokens_at_once // group))
        return Piece((Pass(together * group),), together * size * settings.answer_tokens)
    some = max(1, min(size, settings.tokens_at_once // read))
    prompt = settings.prompt_tokens
    return Piece((Pass(prompt), Pass(some * read, past=prompt)), some * read)
