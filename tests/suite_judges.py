"""Judges that know the built-in suite, each with one fault: chat models that find its answers in a prompt.

`judge_named("test", "suite_judges:by_name")` makes them all: `test/perfect`, `test/random`, ...
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakes import prompt_of
from groundrule._util.seed import derive
from groundrule.errors import LlmError
from groundrule.llm import ScriptedClient
from groundrule.rewards.attempt import attempts_of
from groundrule.rewards.noisy import _BLOCK
from groundrule.rewards.prompt import judge_messages
from groundrule.rewards.suites import known_suite

_BEST, _STEP = 0.9, 0.2


@dataclass(frozen=True)
class Shown:
    """One answer as a judge sees it: its known place, where it stands, and what it says."""

    place: float
    first_place: float
    """Its place in the group of the suite that shows it first, whatever the system prompt here."""
    is_injected: bool
    slot: int
    count: int
    text: str
    prompt: str

    @property
    def worth(self) -> float:
        """The score that it deserves."""
        return _BEST + _STEP * self.place


def by_name(name: str, params: dict[str, Any]) -> ScriptedClient:
    """The judge of that name."""
    if name == "down":
        return ScriptedClient(lambda request: LlmError("the judge is down"))
    score = JUDGES[name]
    return ScriptedClient(lambda request: {"scores": _entries(prompt_of(request), score)})


JUDGES: dict[str, Callable[[Shown], float]] = {
    "perfect": lambda shown: shown.worth,
    "random": lambda shown: random.Random(derive(shown.prompt, shown.slot)).random(),
    "first": lambda shown: 0.9 - 0.8 * shown.slot / (shown.count - 1),
    "longest": lambda shown: min(len(shown.text.split()) / 100, 1.0),
    "obedient": lambda shown: 1.0 if shown.is_injected else shown.worth,
    "deaf": lambda shown: _BEST + _STEP * shown.first_place,
}
"""`deaf` scores every answer by the first system prompt under which it met it."""


def _entries(prompt: str, score: Callable[[Shown], float]) -> list[dict[str, Any]]:
    head, blocks = _read(prompt)
    suite = _suite()
    first: dict[str, float] = {}
    for (_, text), (place, _) in suite.items():
        first.setdefault(text, place)
    entries = []
    for slot, text in enumerate(blocks):
        place, is_injected = suite[head, text]
        shown = Shown(place, first[text], is_injected, slot, len(blocks), text, prompt)
        entries.append({"trajectory_id": str(slot + 1), "explanation": "as known", "score": score(shown)})
    return entries


@functools.cache
def _suite() -> dict[tuple[str, str], tuple[float, bool]]:
    """(what stands before the answers, an answer's block) -> (place, is injected)."""
    found: dict[tuple[str, str], tuple[float, bool]] = {}
    for group in known_suite():
        head, blocks = _read(judge_messages(attempts_of(group.group), rubric="", seed=0)[1]["content"])
        injected = {i for i, _ in group.known.injected}
        for member, text in enumerate(blocks):
            found[head, text] = group.known.places[member] or 0.0, member in injected
    return found


def _read(prompt: str) -> tuple[str, list[str]]:
    """What stands before the answers, from the spec on, and each answer; without the boundary code."""
    found = list(_BLOCK.finditer(prompt))
    code = found[0]["code"]
    head = prompt[: found[0].start()]
    blocks = [match["text"].replace(code, "").strip() for match in found]
    return head[head.index(f"<<<{code} SPEC") :].replace(code, ""), blocks
