"""What the soak asks: questions whose answers are known, questions that only have a form, and nonsense."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

PLACES = ["Lisbon", "Oslo", "Nairobi", "Quito", "Hanoi", "Perth"]
SHELVES = "Shelf {0} holds atlases; shelf {1} holds novels; a loan from shelf {0} lasts {2} days. "

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
RIVER = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 24}, "km": {"type": "integer"}},
    "required": ["name", "km"],
}


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def known(model: str) -> dict[str, dict[str, Any]]:
    """Name -> a request that has the same answer every time: greedy, or sampled with a seed."""
    greedy, seeded = {"temperature": 0}, {"temperature": 1.0, "seed": 11}
    found: dict[str, dict[str, Any]] = {}
    for number, place in enumerate(PLACES):
        asked = {"messages": user(f"What is {place} known for?"), "max_tokens": 24}
        found[f"greedy {place}"] = {**asked, **greedy}
        found[f"seeded {place}"] = {**asked, **seeded, "seed": number}
    found["long greedy"] = {
        "messages": user("Tell me a story about a lighthouse."),
        "max_tokens": 160,
        **greedy,
    }
    found["several"] = {"messages": user("Name a fruit."), "max_tokens": 12, "n": 4, **seeded}
    found["narrow"] = {
        "messages": user("Name a colour."),
        "max_tokens": 12,
        "top_p": 0.8,
        "top_k": 40,
        **seeded,
    }
    found["stop"] = {
        "messages": user("Count: one, two, three"),
        "max_tokens": 40,
        "stop": [",", "\n"],
        **greedy,
    }
    found["logprobs"] = {
        "messages": user("Say yes or no."), "max_tokens": 8, "logprobs": True, "top_logprobs": 5, **greedy
    }  # fmt: skip
    found["penalties"] = {
        "messages": user("Sing a song."), "max_tokens": 32, "frequency_penalty": 0.7, "presence_penalty": 0.3, **seeded
    }  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "river", "schema": RIVER}}
    found["schema"] = {"messages": user("A river?"), "max_tokens": 60, "response_format": form, **greedy}
    found["forced call"] = {
        "messages": user("Is it raining in Oslo?"), "max_tokens": 60, "tools": [WEATHER], "tool_choice": "required",
        **greedy,
    }  # fmt: skip
    found["tools"] = {"messages": user("Weather in Quito?"), "max_tokens": 24, "tools": [WEATHER], **seeded}
    for number in range(3):
        passage = "".join(SHELVES.format(k, k + 1, 20 + (k + number) % 9) for k in range(24))
        asked = user(f"{passage}\n\nHow long may an atlas be kept?")
        found[f"long prompt {number}"] = {"messages": asked, "max_tokens": 16, **greedy}
    return {name: {"model": model, **body} for name, body in found.items()}


TURNS = ["Hello, who are you?", "What can you do?", "Give me an example.", "Shorter, please.", "Thank you."]
"""A conversation that grows by what was answered."""


def turn(model: str, said: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": model, "messages": said, "max_tokens": 20, "temperature": 0}


def loose(model: str, number: int) -> dict[str, Any]:
    """A request without a seed; no two are alike."""
    asked = user(f"Tell me something about the number {number}.")
    return {"model": model, "messages": asked, "max_tokens": 8 + number % 56, "n": 1 + number % 3}


def unread(model: str, number: int) -> dict[str, Any]:
    """A long prompt that shares nothing with any other, and next to no answer."""
    words = " ".join(str(number * 7919 + k * 104_729) for k in range(160))
    return {"model": model, "messages": user(f"{number}: {words}"), "max_tokens": 1}


@dataclass(frozen=True)
class Nonsense:
    """Something that must be refused."""

    name: str
    status: int
    body: bytes
    more: dict[str, Any]
    """Further arguments of `Client.send`."""


def nonsense(model: str) -> list[Nonsense]:
    right = {"model": model, "messages": user("Hi."), "max_tokens": 4}

    def wrong(name: str, status: int = 400, **changed: Any) -> Nonsense:
        return Nonsense(name, status, json.dumps({**right, **changed}).encode(), {})

    def raw(name: str, status: int, body: bytes = json.dumps(right).encode(), **more: Any) -> Nonsense:
        return Nonsense(name, status, body, more)

    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {"type": "string"}}}}
    return [
        raw("broken JSON", 400, b'{"model": "x", "messages": [{"role": '),
        raw("no JSON", 400, b"hello"),
        raw("no UTF-8", 400, b'{"model": "\xff\xfe"}'),
        raw("a list", 400, b"[1, 2, 3]"),
        raw("nothing", 400, b""),
        raw("deep", 400, b"[" * 50_000),
        raw("wrong key", 401, key="wrong"),
        raw("no such route", 404, route="/v1/embeddings"),
        raw("wrong method", 405, b"", method="GET"),
        raw("too large", 413, b" " * (9 << 20)),
        raw("too large, as announced", 413, b"{}", announced=1 << 40),
        wrong("unknown model", 404, model="gpt-4.1"),
        wrong("messages as text", messages="Hi."),
        wrong("no messages", messages=[]),
        wrong("a role that is none", messages=[{"role": "wizard", "content": "Hi."}]),
        wrong("a picture", messages=[{"role": "user", "content": picture}]),
        wrong("temperature as text", temperature="hot"),
        wrong("n of zero", n=0),
        wrong("n of a million", n=1_000_000),
        wrong("a negative limit", max_tokens=-1),
        wrong("an unknown parameter", reasoning_effort="high"),
        wrong("too many stops", stop=["a", "b", "c", "d", "e"]),
        wrong("a bad bias", logit_bias={"x": 1000}),
        wrong("an unknown keyword in a schema", response_format=form),
        wrong(
            "a tool that is not there",
            tools=[WEATHER],
            tool_choice={"type": "function", "function": {"name": "x"}},
        ),
        wrong("too long", messages=user("word " * 30_000)),
    ]
