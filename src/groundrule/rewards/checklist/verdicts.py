"""A judge's verdicts on single criteria: reading them, checking their evidence, adding them up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.rewards.checklist.criteria import Checklist, Criterion
from groundrule.rewards.parse import reply_object

Verdict = Literal["met", "broken", "unclear", "n/a"]
"""`n/a`: the criterion is for a situation that did not arise."""

VETOED = 0.1
"""What is left of the value of a trajectory that breaks a criterion with a veto."""
LEAST_DECIDED = 0.5
"""Share of the weight that must be decided; with less there is no score."""

_NOT_WORDS = re.compile(r"[\W_]+")
_SHORTEST_QUOTE = 2


@dataclass(frozen=True)
class Finding:
    """One criterion on one trajectory, as said."""

    verdict: Verdict
    quote: str = ""


@dataclass(frozen=True)
class Assessment:
    """All criteria on one trajectory, added up."""

    value: float | None
    """0..1; None where too little could be decided."""
    explanation: str


def read_verdicts(reply: ChatReply, n: int, checklist: Checklist) -> list[dict[str, Finding]]:
    """For trajectories "1" to "n" in order, the finding on each criterion; raises `JudgeReplyError`."""
    data = reply_object(reply, "trajectories")
    entries = entries_by_name(
        data["trajectories"], "trajectory_id", [str(i) for i in range(1, n + 1)], "trajectory"
    )
    names = [criterion.id for criterion in checklist.criteria]
    read: list[dict[str, Finding]] = []
    for number, entry in entries.items():
        said = entries_by_name(entry.get("verdicts"), "criterion", names, f"trajectory {number}: criterion")
        read.append({name: _finding(item, f"trajectory {number}, {name}") for name, item in said.items()})
    return read


def assess(findings: Mapping[str, Finding], checklist: Checklist, text: str) -> Assessment:
    """The weighted share of criteria kept, among those decided. `text` is the trajectory's own text.

    A quote that is not in it does not count: what should be there and is not shown counts as broken, a breach
    that is not shown does not count as one. A breach of a criterion with a veto leaves `VETOED` of the rest.
    """
    applying = [c for c in checklist.criteria if findings[c.id].verdict != "n/a"]
    decided = {c.id: _decided(c, findings[c.id], text) for c in applying}
    known = [c for c in applying if decided[c.id] is not None]
    total, weight = sum(c.weight for c in applying), sum(c.weight for c in known)
    broken = [c for c in known if decided[c.id] is False]
    words = "; ".join(f"breaks {c.id} ({c.text}){_shown(findings[c.id])}" for c in broken)
    if not known or weight < LEAST_DECIDED * total:
        return Assessment(None, f"{len(known)} of {len(applying)} criteria that apply could be decided")
    value = sum(c.weight for c in known if decided[c.id]) / weight
    if any(c.veto for c in broken):
        value *= VETOED
    return Assessment(value, words or "keeps every criterion")


def is_quoted(quote: str, text: str) -> bool:
    """Whether the quote stands in the text, whatever its case, spaces and punctuation."""
    plain = _plain(quote)
    return len(plain) >= _SHORTEST_QUOTE and plain in _plain(text)


def _plain(text: str) -> str:
    return _NOT_WORDS.sub("", text).casefold()


def _decided(criterion: Criterion, finding: Finding, text: str) -> bool | None:
    """True: kept. False: broken. None: not decided."""
    if finding.verdict == "unclear":
        return None
    if criterion.kind == "do":
        return finding.verdict == "met" and is_quoted(finding.quote, text)
    return not (finding.verdict == "broken" and is_quoted(finding.quote, text))


def _shown(finding: Finding) -> str:
    return f": {finding.quote[:120]!r}" if finding.quote else ""


def _finding(item: Mapping[str, Any], place: str) -> Finding:
    verdict, quote = verdict_and_quote(item, get_args(Verdict), f"{place}: ")
    return Finding(verdict, quote)


def verdict_and_quote(item: Mapping[str, Any], allowed: Sequence[str], place: str = "") -> tuple[Any, str]:
    """A verdict that is one of these, and the words that it rests on; raises `JudgeReplyError`."""
    verdict: Any = item.get("verdict")
    quote = item.get("quote") or ""
    if verdict not in allowed:
        raise JudgeReplyError(
            "wrong_type", f"{place}verdict is {verdict!r}; it must be one of {tuple(allowed)}"
        )
    if not isinstance(quote, str):
        raise JudgeReplyError("wrong_type", f"{place}quote is {quote!r}, not a text")
    return verdict, quote


def entries_by_name(items: Any, key: str, names: Sequence[str], what: str) -> dict[str, Mapping[str, Any]]:
    """The items under exactly the expected names, in that order."""
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise JudgeReplyError("wrong_type", f"{what}s are {str(items)[:60]!r}, not a list of objects")
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        name = str(item.get(key, "")).strip()
        if name in found:
            raise JudgeReplyError("duplicate_ids", f"{what} {name} stands twice", detail=[name])
        found[name] = item
    unknown, missing = [n for n in found if n not in names], [n for n in names if n not in found]
    if unknown:
        raise JudgeReplyError("unknown_ids", f"{what} {unknown[0]!r} is unknown", detail=unknown)
    if missing:
        raise JudgeReplyError("missing_ids", f"{what} {missing[0]} has no entry", detail=missing)
    return {name: found[name] for name in names}
