"""What a judge may see of a trajectory: the same for a Trajectory, a list of messages, and Choices.

Ids, log-probabilities and (unless asked for) reasoning are left out; tool calls are numbered within the
attempt, so that two attempts that did the same look the same.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, Tools, canonical, is_choice
from groundrule.data.trajectory import History

Turn = dict[str, Any]
"""A message as the judge sees it: role, content, calls, and refusal, reasoning, answers, cut if any."""

_PLAIN = {"role", "content"}
_THINKING = re.compile(r"\A\s*<(think|thinking)>.*?</\1>\s*", re.DOTALL)


@dataclass(frozen=True)
class Attempt:
    """One trajectory as evidence."""

    turns: tuple[Turn, ...]
    tools: Tools | None = None
    histories: tuple[tuple[Turn, ...], ...] = ()
    _evidence: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By opening turns left out: every draw and every comparison asks for the same two texts."""

    @cached_property
    def system(self) -> tuple[Turn, ...]:
        """The system messages that open the conversation."""
        count = 0
        while count < len(self.turns) and self.turns[count]["role"] in ("system", "developer"):
            count += 1
        return self.turns[:count]

    @property
    def key(self) -> str:
        """Equal for attempts that a judge could not tell apart."""
        return self.evidence_after(0)

    def evidence_after(self, turns: int) -> str:
        """What there is to judge apart from so many opening turns, as one text."""
        known = self._evidence.get(turns)
        if known is None:
            known = self._evidence[turns] = "\n".join([*self.turn_keys[turns:], self._rest_key])
        return known

    @cached_property
    def turn_keys(self) -> tuple[str, ...]:
        """One canonical text for each turn."""
        return tuple(_key_of(turn) for turn in self.turns)

    @cached_property
    def system_keys(self) -> tuple[str, ...]:
        """The same of its system messages."""
        return self.turn_keys[: len(self.system)]

    @property
    def _rest_key(self) -> str:
        if self.tools is None and not self.histories:
            return _NOTHING_MORE
        return turn_key([self.histories, self.tools])


def attempts_of(group: TrajectoryGroup, *, show_reasoning: bool = False) -> list[Attempt]:
    """The members of a group as evidence, in order."""
    return [
        attempt_of(
            member.messages_and_choices,
            tools=member.tools,
            histories=member.additional_histories,
            show_reasoning=show_reasoning,
        )
        for member in group
    ]


def attempt_of(
    items: Iterable[Any],
    *,
    tools: Tools | None = None,
    histories: Sequence[History | Iterable[Any]] = (),
    show_reasoning: bool = False,
) -> Attempt:
    """Evidence from messages and Choices."""
    further = [h.messages_and_choices if isinstance(h, History) else h for h in histories]
    return Attempt(
        turns=_turns(items, show_reasoning),
        tools=tools or None,
        histories=tuple(_turns(history, show_reasoning) for history in further),
    )


def shared_system_len(attempts: Sequence[Attempt]) -> int:
    """How many opening system messages all attempts have in common; 0 where their prompts differ."""
    return 0 if not attempts or differ_in_system(attempts) else len(attempts[0].system)


def differ_in_system(attempts: Sequence[Attempt]) -> bool:
    """True where not all attempts were given the same system prompt."""
    return len({attempt.system_keys for attempt in attempts}) > 1


def evidence_keys(attempts: Sequence[Attempt]) -> list[str]:
    """Each attempt without the shared system prompt, as one text.

    What is drawn from it (order, boundaries) stays the same under another system prompt.
    """
    system_len = shared_system_len(attempts)
    return [attempt.evidence_after(system_len) for attempt in attempts]


def turn_key(value: Any) -> str:
    """A canonical text; `==` on the values would take True for 1."""
    return _canonical.encode(value)


