"""Write a group down for a judge: the spec, what the attempts share once, then each attempt in its own block.

Every boundary is a line `<<<CODE NAME>>>` where CODE is made from the seed and the content it encloses.
No text can hold a code that depends on that text, and three brackets in a row never survive in text, so
nothing an agent or a tool writes can close its block or open another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.messages import Tools, text_of
from groundrule.rewards.attempt import (
    Attempt,
    Turn,
    common_prefix_len,
    evidence_key,
    shared_system_len,
    turn_key,
)
from groundrule.rewards.neutral import neutral, neutral_line

_ROLES = {"assistant": "AGENT", "user": "USER", "system": "SYSTEM", "developer": "SYSTEM"}
_CUTS = {
    "length": "CUT OFF: this reply reached its length limit",
    "content_filter": "CUT OFF: a content filter stopped this reply",
}


@dataclass(frozen=True)
class Transcript:
    """The judge's reading matter: text, or text and image parts."""

    content: str | list[dict[str, Any]]
    code: str
    """What marks the true boundaries of this transcript."""
    prefix_len: int
    """How many opening messages were shown once for all."""


def render(attempts: Sequence[Attempt], *, seed: int = 0, show_images: bool = False) -> Transcript:
    """The attempts as evidence, numbered from 1 in the order given."""
    system_len = shared_system_len(attempts)
    prefix_len = max(common_prefix_len([a.turns for a in attempts]), system_len)
    page = _Page(code=boundary_code(attempts, system_len, seed), show_images=show_images)
    _write_spec(page, attempts, system_len)
    tools = [attempt.tools for attempt in attempts]
    same_tools = all(turn_key(t) == turn_key(tools[0]) for t in tools)
    if same_tools and tools and tools[0]:
        _write_tools(page, tools[0])
    if prefix_len > system_len:
        page.mark("SHARED BEGINNING OF ALL TRAJECTORIES")
        _write_turns(page, attempts[0].turns[system_len:prefix_len])
        page.mark("END SHARED BEGINNING")
    for number, attempt in enumerate(attempts, start=1):
        page.mark(f"TRAJECTORY {number}")
        if attempt.tools and not same_tools:
            _write_tools(page, attempt.tools)
        for index, history in enumerate(attempt.histories, start=1):
            page.mark(f"FURTHER CONVERSATION {index} OF TRAJECTORY {number}")
            _write_turns(page, history)
            page.mark(f"END FURTHER CONVERSATION {index}")
        _write_turns(page, attempt.turns[prefix_len:])
        if len(attempt.turns) == prefix_len:
            page.mark("ENDS HERE: nothing follows the shared beginning")
        page.mark(f"END TRAJECTORY {number}")
    return Transcript(content=page.content(), code=page.code, prefix_len=prefix_len)


def boundary_code(attempts: Sequence[Attempt], system_len: int, seed: int) -> str:
    """Twelve hex digits that no text here contains.

    The shared system prompt does not enter, so that another system prompt changes the spec section of a
    prompt and nothing else.
    """
    whole = turn_key([[a.turns, a.histories, a.tools] for a in attempts])
    evidence = [evidence_key(attempt, system_len) for attempt in attempts]
    for draw in range(1_000):
        code = f"{derive('boundary', seed, evidence, draw):016x}"[-12:]
        if code not in whole:
            return code
    raise AssertionError("unreachable: a thousand derived codes all occur in one text")


def _write_spec(page: _Page, attempts: Sequence[Attempt], system_len: int) -> None:
    page.mark("SPEC: the system prompt of the agent, which is the criterion")
    if system_len:
        page.text("\n\n".join(text_of(turn["content"]) for turn in attempts[0].turns[:system_len]))
    elif any(attempt.system for attempt in attempts):
        page.text(
            "(The trajectories were given different system prompts. Each block below opens with its own "
            "SYSTEM message: grade that trajectory by it.)"
        )
    else:
        page.text("(The agent had no system prompt. Grade by what the user asked for.)")
    page.mark("END SPEC")


