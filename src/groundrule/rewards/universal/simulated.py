"""A simulated judge of chosen quality for the questions of the universal verifier, beside `NoisyJudge` for scores.

For tests, examples and planning. It knows what is true and says the opposite in a share of its replies.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply, ChatRequest, Usage
from groundrule.errors import ConfigError, LlmError
from groundrule.rewards.ask import estimated_tokens

SAME = "says the same as the reference"
"""The statement of the reference layer; those of a rubric are its criteria."""

_BLOCK = re.compile(
    r"^<<<(?P<code>\w+) (?P<name>SHARED|ANSWER)>>>$(?P<text>.*?)"
    r"(?=^<<<(?P=code) (?:SHARED|ANSWER|REFERENCE|END)>>>$)",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^<<<\w+ .*>>>$", re.MULTILINE)
_LISTED = re.compile(r"^(?P<number>\d+)\. (?P<text>.+)$", re.MULTILINE)
_LONGEST_QUOTE_WORDS = 25


@dataclass(eq=False)
class NoisyExaminer:
    """A chat client that answers both kinds of prompt of the verifier.

    `truth(statement, task, answer)` says whether a statement is true of an answer. Each verdict is turned round with
    probability `error`; `common_error` is the share of the errors that an answer has in every reply alike, so that no
    vote removes them. Its quotes are the beginning of the answer, except that a share `invented_quotes` of its false
    "yes" quotes words that are not there. What it says depends on the seed, the prompt and how often this very prompt
    was asked before, not on the order of calls.
    """

    truth: Callable[[str, str, str], bool]
    error: float = 0.1
    common_error: float = 0.0
    invented_quotes: float = 0.0
    seed: int = 0
    calls: int = field(default=0, init=False)
    base_url: str = field(default="noisy:", init=False)
    _asked: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("error", "common_error", "invented_quotes"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}, but it is a share from 0 to 1")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """A reply in the format that the prompt asks for."""
        self.calls += 1
        system, user = (text_of(request.messages[i].get("content")) for i in (0, 1))
        blocks = {b["name"]: _MARK.sub("", b["text"]).strip() for b in _BLOCK.finditer(user)}
        if "ANSWER" not in blocks:
            raise LlmError("the prompt shows no ANSWER between boundary lines; ask through a verifier")
        task, answer = blocks.get("SHARED", ""), blocks["ANSWER"]
        self._asked[user] += 1
        draws = (self.seed, system, user, self._asked[user])
        listed = list(_LISTED.finditer(system)) if '"criteria"' in system else []
        if listed:
            content: Any = {
                "criteria": [
                    {
                        "criterion": item["number"],
                        **self._said(item["text"], task, answer, draws, "met", "unmet"),
                    }
                    for item in listed
                ]
            }
        else:
            content = self._said(SAME, task, answer, draws, "same", "different")
        text = json.dumps(content, ensure_ascii=False)
        usage = Usage(estimated_tokens(request.messages), max(1, len(text) // 4))
        return ChatReply(text, usage=usage, cost_usd=0.0, model=request.model)

    def _said(
        self, statement: str, task: str, answer: str, draws: tuple[object, ...], yes: str, no: str
    ) -> dict[str, str]:
        is_true = self.truth(statement, task, answer)
        lasting = random.Random(derive("lasting", self.seed, statement, task, answer))
        own = random.Random(derive("own", statement, *draws))
        rng = lasting if lasting.random() < self.common_error else own
        says = is_true != (rng.random() < self.error)
        invents = says and not is_true and own.random() < self.invented_quotes
        words = " ".join(answer.split()[:_LONGEST_QUOTE_WORDS])
        quote = "words that are nowhere to be found" if invents else words if says else ""
        return {"quote": quote, "verdict": yes if says else no}