def _key_of(turn: Turn) -> str:
    """The same for a turn. What was asked in plain text is asked of every member of a group."""
    role, content = turn["role"], turn["content"]
    if len(turn) == 3 and role in ("system", "user") and isinstance(content, str) and not turn["calls"]:
        return _key_of_question(role, content)
    return turn_key(turn)


@functools.lru_cache(maxsize=16)
def _key_of_question(role: str, content: str) -> str:
    return turn_key({"role": role, "content": content, "calls": []})


_canonical = json.JSONEncoder(sort_keys=True, default=str)
"""Made once: `json.dumps` makes one for each value that is not written in its default way."""

_NOTHING_MORE = turn_key([(), None])
"""Of an attempt without further conversations and tools, as most are."""


def shared_len(attempts: Sequence[Attempt]) -> int:
    """How many opening messages all attempts share, compared by what they mean."""
    count = 0
    for keys in zip(*(attempt.turn_keys for attempt in attempts), strict=False):
        if any(key != keys[0] for key in keys):
            break
        count += 1
    return count


@dataclass
class _Calls:
    """The tool calls of one conversation so far; providers' ids are random and may repeat."""

    count: int = 0
    by_id: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, call: Message) -> dict[str, Any]:
        function = call.get("function") or call.get("custom") or {}
        name = str(function.get("name") or "?")
        self.count += 1
        self.by_id[str(call.get("id"))] = (self.count, name)
        return {"number": self.count, "name": name, "arguments": _arguments(function)}


def _arguments(function: Mapping[str, Any]) -> Any:
    """An object where the arguments are one, else the text that was given."""
    if "input" in function:
        return {"input": function["input"]}
    arguments = function.get("arguments")
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _turns(items: Iterable[Any], show_reasoning: bool) -> tuple[Turn, ...]:
    calls = _Calls()
    return tuple(_plain_turn(item, show_reasoning) or _turn(item, calls, show_reasoning) for item in items)


def _plain_turn(item: Any, show_reasoning: bool) -> Turn | None:
    """The turn of a message that is a text of someone's and nothing else, as most are; None for any other."""
    if not isinstance(item, dict) or item.keys() != _PLAIN:
        return None
    role, content = item["role"], item["content"]
    if role not in ("system", "user", "assistant") or not isinstance(content, str):
        return None
    return {"role": role, "content": _shown(role, content, show_reasoning), "calls": []}


def _shown(role: Any, text: str, show_reasoning: bool) -> str:
    return _THINKING.sub("", text, count=1) if role == "assistant" and not show_reasoning else text


def _turn(item: Any, calls: _Calls, show_reasoning: bool) -> Turn:
    message = canonical(item)
    role, content = message.get("role", "user"), message.get("content", "")
    if isinstance(content, str):
        content = _shown(role, content, show_reasoning)
    turn: Turn = {"role": role, "content": content, "calls": [calls.add(call) for call in _calls_of(message)]}
    if role in ("tool", "function"):
        unknown = (0, str(message.get("name") or "?"))
        number, name = calls.by_id.get(str(message.get("tool_call_id")), unknown)
        turn.update(role="tool", answers=number, name=name)
    elif message.get("name"):
        turn["name"] = str(message["name"])
    if refusal := message.get("refusal") or _refusal_parts(content):
        turn["refusal"] = str(refusal)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if show_reasoning and reasoning:
        turn["reasoning"] = str(reasoning)
    cut = item.finish_reason if is_choice(item) else message.get("finish_reason")
    if cut in ("length", "content_filter"):
        turn["cut"] = cut
    return turn


def _calls_of(message: Message) -> list[Message]:
    """The tool calls of a message, also in the form before `tool_calls`."""
    if message.get("function_call"):
        return [{"function": dict(message["function_call"])}]
    return list(message.get("tool_calls") or [])


def _refusal_parts(content: Any) -> str:
    if not isinstance(content, list):
        return ""
    return "".join(str(part.get("refusal") or "") for part in content if isinstance(part, Mapping))
