"""A simulated critic, reviser and judge of chosen quality, as `NoisyExaminer` is one for the universal verifier.

For tests, benchmarks and planning: it shows what a chain does when the feedback is good. It reads no principle but
knows the better answer and how good an answer is, so what is learned from it says nothing about a real critic.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from groundrule._util.seed import derive
from groundrule.data.messages import Message, text_of
from groundrule.data.protocols import ChatReply, ChatRequest, TopLogprobs, Usage
from groundrule.errors import ConfigError, LlmError
from groundrule.rewards.ask import estimated_tokens
from groundrule.rewards.checks import content_words
from groundrule.rewards.constitution.comparing import PURPOSE as COMPARISON

MOST_SURE = 0.99
"""How probable the chosen letter is of a teacher that never errs."""

_ANSWERS = re.compile(
    r"^<<<(?P<code>\w+) \(A\)>>>$(?P<a>.*?)^<<<(?P=code) \(B\)>>>$(?P<b>.*?)^<<<(?P=code) END>>>$",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"^<<<\w+ .*>>>$", re.MULTILINE)
_ASKS_FOR_A_LETTER = "the letter A or B"
_WORDS_NAMED = 4


@dataclass(eq=False)
class SimulatedTeacher:
    """A chat client that answers the prompts of `Reviser` and `Comparer`.

    `better(task)` is the answer that it would give, None where it knows none; `quality(task, answer)` is how good an
    answer is. `task` is a text in which the question stands: what the user said, in a comparison with much around it.
    In a share `error` of the revisions the answer comes back as it was, and in a share of the comparisons the worse
    answer is chosen. The chosen letter has the probability 1 - `error`; both have 0.5 where the qualities are equal.

    What it says depends on the seed, the prompt and how often this very prompt was asked before, not on the order of
    calls.
    """

    better: Callable[[str], str | None]
    quality: Callable[[str, str], float]
    error: float = 0.1
    seed: int = 0
    base_url: str = field(default="simulated:", init=False)
    _asked: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.error <= 0.5:
            raise ConfigError(f"error is {self.error}; take a share from 0 to 0.5, where choices are chance")

    async def complete(self, request: ChatRequest) -> ChatReply:
        """A critique, a revision, a thought or a letter, as the prompt asks for."""
        texts = [text_of(message.get("content")) for message in request.messages]
        prompt = "\n".join(texts)
        self._asked[prompt] += 1
        draws = (self.seed, self._asked[prompt])
        likeliest: TopLogprobs = ()
        if request.purpose == "constitution/critique":
            text = self._critique(*_task_and_answer(request.messages, 2))
        elif request.purpose == "constitution/revision":
            rng = random.Random(derive("revision", *draws, prompt))
            text = self._revision(*_task_and_answer(request.messages, 4), rng)
        elif request.purpose == COMPARISON:
            p = self._probability_of_a(prompt, draws)
            text = _letter(p) if _ASKS_FOR_A_LETTER in texts[-1] else _thought(p)
            likeliest = ((("A", math.log(p)), ("B", math.log(1.0 - p))),) if text in ("A", "B") else ()
        else:
            raise LlmError(
                f"a simulated teacher criticises, revises and compares, but was asked for {request.purpose!r}"
            )
        return ChatReply(
            text,
            usage=Usage(estimated_tokens(request.messages), max(1, len(text) // 4)),
            cost_usd=0.0,
            model=request.model,
            top_logprobs=likeliest if request.params.get("logprobs") else (),
        )

    def _critique(self, task: str, answer: str) -> str:
        """Words that the better answer has and this one lacks, and the other way round."""
        better = self.better(task)
        if better is None:
            return "It is as good as one can tell."
        missing, needless = _only_in(better, answer), _only_in(answer, better)
        points = [f"It does not say: {', '.join(missing)}."] if missing else []
        points += [f"It need not say: {', '.join(needless)}."] if needless else []
        return " ".join(points) or "It says what is needed and nothing else."

    def _revision(self, task: str, answer: str, rng: random.Random) -> str:
        better = self.better(task)
        return answer if better is None or rng.random() < self.error else better

    def _probability_of_a(self, prompt: str, draws: tuple[int, int]) -> float:
        """Drawn for what is shown: a letter after a thought is chosen like the thought itself."""
        shown = _ANSWERS.search(prompt)
        if shown is None:
            raise LlmError(
                "the prompt shows no answers (A) and (B) between boundary lines; ask through a judge"
            )
        task = prompt[: shown.start()]
        a, b = (self.quality(task, _MARK.sub("", shown[name]).strip()) for name in "ab")
        if a == b:
            return 0.5
        errs = random.Random(derive("choice", *draws, prompt[: shown.end()])).random() < self.error
        sure = min(1.0 - self.error, MOST_SURE)
        return sure if (a > b) != errs else 1.0 - sure


def _task_and_answer(messages: Sequence[Message], last: int) -> tuple[str, str]:
    """The answer stands so many messages before the end, and the user's words before it."""
    if len(messages) <= last:
        raise LlmError(f"a conversation of {len(messages)} messages holds no answer to criticise or revise")
    task, answer = messages[-last - 1], messages[-last]
    return text_of(task.get("content")), text_of(answer.get("content"))


def _only_in(text: str, other: str) -> list[str]:
    known = set(content_words(other))
    return list(dict.fromkeys(word for word in content_words(text) if word not in known))[:_WORDS_NAMED]


def _letter(p: float) -> str:
    return "A" if p >= 0.5 else "B"


def _thought(p: float) -> str:
    return "Both fare alike by this." if p == 0.5 else f"By this, ({_letter(p)}) fares better."
