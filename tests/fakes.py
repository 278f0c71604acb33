"""Fakes for tests: an OpenAI-compatible server on the loopback interface, and ready-made data."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from groundrule.data import Trajectory, TrajectoryGroup


def completion(
    content: Any = "hello",
    *,
    finish_reason: str = "stop",
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> dict[str, Any]:
    """The body of a chat completion."""
    counts = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "fake-model",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": usage or counts,
    }


def refusal_of(parameter: str, *, code: str = "unsupported_parameter") -> dict[str, Any]:
    """The body of a 400 that names a parameter."""
    message = f"Unsupported parameter: '{parameter}' is not supported with this model."
    return {"error": {"message": message, "type": "invalid_request_error", "param": parameter, "code": code}}


class FakeOpenAI:
    """Plays (status, headers, body) in turn and repeats the last; keeps what it was asked."""

    def __init__(self, script: Sequence[tuple[int, dict[str, str], Any]]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.base_url = ""

    def next(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        self.requests.append(body)
        self.headers.append(headers)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@contextmanager
def fake_openai(*script: tuple[int, dict[str, str], Any]) -> Iterator[FakeOpenAI]:
    """A server for the time of the block."""
    fake = FakeOpenAI(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, answer = fake.next(body, {k.lower(): v for k, v in self.headers.items()})
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode("utf-8")
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    fake.base_url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def scores_json(*scores: float, ids: Sequence[str] | None = None) -> str:
    """A judge's reply in the wire format."""
    ids = ids or [str(number) for number in range(1, len(scores) + 1)]
    items = [
        {"trajectory_id": name, "explanation": f"about {name}", "score": score}
        for name, score in zip(ids, scores, strict=True)
    ]
    return json.dumps({"scores": items})


def chat(
    answer: str, *, system: str | None = "Answer from the context only.", question: str = "Refunds?"
) -> list[Any]:
    """A short conversation."""
    opening = [{"role": "system", "content": system}] if system is not None else []
    return [*opening, {"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def group_of(*answers: str, **more: Any) -> TrajectoryGroup:
    """A group whose members differ in their answers only."""
    return TrajectoryGroup([Trajectory(messages_and_choices=chat(answer)) for answer in answers], **more)


def prompt_of(request: Any) -> str:
    """All text of a request's messages."""
    texts: list[str] = []
    for message in request.messages:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts.extend(part["text"] for part in parts if part["type"] == "text")
    return "\n".join(texts)


class KeywordJudge:
    """A judge function that knows each answer's worth: it finds the answers in the prompt, wherever shown."""

    def __init__(self, worth: dict[str, float]) -> None:
        self.worth = worth
        self.calls = 0

    def __call__(self, request: Any) -> dict[str, Any]:
        self.calls += 1
        prompt = prompt_of(request)
        shown = sorted((answer for answer in self.worth if answer in prompt), key=prompt.index)
        return {
            "scores": [
                {"trajectory_id": str(number), "explanation": f"on {answer}", "score": self.worth[answer]}
                for number, answer in reversed(list(enumerate(shown, start=1)))
            ]
        }
