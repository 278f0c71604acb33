"""Leave out of one trajectory what tells a judge least, until it fits.

Left out first: old tool results, then the middle of long arguments, reasoning, the words of agent and user
between, older ones before newer ones, and whole old turns with their calls only when nothing else is left.
The final answer and the last error keep at least their head and tail. No step takes more than is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from groundrule.data.messages import text_of
from groundrule.rewards.attempt import Turn
from groundrule.rewards.elision import Elision, Shortened, elided_turn
from groundrule.rewards.neutral import neutral
from groundrule.rewards.tokens import most_tokens
from groundrule.rewards.transcript import arguments_text, rendered_turns

FINAL_FLOOR = 160
"""Tokens of the final answer that are always shown, half of them from its end."""
ERROR_FLOOR = 100
_LONG_ARGUMENTS = 300
_SHORT_ARGUMENTS = 60
_MARK = 24
"""Tokens of a line that says what is left out."""
_LEAST_PART = 40
"""Less than that of a text is not worth showing."""
_SIGNS_OF_ERROR = re.compile(
    r"\b(?:error|exception|traceback|fail(?:ed|ure)|denied|not found|invalid|timed? ?out|refused|[45]\d\d)\b",
    re.IGNORECASE,
)
_LOOKED_AT = 400
_MOST_CHARACTERS_A_TOKEN = 8


@dataclass(frozen=True)
class Step:
    """One thing to leave out."""

    index: int
    part: Literal["content", "reasoning", "arguments", "turn"]
    keep: int = 0
    """Tokens of it that stay."""


def shorten(
    conversations: Sequence[Sequence[Turn]], cap: int, costs: Sequence[int] | None = None
) -> list[list[Turn]] | None:
    """The conversations with what must go left out; None when even what has to stay is over the cap.

    The last one is the main conversation, the further ones count as older. What a turn has to keep can be
    said under its key `stays`: "whole", or "partly" where its beginning is shown elsewhere. `costs` are those
    of all turns in order, where they are known already.
    """
    draft = _Draft(conversations, costs)
    for step in _steps(draft.original, main=len(draft.original) - len(conversations[-1])):
        if draft.total <= cap:
            break
        draft.apply(step, cap)
    return draft.conversations() if draft.total <= cap else None


def cost_of(turn: Turn) -> int:
    """The tokens of a turn with its boundary lines, guessed on the safe side; images are not counted."""
    return most_tokens(rendered_turns([turn]))


def _steps(turns: Sequence[Turn], main: int) -> Iterator[Step]:
    """From what tells least to what tells most; the main conversation begins at turn `main`."""
    final = _last(turns, main, lambda turn: turn["role"] == "assistant")
    error = _last(turns, main, _is_error)
    kept = {final, error, *(i for i, turn in enumerate(turns) if _stays_whole(turn))}
    old = [i for i in range(len(turns)) if i not in kept]
    said = [i for i in old if turns[i]["role"] != "tool"]
    calling = [i for i, turn in enumerate(turns) if turn["calls"]]
    yield from (Step(i, "content") for i in old if turns[i]["role"] == "tool")
    yield from (Step(i, "arguments", _LONG_ARGUMENTS) for i in calling)
    yield from (Step(i, "reasoning") for i in range(len(turns)))
    yield from (Step(i, "content") for i in said[1:])
    yield from (Step(i, "arguments", _SHORT_ARGUMENTS) for i in calling)
    yield from (Step(i, "content") for i in said[:1])
    yield from (Step(i, "turn") for i in old)
    if error is not None:
        yield Step(error, "content", ERROR_FLOOR)
    if final is not None:
        yield Step(final, "arguments")
        yield Step(final, "content", FINAL_FLOOR)


def _last(turns: Sequence[Turn], start: int, wanted: Callable[[Turn], bool]) -> int | None:
    return next((i for i in range(len(turns) - 1, start - 1, -1) if wanted(turns[i])), None)


def _stays_whole(turn: Turn) -> bool:
    # A system message among an attempt's own turns is the criterion of this one trajectory.
    return turn["role"] in ("system", "developer") or turn.get("stays") == "whole"


def _is_error(turn: Turn) -> bool:
    text = text_of(turn["content"]) if turn["role"] == "tool" else ""
    return any(_SIGNS_OF_ERROR.search(part) for part in (text[:_LOOKED_AT], text[-_LOOKED_AT:]))


class _Draft:
    """Turns on their way to being short enough."""

    def __init__(self, conversations: Sequence[Sequence[Turn]], costs: Sequence[int] | None) -> None:
        self.original = [turn for turns in conversations for turn in turns]
        self._conversation = [number for number, turns in enumerate(conversations) for _ in turns]
        self._count = len(conversations)
        self._turns: list[Turn | None] = list(self.original)
        """None where one is left out whole."""
        self._costs = [cost_of(turn) for turn in self.original] if costs is None else list(costs)
        self._left_out = list(self._costs)
        self.total = sum(self._costs)

    def apply(self, step: Step, cap: int) -> None:
        """Take the step as far as it is needed."""
        turn = self._turns[step.index]
        if turn is None:
            return
        changed = _less(turn, step, need=self.total - cap)
        if changed is None:
            self._drop(step.index)
        elif changed is not turn and (cost := cost_of(changed)) < self._costs[step.index]:
            self._turns[step.index] = changed
            self.total += cost - self._costs[step.index]
            self._costs[step.index] = cost

    def conversations(self) -> list[list[Turn]]:
        """What is left, with one line for each run of turns left out."""
        result: list[list[Turn]] = [[] for _ in range(self._count)]
        for index, turn in enumerate(self._turns):
            into = result[self._conversation[index]]
            if turn is not None:
                into.append(turn)
                continue
            elision = Elision(self._left_out[index], 1, int(self.original[index]["role"] == "tool"))
            if into and isinstance(into[-1]["content"], Elision):
                elision = into.pop()["content"] + elision
            into.append(elided_turn(elision))
        return result

    def _drop(self, index: int) -> None:
        beside = [i for i in (index - 1, index + 1) if 0 <= i < len(self._turns)]
        runs = sum(
            self._turns[i] is None and self._conversation[i] == self._conversation[index] for i in beside
        )
        self._turns[index] = None
        # A run of turns left out has one line: a new run adds one, joining two saves one.
        self.total += _MARK * (1 - runs) - self._costs[index]


def _less(turn: Turn, step: Step, need: int) -> Turn | None:
    """The turn with `need` tokens less, or as many as the step may take; None: without the turn."""
    if step.part == "content":
        return _less_content(turn, step.keep, need)
    if step.part == "arguments":
        calls = [
            {**call, "arguments": _less_arguments(call["arguments"], step.keep, need)}
            for call in turn["calls"]
        ]
        return {**turn, "calls": calls}
    if step.part == "reasoning":
        return {**turn, "reasoning": None} if turn.get("reasoning") else turn
    return turn if turn.get("stays") else None


def _less_content(turn: Turn, keep: int, need: int) -> Turn | None:
    content = turn["content"]
    if not content:
        return turn
    text = content if isinstance(content, str) else text_of(content)
    if isinstance(content, str) or keep:
        short = _head_and_tail(text, keep, need)
        if short is not None:
            return {**turn, "content": short} if isinstance(short, Shortened) else turn
    if turn["calls"] or turn.get("stays") or turn.get("refusal"):
        return {**turn, "content": Shortened("", Elision(most_tokens(text)), "")}
    return None


def _less_arguments(arguments: Any, keep: int, need: int) -> Any:
    text = arguments_text(arguments)
    if isinstance(text, Shortened):
        before, text = text.elided.tokens, text.head + text.tail
    else:
        before = 0
    short = _head_and_tail(text, keep, need) if text else text
    if short is None:
        return Shortened("", Elision(before + most_tokens(text)), "")
    if isinstance(short, Shortened):
        return Shortened(short.head, Elision(before + short.elided.tokens), short.tail)
    return arguments


def _head_and_tail(text: str, keep: int, need: int) -> str | Shortened | None:
    """The text less `need` tokens of its middle, but at least `keep` of it; None where too little would stay."""
    # Measured as it will be shown: made harmless, a text may have become longer.
    text = neutral(text)
    tokens = most_tokens(text)
    room = max(keep, tokens - max(need, 0) - _MARK)
    if room >= tokens:
        return text
    if room < _LEAST_PART:
        return None
    head = _characters(text, room // 2)
    tail = len(text) - _characters(text[::-1], room - room // 2)
    return Shortened(text[:head].rstrip(), Elision(most_tokens(text[head:tail])), text[tail:].lstrip())


def _characters(text: str, tokens: int) -> int:
    """How many of the first characters take at most so many tokens."""
    low, high = 0, min(len(text), tokens * _MOST_CHARACTERS_A_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if most_tokens(text[:middle]) <= tokens else (low, middle - 1)
    return low
