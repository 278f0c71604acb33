"""An endpoint for tests, whose model says what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

from groundrule.inference.app import Endpoint
from groundrule.inference.engine import Engine
from groundrule.inference.jobs import EngineCounts, Job
from groundrule.inference.server import LocalServer
from groundrule.models.sampling import Sample
from tiny import END, tiny_model

KEY = "secret-of-the-test"


class ScriptedEngine:
    """Takes the place of an `Engine`: every answer is one of the texts, a byte a token, then the end token.

    A text that ends with "…" is cut there, as by its token limit. With `pause` nothing comes after the first token
    until the event is set. `jobs` holds what was asked.
    """

    def __init__(self, *texts: str, pause: threading.Event | None = None) -> None:
        self.model = tiny_model()
        self.texts = texts
        self.pause = pause
        self.version = 3
        self.counts = EngineCounts()
        self.jobs: list[Job] = []
        self.logprob = -0.5
        self.failure: Exception | None = None

    def load(self) -> tuple[int, int]:
        return 0, 0

    def seeds_for(self, slot: int | None, count: int) -> list[int]:
        return list(range(count))

    def submit(self, job: Job) -> Any:
        self.jobs.append(job)
        threading.Thread(target=self._work, args=(job,), daemon=True).start()
        return job.future

    def close(self) -> None:
        pass

    def _work(self, job: Job) -> None:
        samples = [Sample() for _ in job.requests]
        for index, sample in enumerate(samples):
            text = self.texts[index % len(self.texts)]
            self._say(job, index, sample, text.removesuffix("…"), ends=not text.endswith("…"))
        if self.failure is not None:
            job.future.set_exception(self.failure)
        elif not job.future.cancelled():
            job.future.set_result(samples)

    def _say(self, job: Job, index: int, sample: Sample, text: str, *, ends: bool) -> None:
        ids = self.model.tokenizer.encode(text, add_special_tokens=False)
        for number, token in enumerate([*ids, END] if ends else ids):
            if number and self.pause is not None:
                self.pause.wait(10)
            if job.future.cancelled():
                return
            sample.token_ids.append(token)
            sample.logprobs.append(self.logprob)
            if job.requests[index].top_logprobs:
                sample.top_logprobs.append([(token, self.logprob), (END, float("-inf"))])
            whole = len(sample.token_ids) == len(ids) + ends
            known = self.model.tokenizer.decode([i for i in sample.token_ids if i != END])
            sample.text = known if whole else known.rstrip("�")
            sample.finish_reason = "stop" if ends and whole else "length"
            sample.done = whole
            if job.on_progress is not None:
                job.on_progress(index, sample)


@contextmanager
def served(engine: Engine | ScriptedEngine, *, api_key: str | None = KEY, **more: Any) -> Iterator[str]:
    """The base URL of an endpoint with this engine, for the model `tiny`."""
    server = LocalServer(Endpoint(engine, lambda: ["tiny"], api_key=api_key, **more).app())  # type: ignore[arg-type]
    try:
        yield server.base_url
    finally:
        server.close()


def post(base_url: str, body: Any, path: str = "/chat/completions", **more: Any) -> httpx.Response:
    """One request with the key, without the official client's help."""
    headers = {"authorization": f"Bearer {KEY}"}
    given = {"content": body} if isinstance(body, bytes | Iterator) else {"json": body}
    return httpx.post(base_url + path, headers=headers, trust_env=False, timeout=30, **given, **more)


def asking(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"model": "tiny", "messages": list(messages) or [{"role": "user", "content": "Hi"}], **more}


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    """A function on offer, with the properties of its arguments."""
    schema = {
        "type": "object",
        "properties": parameters,
        "required": list(parameters),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def until(true: Callable[[], bool], what: str, timeout_s: float = 10) -> None:
    """Wait for something that happens in another thread."""
    done = threading.Event()
    for _ in range(int(timeout_s / 0.01)):
        if true():
            return
        done.wait(0.01)
    raise AssertionError(f"{what} did not happen within {timeout_s} s")


def events(reply: httpx.Response) -> list[str]:
    """The data of a stream's events."""
    return [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]


def texts(chunks: Sequence[Any], index: int = 0) -> list[str]:
    """The pieces of text of one choice."""
    choices = [choice for chunk in chunks for choice in chunk["choices"] if choice["index"] == index]
    return [choice["delta"]["content"] for choice in choices if choice["delta"].get("content")]
