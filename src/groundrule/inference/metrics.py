"""What an endpoint counts, for Prometheus: requests, tokens, rows, and how long answers take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from groundrule.inference.engine import Engine

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)

CLIENT_LEFT = 499
"""The status under which requests are counted whose client did not wait for the answer."""


class Metrics:
    """The counters of one endpoint, apart from those of any other in this process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, engine: Engine) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._requests = Counter(
            "groundrule_requests",
            "Chat requests that are over, by HTTP status (499: the client left).",
            ["status"],
            registry=self._registry,
        )
        self._first_token = self._seconds("time_to_first_token", "From the request to its first token.")
        self._duration = self._seconds("request_duration", "From the request to the end of its answer.")
        self._registry.register(_EngineCollector(engine))

    def page(self) -> bytes:
        """What a scrape gets."""
        return generate_latest(self._registry)

    def start(self) -> Timed:
        """Begin to time one request."""
        return Timed(self)

    def _seconds(self, name: str, meaning: str) -> Histogram:
        return Histogram(f"groundrule_{name}_seconds", meaning, buckets=_SECONDS, registry=self._registry)


@dataclass
class Timed:
    """One request under the clock; `over` counts it once, whoever calls it first."""

    _metrics: Metrics
    _started: float = field(default_factory=time.perf_counter)
    _is_over: bool = False

    def first_token(self) -> None:
        """Something of the answer is there."""
        self._metrics._first_token.observe(time.perf_counter() - self._started)

    def over(self, status: int) -> None:
        """The request is answered, refused or given up."""
        if self._is_over:
            return
        self._is_over = True
        self._metrics._requests.labels(str(status)).inc()
        self._metrics._duration.observe(time.perf_counter() - self._started)


class _EngineCollector(Collector):
    """Reads the engine's own counts at each scrape."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        running, waiting = self._engine.load()
        yield _gauge("running_rows", "Answers being decoded.", running)
        yield _gauge("waiting_rows", "Answers that wait for a place.", waiting)
        yield _gauge("policy_version", "Version of the weights that answer.", self._engine.version)
        counts = self._engine.counts
        yield _counter("prompt_tokens", "Tokens of prompts.", counts.prompt_tokens)
        yield _counter(
            "cached_tokens", "Tokens of prompts that were not computed again.", counts.cached_tokens
        )
        yield _counter("sampled_tokens", "Tokens sampled.", counts.sampled_tokens)
        yield _counter("cancelled_jobs", "Requests whose places were freed early.", counts.cancelled)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"groundrule_{name}", meaning, value=value)


def _counter(name: str, meaning: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"groundrule_{name}", meaning, value=value)
