"""A growing answer on its way to the client: from the engine's thread to chunks of server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from groundrule.inference.jobs import Job
from groundrule.inference.reply import (
    SampledToken,
    envelope,
    finish_reason,
    provenance,
    sampled_tokens,
    taken_apart,
    token_logprobs,
    usage,
)
from groundrule.inference.schema import ChatCompletionBody
from groundrule.inference.tool_calls import settled
from groundrule.models.sampling import Sample

DONE = b"data: [DONE]\n\n"


def event(data: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data, ensure_ascii=False, allow_nan=False).encode() + b"\n\n"


class AnswerStream(StreamingResponse):
    """Server-sent events. `on_over` is called at their end in any case, also when the client never took the first."""

    def __init__(self, events: AsyncIterator[bytes], *, on_over: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        self._on_over = on_over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_over()


@dataclass(frozen=True)
class Progress:
    """What is new in one answer. `ended` is the finished sample, with the last of it."""

    index: int
    text: str
    """All of it so far, which is not taken back."""
    tokens: list[SampledToken]
    ended: Sample | None = None


class Follower:
    """Hears a job on the engine's thread and hands its progress to one event loop.

    Give `heard` to the job, then read `progress`, if it is `wanted` at all. `on_first` is called, on the engine's
    thread, at the first token of any answer.
    """

    def __init__(self, count: int, *, on_first: Callable[[], None], wanted: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Progress | None] = asyncio.Queue()
        self._seen = [0] * count
        self._on_first: Callable[[], None] | None = on_first
        self._wanted = wanted

    def heard(self, index: int, sample: Sample) -> None:
        """The job's `on_progress`. The sample goes on growing, so what is new is copied here."""
        if self._on_first is not None:
            self._on_first()
            self._on_first = None
        if self._wanted and not sample.done:  # The last of it comes with the future.
            self._put(self._new(index, sample))

    async def progress(self, job: Job) -> AsyncIterator[Progress]:
        """What is new, until every answer is finished; raises what the job failed with."""
        job.future.add_done_callback(lambda _: self._put(None))
        while (new := await self._queue.get()) is not None:
            yield new
        for index, sample in enumerate(job.future.result()):
            last = self._new(index, sample)
            yield Progress(index, sample.text, last.tokens, ended=sample)

    def _new(self, index: int, sample: Sample) -> Progress:
        tokens = sampled_tokens(sample, self._seen[index])
        self._seen[index] += len(tokens)
        return Progress(index, sample.text, tokens)

    def _put(self, new: Progress | None) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
            self._loop.call_soon_threadsafe(self._queue.put_nowait, new)


class Chunks:
    """The chunks of one streamed reply."""

    def __init__(
        self, body: ChatCompletionBody, prompt_ids: list[int], tokenizer: Any, version: Callable[[], int]
    ) -> None:
        self._body = body
        self._prompt_ids = prompt_ids
        self._tokenizer = tokenizer
        self._version = version
        """Of the policy that answers; known once it has begun to."""
        self._envelope = envelope(body, "chat.completion.chunk")
        self._sent = [0] * body.n
        """Characters of each answer that the client has."""
        self._untold: list[list[SampledToken]] = [[] for _ in range(body.n)]
        """Tokens whose text is held back."""
        if body.stream_options and body.stream_options.include_usage:
            self._envelope["usage"] = None

    def first(self) -> Iterator[dict[str, Any]]:
        """One chunk a choice that names the role."""
        for index in range(self._body.n):
            yield self._chunk(index, {"role": "assistant", "content": ""}, [])

    def of(self, new: Progress) -> Iterator[dict[str, Any]]:
        """The chunks that something new makes: none while its text is held back."""
        self._untold[new.index] += new.tokens
        if new.ended is not None:
            yield from self._last(new.index, new.ended)
            return
        text = settled(new.text) if self._body.offers_tools else new.text
        if fresh := text[self._sent[new.index] :]:
            self._sent[new.index] += len(fresh)
            yield self._chunk(new.index, {"content": fresh}, self._told(new.index))

    def total(self, samples: Sequence[Sample]) -> dict[str, Any] | None:
        """The closing chunk with the token counts, where the request wants it."""
        if "usage" not in self._envelope:
            return None
        return {**self._envelope, "choices": [], "usage": usage(self._prompt_ids, samples)}

    def _last(self, index: int, sample: Sample) -> Iterator[dict[str, Any]]:
        parsed = taken_apart(self._body, sample.text)
        if rest := (parsed.content or "")[self._sent[index] :]:
            yield self._chunk(index, {"content": rest}, self._told(index))
        for number, call in enumerate(parsed.calls):
            yield self._chunk(index, {"tool_calls": [call.as_message_part(number)]}, self._told(index))
        more = provenance(self._body, self._prompt_ids, self._version())
        yield self._chunk(index, {}, self._told(index), ends=finish_reason(parsed, sample), more=more)

    def _told(self, index: int) -> list[SampledToken]:
        tokens, self._untold[index] = self._untold[index], []
        return tokens

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        tokens: list[SampledToken],
        *,
        ends: str | None = None,
        more: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        content = list(token_logprobs(tokens, self._tokenizer))
        choice = {
            "index": index,
            "delta": delta,
            "finish_reason": ends,
            "logprobs": {"content": content} if content else None,
            "token_ids": [token.id for token in tokens],
            **(more or {}),
        }
        return {**self._envelope, "choices": [choice]}
