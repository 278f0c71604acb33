"""What every call cost: a ledger that is always on, and a budget that stops before the next call.

A price that is not known stays unknown. It never becomes 0, and a total with an unknown part is unknown;
the tokens are counted either way.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
import tomllib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TypeVar

from groundrule._util import jsonl
from groundrule.data.protocols import Usage
from groundrule.errors import BudgetError, ConfigError

N = TypeVar("N", int, float)
logger = logging.getLogger(__name__)

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float
    cached: float | None = None
    """For prompt tokens that the provider had cached; the full price where it is None."""

    def cost_usd(self, usage: Usage) -> float | None:
        """None where the endpoint did not count its tokens."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        dollars = (usage.prompt_tokens - cached) * self.prompt + cached * cached_price
        return (dollars + usage.completion_tokens * self.completion) / 1e6


@functools.cache
def known_prices() -> Mapping[str, Price]:
    """The prices that come with the library, by `provider/model`."""
    text = resources.files("groundrule.llm").joinpath("prices.toml").read_text("utf-8")
    return {name: Price(**numbers) for name, numbers in tomllib.loads(text).items()}


@dataclass(frozen=True)
class Call:
    """One line of the ledger."""

    model: str
    purpose: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    cached: bool = False
    """Answered from our own reply cache: nothing was sent or paid."""
    error: str | None = None
    """The kind of error that came instead of a reply."""


@dataclass(frozen=True)
class Total:
    """Sums over calls."""

    calls: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    known_cost_usd: float = 0.0
    unpriced_calls: int = 0
    failed_calls: int = 0

    @property
    def tokens(self) -> int:
        """Sent and received."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def cost_usd(self) -> float | None:
        """None as soon as one call has no known price."""
        return None if self.unpriced_calls else self.known_cost_usd

    def plus(self, call: Call) -> Total:
        """These sums with one more call. Cache hits count as hits and nothing else."""
        if call.cached:
            return Total(**{**asdict(self), "cache_hits": self.cache_hits + 1})
        return Total(
            calls=self.calls + 1,
            cache_hits=self.cache_hits,
            prompt_tokens=self.prompt_tokens + (call.prompt_tokens or 0),
            completion_tokens=self.completion_tokens + (call.completion_tokens or 0),
            cached_tokens=self.cached_tokens + (call.cached_tokens or 0),
            known_cost_usd=self.known_cost_usd + (call.cost_usd or 0.0),
            unpriced_calls=self.unpriced_calls + (call.cost_usd is None),
            failed_calls=self.failed_calls + (call.error is not None),
        )

    def __str__(self) -> str:
        cost = "cost unknown" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        if self.cost_usd is None and self.known_cost_usd:
            cost = f"${self.known_cost_usd:.4f} + {self.unpriced_calls} calls of unknown price"
        return f"{self.calls} calls, {self.prompt_tokens} + {self.completion_tokens} tokens, {cost}"


@dataclass(frozen=True)
class Budget:
    """Limits for a ledger; None means no limit. Calls that are already under way may go over."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and not value >= 0:
                raise ConfigError(f"Budget({name}={value}) must not be negative; leave it out for no limit")