def _write_tools(page: _Page, tools: Tools) -> None:
    page.mark("TOOLS the agent could call")
    for tool in tools:
        page.text(json.dumps(tool.get("function", tool), ensure_ascii=False))
    page.mark("END TOOLS")


def _write_turns(page: _Page, turns: Sequence[Turn]) -> None:
    for turn in turns:
        page.mark(_heading(turn))
        if turn.get("reasoning"):
            page.mark("REASONING of the agent, not shown to the user")
            page.text(turn["reasoning"])
            page.mark("END REASONING")
        _write_content(page, turn["content"])
        if turn.get("refusal"):
            page.mark("REFUSED")
            page.text(turn["refusal"])
        for call in turn["calls"]:
            page.mark(f"CALL {call['name']}({_arguments(call['arguments'])}) #{call['number']}")
        if not (turn["content"] or turn["calls"] or turn.get("refusal")):
            page.mark("EMPTY: no text")
        if turn.get("cut"):
            page.mark(_CUTS[turn["cut"]])


def _heading(turn: Turn) -> str:
    if turn["role"] == "tool":
        return f"RESULT {turn['name']}#{turn['answers'] or '?'}"
    role = _ROLES.get(turn["role"], str(turn["role"]).upper())
    return f"{role} {turn['name']}" if turn.get("name") else role


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return f"{arguments} [not a JSON object]" if arguments else ""
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _write_content(page: _Page, content: Any) -> None:
    if isinstance(content, list):
        for part in content:
            kind = str(part.get("type") or "part") if isinstance(part, dict) else "part"
            if kind in ("image_url", "input_image"):
                page.image(part)
            elif text := text_of([part]):
                page.text(text)
            elif kind != "refusal":
                data = json.dumps(part, sort_keys=True, default=str)
                page.mark(f"{kind.upper()} {len(data)} characters sha256:{_short_hash(data.encode())}")
    elif content:
        page.text(text_of(content))


@dataclass
class _Page:
    """The lines and images written so far."""

    code: str
    show_images: bool
    images: int = 0
    _parts: list[str | dict[str, Any]] = field(default_factory=list)

    def mark(self, name: str) -> None:
        self._parts.append(f"<<<{self.code} {neutral_line(name)}>>>")

    def text(self, text: str) -> None:
        self._parts.append(neutral(text))

    def image(self, part: dict[str, Any]) -> None:
        self.images += 1
        source = part.get("image_url")
        url = source.get("url", "") if isinstance(source, dict) else str(source or "")
        self.mark(f"IMAGE {self.images}: {_describe_image(url)}")
        if self.show_images:
            detail = {"detail": source["detail"]} if isinstance(source, dict) and source.get("detail") else {}
            self._parts.append({"type": "image_url", "image_url": {"url": url, **detail}})

    def content(self) -> str | list[dict[str, Any]]:
        """One text, or parts in the order written where there are images."""
        if all(isinstance(part, str) for part in self._parts):
            return "\n".join(str(part) for part in self._parts)
        merged: list[dict[str, Any]] = []
        for part in self._parts:
            if isinstance(part, dict):
                merged.append(part)
            elif merged and merged[-1]["type"] == "text":
                merged[-1]["text"] += "\n" + part
            else:
                merged.append({"type": "text", "text": part})
        return merged


def _describe_image(url: str) -> str:
    """Type, size and hash of an embedded image; the address of a linked one."""
    if not url.startswith("data:"):
        return f"at {url[:200]}"
    header, _, data = url.partition(",")
    try:
        raw = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        raw = data.encode("utf-8", "replace")
    kind = header.removeprefix("data:").partition(";")[0] or "unknown type"
    return f"{kind} {len(raw)} bytes sha256:{_short_hash(raw)}"


def _short_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
