"""A simulated judge with faults of a chosen size: noise, a favoured place, wordiness, calls that fail.

For tests, and to plan how often a judge must be asked. It answers a judge's prompt like any chat model, or
gives the scores of one call directly.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from groundrule._util.seed import derive
from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply, ChatRequest, Usage
from groundrule.errors import ConfigError, LlmError, ProviderError
from groundrule.rewards.ask import estimated_tokens
from groundrule.rewards.merge import sigmoid

Failure = Literal["error", "cut_off", "invalid_json", "missing_id"]
"""No answer (HTTP 503), a reply at its length limit, one that is no JSON, one that leaves a trajectory out."""

FAILURES: tuple[Failure, ...] = ("error", "cut_off", "invalid_json", "missing_id")

_BLOCK = re.compile(
    r"^<<<(?P<code>\w+) #(?P<number>\d+)>>>$(?P<text>.*?)(?=^<<<(?P=code) (?:#\d+|END)>>>$)",
    re.MULTILINE | re.DOTALL,
)
_CODE = re.compile(r"^<<<\w+ ", re.MULTILINE)
_COUNTED = re.compile(r"^<<<(IMAGE) \d+", re.MULTILINE)
_MARK = re.compile(r"^<<<\w+ .*>>>$", re.MULTILINE)


@dataclass(eq=False)
class NoisyJudge:
    """A judge that knows each item's quality and says it badly.

    In one call it perceives x = quality + place + wordiness + error and answers
    sigmoid(a (x - saturation mean(x)) + b), rounded to `quant`. The place is worth from +`primacy` (shown
    first) in equal steps to -`primacy` (shown last); a = exp(N(0, scale_sd)) and b = N(0, scale_sd) are drawn
    anew in each call. Qualities of standard deviation 1 are what the parameters are meant for.

    As a chat client it finds the trajectories in a prompt of `rewards.prompt` and asks `quality` for the text
    of each one's block: boundary lines included, what all trajectories share left out. What it answers depends
    on the seed, the prompt and how often this very prompt was asked before, and so not on the order in which
    concurrent calls arrive.
    """

    quality: Callable[[str], float] | None = None
    """The true quality of a trajectory's text; only the chat client needs it."""
    noise: float = 0.5
    """Standard deviation of the error of one item in one call."""
    primacy: float = 0.25
    verbosity: float = 0.0
    """What a word count e times the call's (geometric) mean adds to x."""
    scale_sd: float = 0.3
    quant: float = 0.05
    saturation: float = 0.3
    common_error: float = 0.0
    """Share of the noise variance (0..1) that an item has in every call alike, so that no average removes it."""
    failure_rate: float = 0.0
    """Share of calls that fail, each in a way drawn from `failures`."""
    failures: Sequence[Failure] = FAILURES
    seed: int = 0
    calls: int = field(default=0, init=False)
    """How often it was asked as a chat client."""
    takes_images: bool = field(default=False, init=False)
    base_url: str = field(default="noisy:", init=False)
    _asked: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("common_error", "failure_rate"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is {getattr(self, name)}, but it is a share from 0 to 1")
        if not 0.0 < self.quant <= 0.5:
            raise ConfigError(
                f"quant is {self.quant}; take the step between two scores, above 0 and up to 0.5"
            )
        unknown = set(self.failures) - set(FAILURES)
        if unknown or not self.failures:
            raise ConfigError(f"failures is {list(self.failures)}; name some of {', '.join(FAILURES)}")

    @classmethod
    def strong(
        cls,
        quality: Callable[[str], float] | None = None,
        *,
        verbosity: float = 0.0,
        common_error: float = 0.0,
        failure_rate: float = 0.0,
        seed: int = 0,
    ) -> NoisyJudge:
        """A good judge, the default: errors half as large as the differences between items."""
        return cls(
            quality,
            verbosity=verbosity,
            common_error=common_error,
            failure_rate=failure_rate,
            seed=seed,
        )

    @classmethod
    def weak(
        cls,
        quality: Callable[[str], float] | None = None,
        *,
        verbosity: float = 0.0,
        common_error: float = 0.0,
        failure_rate: float = 0.0,
        seed: int = 0,
    ) -> NoisyJudge:
        """A poor judge: errors as large as the differences, one decimal, and a liking for what stands first."""
        strong = cls.strong(
            quality, verbosity=verbosity, common_error=common_error, failure_rate=failure_rate, seed=seed
        )
        return replace(strong, noise=1.0, primacy=0.7, scale_sd=0.4, quant=0.1)

    def scores(
        self,
        qualities: Sequence[float],
        *,
        rng: random.Random,
        words: Sequence[float] | None = None,
        common: Sequence[float] | None = None,
    ) -> list[float]:
        """The scores of one call that shows items of these qualities in this order.

        `words` are the items' word counts. `common` are the items' lasting errors as standard normal numbers,
        the same in every call; None draws them for this call alone.
        """
        shown = range(len(qualities))
        lasting = [rng.gauss(0.0, 1.0) for _ in shown] if common is None else common
        longer = [0.0 for _ in shown] if words is None else _log_deviations(words)
        own, kept = math.sqrt(1.0 - self.common_error), math.sqrt(self.common_error)
        perceived = [
            qualities[k]
            + self.primacy * (1.0 - 2.0 * k / max(len(qualities) - 1, 1))
            + self.verbosity * longer[k]
            + self.noise * (own * rng.gauss(0.0, 1.0) + kept * lasting[k])
            for k in shown
        ]
        stretch, shift = math.exp(rng.gauss(0.0, self.scale_sd)), rng.gauss(0.0, self.scale_sd)
        middle = self.saturation * fmean(perceived) if perceived else 0.0
        return [self._rounded(sigmoid(stretch * (x - middle) + shift)) for x in perceived]

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Scores in the judge's wire format, or one of the failures; raises `ProviderError` for "error"."""
        self.calls += 1
        prompt = "\n".join(_text(message) for message in request.messages)
        key = hashlib.sha256(f"{request.model}\n{prompt}".encode("utf-8", "replace")).hexdigest()
        self._asked[key] += 1
        rng = random.Random(derive("noisy judge", self.seed, key, self._asked[key]))
        failure = rng.choice(self.failures) if rng.random() < self.failure_rate else None
        if failure == "error":
            raise ProviderError("the simulated judge is overloaded", status=503)
        items = self._items(prompt, rng)
        content = json.dumps({"scores": items[1:] if failure == "missing_id" else items})
        if failure in ("cut_off", "invalid_json"):
            content = content[: rng.randrange(1, len(content) - 1)]
        usage = Usage(estimated_tokens(request.messages), max(1, len(content) // 4))
        finish_reason = "length" if failure == "cut_off" else "stop"
        return ChatReply(content, finish_reason=finish_reason, usage=usage, model=request.model)

    def _items(self, prompt: str, rng: random.Random) -> list[dict[str, str | float]]:
        """What it says about each trajectory that the prompt shows."""
        if self.quality is None:
            raise ConfigError("this NoisyJudge has no quality; give it a function from a trajectory's text")
        blocks = list(_BLOCK.finditer(prompt))
        if not blocks:
            raise LlmError("the prompt shows no trajectories between boundary lines; ask through a judge")
        texts = [block["text"].strip("\n") for block in blocks]
        found = self.scores(
            [self.quality(text) for text in texts],
            rng=rng,
            words=[len(_MARK.sub("", text).split()) for text in texts],
            common=[
                random.Random(derive("lasting error", self.seed, _identity(text))).gauss() for text in texts
            ],
        )
        return [
            {"trajectory_id": block["number"], "explanation": "simulated", "score": score}
            for block, score in zip(blocks, found, strict=True)
        ]

    def _rounded(self, score: float) -> float:
        """To the nearest step; the second rounding takes off what binary fractions leave."""
        return min(round(round(score / self.quant) * self.quant, 6), 1.0)


def _log_deviations(words: Sequence[float]) -> list[float]:
    logs = [math.log(max(count, 1.0)) for count in words]
    return [log - fmean(logs) for log in logs]


def _text(message: Message) -> str:
    """All text of a message; parts are separate lines."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return "\n".join(str(part.get("text") or "") for part in parts)


def _identity(text: str) -> str:
    """A trajectory's text without what depends on the prompt: the boundary code, numbers counted through it."""
    return _COUNTED.sub(r"<<<\1", _CODE.sub("<<<", text))
