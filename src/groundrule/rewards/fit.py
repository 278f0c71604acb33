"""Make long trajectories fit into a judge's context: the same cap for every member of a group.

What the judge is shown once (its instructions, the spec, the tools, the shared beginning) and the room for
its reply come off the context; the rest is divided. Short trajectories leave their room to the long ones,
and each that is longer than the cap is shortened (see `shorten`) with lines that say what is missing. Of the
shared beginning only what agents and tools wrote can be shortened too, where it takes more than half.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from groundrule.errors import JudgeError
from groundrule.rewards.attempt import Attempt, Turn, shared_len, shared_system_len
from groundrule.rewards.elision import Shortened, is_elided
from groundrule.rewards.shorten import cost_of, shorten
from groundrule.rewards.tokens import most_tokens
from groundrule.rewards.transcript import render, shared_opening

_MARGIN = 0.95
"""Share of the context that is planned with; chat templates and re-asks take the rest."""
_MOST_TOKENS_A_CHARACTER = 1.5
"""Of the JSON of an attempt, boundary lines included: what is below this cannot be too long."""
_REPLY_TOKENS = 200
_REPLY_TOKENS_EACH = 100


@dataclass(frozen=True)
class Fitted:
    """A group as a judge can read it."""

    attempts: list[Attempt]
    elided: list[float]
    """For each attempt the share of its own tokens that is not shown: 0 whole, near 1 hardly anything."""
    cap_tokens: int | None = None
    """What an attempt may take of its own; None where all are shown whole."""
    shared_elided: float = 0.0
    """The same share of what all attempts have in common after the system prompt."""

    @property
    def messages(self) -> list[str]:
        """For each attempt what to say of it; "" where it is whole."""
        return [
            f"about {share:.0%} of this trajectory was not shown" if share else "" for share in self.elided
        ]


def fit(
    attempts: Sequence[Attempt],
    budget_tokens: int,
    *,
    instructions: str = "",
    reply_tokens: int | None = None,
) -> Fitted:
    """The attempts in their order, shortened where they would not fit.

    `budget_tokens` is the judge's whole context; `instructions` what it reads beside the attempts;
    `reply_tokens` what its reply may take (a judge that thinks needs thousands), 200 and 100 for each attempt
    unless said otherwise. Raises `JudgeError` with the sizes when even the floor of each attempt does not fit.
    """
    reply = _REPLY_TOKENS + _REPLY_TOKENS_EACH * len(attempts) if reply_tokens is None else reply_tokens
    room = int(budget_tokens * _MARGIN) - _instructions_tokens(instructions) - reply
    whole = Fitted(list(attempts), [0.0] * len(attempts))
    if sum(len(attempt.key) for attempt in attempts) * _MOST_TOKENS_A_CHARACTER < room or not attempts:
        return whole
    full = _Plan.of(attempts)
    if full.frame + sum(full.sizes) <= room:
        return whole
    plan = full.with_less_shared(room)
    cap = _common_cap(plan.sizes, room - plan.frame)
    shared_elided = 1 - _size([plan.shared]) / _size([full.shared]) if plan.attempts is not attempts else 0.0
    fitted = Fitted([], [], cap, shared_elided)
    for number, (attempt, own, costs) in enumerate(
        zip(plan.attempts, plan.own, plan.costs, strict=True), start=1
    ):
        size = sum(costs)
        short = own if size <= cap else shorten(own, cap, costs)
        if short is None:
            said = f"trajectory {number} has about {size} tokens of its own"
            raise JudgeError(
                _too_long(said, cap, len(attempts), budget_tokens, budget_tokens - room, plan.frame)
            )
        fitted.attempts.append(attempt if size <= cap else plan.rebuilt(attempt, short))
        fitted.elided.append(0.0 if size <= cap else max(0.0, 1 - _size(short) / size))
    return fitted


@functools.lru_cache(maxsize=16)
def _instructions_tokens(instructions: str) -> int:
    """Remembered: one judge is told the same for every group."""
    return most_tokens(instructions)


@dataclass(frozen=True)
class _Plan:
    """A group taken apart into what is shown once and what is each attempt's own."""

    attempts: Sequence[Attempt]
    system_len: int
    prefix_len: int
    opening: str
    own: list[list[list[Turn]]]
    """For each attempt its further conversations, then what follows the prefix, without the opening."""
    costs: list[list[int]]
    """Tokens of the turns in `own`, one after another."""
    frame: int
    """Tokens of what is shown once, and of the boundary lines around each attempt."""

    @classmethod
    def of(cls, attempts: Sequence[Attempt], *, share_opening: bool = True) -> _Plan:
        system_len = shared_system_len(attempts)
        prefix_len = max(shared_len(attempts), system_len)
        opening = shared_opening(attempts, prefix_len) if share_opening else ""
        own = [_own_conversations(attempt, prefix_len, opening) for attempt in attempts]
        bare = [
            replace(a, turns=a.turns[:prefix_len], histories=tuple(() for _ in a.histories)) for a in attempts
        ]
        frame = most_tokens(str(render(bare).content)) + most_tokens(opening)
        costs = [[cost_of(turn) for turns in conversations for turn in turns] for conversations in own]
        return cls(attempts, system_len, prefix_len, opening, own, costs, frame)

    @property
    def shared(self) -> Sequence[Turn]:
        """The turns after the system prompt that all have in common."""
        return self.attempts[0].turns[self.system_len : self.prefix_len]

    @property
    def sizes(self) -> list[int]:
        return [sum(costs) for costs in self.costs]

    def with_less_shared(self, room: int) -> _Plan:
        """Where what agents and tools wrote alike takes more than half of the room, it is shortened too.

        The system prompt and what a user wrote are not: they say what was asked.
        """
        plan = self
        if most_tokens(plan.opening) > room // 2:
            plan = _Plan.of(plan.attempts, share_opening=False)
        size = _size([plan.shared])
        asked = [
            turn if turn["role"] in ("assistant", "tool") else {**turn, "stays": "whole"}
            for turn in plan.shared
        ]
        short = shorten([asked], room // 2) if size > room // 2 else None
        if short is None:
            return plan
        turns = [_unmarked(turn) for turn in short[0]]
        less = [
            replace(a, turns=(*a.turns[: plan.system_len], *turns, *a.turns[plan.prefix_len :]))
            for a in plan.attempts
        ]
        return _Plan.of(less, share_opening=bool(plan.opening))

    def rebuilt(self, attempt: Attempt, short: list[list[Turn]]) -> Attempt:
        """The attempt with shortened conversations in the place of its own."""
        *further, own = [[_unmarked(turn) for turn in turns] for turns in short]
        if self.opening:
            own[0] = {**own[0], "content": _opened(self.opening, own[0]["content"])}
        return replace(
            attempt,
            turns=(*attempt.turns[: self.prefix_len], *own),
            histories=tuple(tuple(turns) for turns in further),
        )


def _own_conversations(attempt: Attempt, prefix_len: int, opening: str) -> list[list[Turn]]:
    own = list(attempt.turns[prefix_len:])
    if opening:
        own[0] = {**own[0], "content": own[0]["content"][len(opening) :], "stays": "partly"}
    return [*(list(history) for history in attempt.histories), own]


def _unmarked(turn: Turn) -> Turn:
    return {name: value for name, value in turn.items() if name != "stays"}


def _opened(opening: str, content: str | Shortened) -> str | Shortened:
    return (
        replace(content, head=opening + content.head) if isinstance(content, Shortened) else opening + content
    )


def _size(conversations: Sequence[Sequence[Turn]]) -> int:
    """Tokens of what is shown of an attempt's own."""
    return sum(cost_of(turn) for turns in conversations for turn in turns if not is_elided(turn))


def _common_cap(sizes: Sequence[int], room: int) -> int:
    """The largest cap with which all fit: what the short ones do not need goes to the long ones."""
    left, cap = max(room, 0), 0
    for done, size in enumerate(sorted(sizes)):
        cap = left // (len(sizes) - done)
        if size > cap:
            return cap
        left -= size
    return cap


def _too_long(said: str, cap: int, members: int, budget: int, kept: int, frame: int) -> str:
    return (
        f"{said} and cannot be shortened to the {max(cap, 0)} that are left for each of {members}: the judge reads "
        f"{budget} tokens, of which instructions and reply take about {kept}, and spec, tools and shared beginning "
        f"about {frame}; use a judge with a longer context, judge fewer members per call, or shorten the system prompt"
    )
