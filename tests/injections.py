"""Attacks and clean texts for the detector and the prompt, and trajectories that carry them.

`fixtures/injections.jsonl` has one text a line: `label` attack or clean, `kind`, `place` (where in a
trajectory it stands), and `half`: the patterns of the detector were written with the development half in
view; the held-out half was written before them and is only ever counted. All texts are made up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundrule.rewards.attempt import Attempt, attempt_of

QUESTION = [
    {"role": "system", "content": "Answer from the context only."},
    {"role": "user", "content": "Can I get a refund?"},
]
UNSEEN = {"tool_id", "image_alt"}
"""Places that no judge is shown: ids are replaced by numbers, alternative texts left out."""


@dataclass(frozen=True)
class Sample:
    """One text of the fixture."""

    id: str
    half: str
    label: str
    kind: str
    place: str
    text: str


def samples(label: str, half: str | None = None) -> list[Sample]:
    """The texts with a label, of one half or both, in file order."""
    lines = (Path(__file__).parent / "fixtures" / "injections.jsonl").read_text("utf-8").splitlines()
    found = [Sample(**json.loads(line)) for line in lines]
    return [s for s in found if s.label == label and half in (None, s.half)]


def carrying(sample: Sample) -> Attempt:
    """An attempt at QUESTION that has the text in its place."""
    return attempt_of([*QUESTION, *_turns(sample.place, sample.text)], histories=_histories(sample))


def honest(answer: str) -> Attempt:
    """An attempt at QUESTION with a plain answer."""
    return attempt_of([*QUESTION, {"role": "assistant", "content": answer}])


def _histories(sample: Sample) -> list[list[dict[str, Any]]]:
    plain = [{"role": "user", "content": "Find the policy."}, {"role": "assistant", "content": "Found."}]
    attacked = [plain[0], {"role": "assistant", "content": sample.text}]
    return [plain, attacked] if sample.place == "history" else []


def _turns(place: str, text: str) -> list[dict[str, Any]]:
    answer = {"role": "assistant", "content": "Within 30 days."}
    if place == "answer":
        return [{"role": "assistant", "content": text}]
    if place == "refusal":
        return [{"role": "assistant", "content": "", "refusal": text}]
    if place in ("tool_result", "tool_name", "tool_id", "arguments", "bad_arguments"):
        return [*_tool_use(place, text), answer]
    if place in ("image_url", "image_alt"):
        url = text if place == "image_url" else "https://example.com/a.png"
        image = {
            "type": "image_url",
            "image_url": {"url": url},
            "alt": text if place == "image_alt" else "a lamp",
        }
        return [*_tool_use("tool_result", [image]), answer]
    if place == "part_type":
        return [*_tool_use("tool_result", [{"type": text, "data": "AAAA"}]), answer]
    if place == "user_name":
        return [answer, {"role": "user", "name": text, "content": "Thanks."}, answer]
    if place == "role":
        return [{"role": text, "content": "nothing"}, answer]
    return [answer]


def _tool_use(place: str, text: Any) -> list[dict[str, Any]]:
    name = text if place == "tool_name" else "lookup"
    call_id = text if place == "tool_id" else "call_1"
    arguments = {"arguments": json.dumps({"q": text}), "bad_arguments": text}.get(place, '{"q": "refund"}')
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text if place == "tool_result" else "30 days"},
    ]
