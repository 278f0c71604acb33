"""What passes through the model at once, as the trainer cuts a step: the largest piece, and what is held above it.

A group is a tree: the prompt once, and behind it all answers but for their last tokens, which nothing is predicted
from. Groups that fit into `tokens_at_once` together are one piece. A group that does not fit is cut behind its
prompt: the prompt's graph stays, and as many answers as fit are one piece behind it. A single answer is never cut.
PPO makes an update of a few answers drawn from all groups, so that a piece has no more answers than that, and may have
some of many groups. Answers are taken to be of full length and to differ from their first token on.
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


@dataclass(frozen=True)
class _Pack:
    """Prompts that go through together, and answers behind them."""

    prompts: int
    answers: int


def largest_piece(
    settings: PlanSettings, *, answers: int | None = None, minibatch: int | None = None
) -> Piece:
    """The piece of a step that needs most memory.

    `answers`: to one prompt, where the method fixes it. `minibatch`: so many answers, of whatever groups, make one
    update; None: the whole step does.
    """
    size = answers or settings.group_size
    drawn = minibatch if minibatch is not None and minibatch < settings.groups * size else None
    size = min(size, drawn or size)
    prompt, read = settings.prompt_tokens, settings.answer_tokens - 1
    group = prompt + size * read
    if group > settings.tokens_at_once and size > 1 and read > 0:
        some = max(1, min(size, settings.tokens_at_once // read))
        return Piece((Pass(prompt), Pass(some * read, past=prompt)), some * read)
    if drawn is not None:
        pack = _drawn(settings, size, drawn)
    else:
        together = max(1, min(settings.groups, settings.tokens_at_once // group))
        pack = _Pack(together, together * size)
    tokens = pack.prompts * prompt + pack.answers * read
    return Piece((Pass(tokens),), pack.answers * settings.answer_tokens)


def _drawn(settings: PlanSettings, size: int, minibatch: int) -> _Pack:
    """The fullest pack that a draw can make, at most `size` answers to a prompt."""
    prompt, read = settings.prompt_tokens, settings.answer_tokens - 1
    fitting = [
        _Pack(prompts, answers)
        for answers in range(1, minibatch + 1)
        for prompts in range(-(-answers // size), min(answers, settings.groups) + 1)
        if prompts * prompt + answers * read <= settings.tokens_at_once
    ]
    return max(fitting, key=lambda p: (p.prompts * prompt + p.answers * read, p.answers), default=_Pack(1, 1))
