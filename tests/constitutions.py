"""A small constitution, and chat models that answer by it in a way that is known beforehand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from fakes import prompt_of
from groundrule.data.protocols import ChatRequest
from groundrule.llm import ScriptedClient
from groundrule.rewards.constitution import Constitution, Exemplar, Principle


def principle(name: str, weight: float = 1.0, *tags: str) -> Principle:
    return Principle(
        id=name,
        critique_request=f"Critique by {name}.",
        revision_request=f"Revise by {name}.",
        comparison_question=f"Which is better by {name}?",
        weight=weight,
        tags=tags,
    )


THREE = Constitution(
    name="three",
    principles=(principle("a", 1.0, "x"), principle("b", 1.0, "x", "y"), principle("c", 2.0)),
    exemplars=(
        Exemplar(prompt="Old?", answer="Bad.", principle="b", critique="Too short.", revision="Good."),
    ),
)
ONE = Constitution(name="one", principles=(principle("a"),))


def odds(p: float) -> list[dict[str, float]]:
    """Log-probabilities of the first token with p for A and 1 - p for B."""
    return [{"A": math.log(p), "B": math.log(1 - p)}]


def shown_first(request: ChatRequest, *answers: str) -> str:
    """Which of these answers stands under (A)."""
    prompt = prompt_of(request)
    return min((a for a in answers if a in prompt), key=prompt.index)


def by_letters(p_of_a: Callable[[ChatRequest], float]) -> ScriptedClient:
    """A judge with log-probabilities: p(A) as a function of what it is shown."""

    def answer(request: ChatRequest) -> dict[str, Any]:
        p = p_of_a(request)
        return {"content": "A" if p > 0.5 else "B", "top_logprobs": odds(p)}

    return ScriptedClient(answer)


def prefers(worth: dict[str, float]) -> ScriptedClient:
    """A judge of known answers: p(A) = worth of (A) / (worth of (A) + worth of (B)), whatever the principle."""

    def p_of_a(request: ChatRequest) -> float:
        first = shown_first(request, *worth)
        prompt = prompt_of(request)
        other = max((a for a in worth if a in prompt), key=prompt.index)
        return worth[first] / (worth[first] + worth[other])

    return by_letters(p_of_a)


REVISION = "Thirty days."
_BLOCKS = re.compile(r"<<<\w+ \(A\)>>>\n(?P<a>.*?)\n?<<<\w+ \(B\)>>>\n(?P<b>.*?)\n?<<<\w+ END>>>", re.DOTALL)


def named(name: str, params: dict[str, Any]) -> ScriptedClient:
    """Models that tests register: `critic` writes the same revision again and again, `judge` likes short answers."""
    if name == "critic":
        return ScriptedClient(lambda r: "Too long." if r.purpose == "constitution/critique" else REVISION)
    if name == "silent":
        return ScriptedClient(lambda r: "")

    def p_of_a(request: ChatRequest) -> float:
        blocks = _BLOCKS.search(prompt_of(request))
        return 0.5 if blocks is None else 1 / (1 + math.exp((len(blocks["a"]) - len(blocks["b"])) / 4))

    return by_letters(p_of_a)