class Ledger:
    """Records calls. Safe to use from several threads.

    With `path` every call is also appended there as a JSON line. A ledger with a `parent`, such as that of
    one step of a run, passes every call on, and the parent's budget holds too.
    """

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        path: str | Path | None = None,
        prices: Mapping[str, Price] | None = None,
        parent: Ledger | None = None,
    ) -> None:
        self.parent = parent
        self.budget = budget or Budget()
        self.path = None if path is None else Path(path)
        self._prices = {**known_prices(), **(prices or {})}
        self._totals: dict[str, Total] = {}
        self._total = Total()
        self._started = 0
        self._warned_unpriced = False
        self._lock = threading.Lock()

    @classmethod
    def reopened(cls, path: str | Path, *, budget: Budget | None = None) -> Ledger:
        """A ledger that goes on with its file: what was spent before counts."""
        ledger = cls(budget=budget)
        if Path(path).exists():
            for _, line in jsonl.read(path):
                call = Call(**line)
                ledger.record(call)
                ledger._started += not call.cached
        ledger.path = Path(path)
        return ledger

    def __str__(self) -> str:
        limits = [f"{name} {value:g}" for name, value in asdict(self.budget).items() if value is not None]
        return f"{self.total()}; limits: {', '.join(limits) or 'none'}"

    def price_of(self, model: str) -> Price | None:
        """The price of `provider/model`, also under a dated snapshot name; None when unknown."""
        own = self._prices.get(model) or self._prices.get(_SNAPSHOT.sub("", model))
        return own or (self.parent.price_of(model) if self.parent else None)

    def start(self) -> None:
        """Take one call out of the budget, or raise `BudgetError` before anything is sent."""
        with self._lock:
            spent, limit = self._total, self.budget
            tokens = spent.tokens
            if limit.calls is not None and self._started >= limit.calls:
                raise BudgetError(f"the budget of {limit.calls} calls is used up; raise Budget(calls=...)")
            if limit.tokens is not None and tokens >= limit.tokens:
                raise BudgetError(
                    f"{tokens} tokens are used of a budget of {limit.tokens}; raise Budget(tokens=...)"
                )
            if limit.usd is not None and spent.known_cost_usd >= limit.usd:
                raise BudgetError(
                    f"${spent.known_cost_usd:.4f} of the budget of ${limit.usd:g} are spent; raise it"
                )
            if self.parent is not None:
                self.parent.start()
            self._started += 1

    def left(self) -> Budget:
        """What the budget still allows, the parent's included."""
        with self._lock:
            spent, limit = self._total, self.budget
            usd = None if limit.usd is None else max(0.0, limit.usd - spent.known_cost_usd)
            tokens = None if limit.tokens is None else max(0, limit.tokens - spent.tokens)
            calls = None if limit.calls is None else max(0, limit.calls - self._started)
        above = self.parent.left() if self.parent else Budget()
        return Budget(_least(usd, above.usd), _least(tokens, above.tokens), _least(calls, above.calls))

    def record(self, call: Call) -> None:
        """Add a finished call."""
        if self.parent is not None:
            self.parent.record(call)
        with self._lock:
            self._total = self._total.plus(call)
            self._totals[call.purpose] = self._totals.get(call.purpose, Total()).plus(call)
            first_unpriced = (
                call.cost_usd is None and self.budget.usd is not None and not self._warned_unpriced
            )
            self._warned_unpriced = self._warned_unpriced or first_unpriced
            if self.path is not None:
                jsonl.append(self.path, asdict(call))
        if first_unpriced:
            logger.warning(
                "the price of %s is unknown, so the budget of $%g does not cover it; "
                "give Ledger(prices=...) or limit tokens or calls",
                call.model,
                self.budget.usd,
            )

    def total(self, purpose: str | None = None) -> Total:
        """Everything so far, or what one purpose took."""
        with self._lock:
            return self._total if purpose is None else self._totals.get(purpose, Total())

    def purposes(self) -> dict[str, Total]:
        """The sums per purpose."""
        with self._lock:
            return dict(self._totals)


def _least(own: N | None, above: N | None) -> N | None:
    if own is None or above is None:
        return above if own is None else own
    return min(own, above)


_process_ledger = Ledger()
_current: ContextVar[Ledger | None] = ContextVar("groundrule_ledger", default=None)


def current_ledger() -> Ledger:
    """The ledger that calls made here go to: that of the innermost `use_ledger`, or the process's own."""
    return _current.get() or _process_ledger


@contextlib.contextmanager
def use_ledger(ledger: Ledger) -> Iterator[Ledger]:
    """Send the calls made inside the block, and in tasks started there, to this ledger."""
    token = _current.set(ledger)
    try:
        yield ledger
    finally:
        _current.reset(token)
