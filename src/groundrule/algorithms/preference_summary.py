"""What a set of preferences holds: how much, from whom, how sound, and whether the longer answer wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from groundrule.algorithms.agreement import (
    FIRST,
    SECOND,
    TIE,
    Agreement,
    Comparison,
    Measured,
    agreement,
    bootstrap,
)
from groundrule.data.contradictions import Contradiction, contradictions
from groundrule.data.preferences import PreferencePair, Ranking

NAMELESS = "(no name)"


@dataclass(frozen=True)
class LengthBias:
    """Whether the longer answer is preferred. Lengths are characters of what the agent wrote."""

    chosen: float
    """Mean over pairs."""
    rejected: float
    longer_chosen: Measured
    """The share of pairs whose chosen answer is the longer one; equal lengths count half. No bias: 0.5."""


@dataclass(frozen=True)
class PreferenceSummary:
    """Everything `groundrule prefs check` says of a file."""

    rankings: int
    prompts: int
    answers: int
    """Different answers to different prompts."""
    pairs: int
    ties: int
    with_margin: int
    """Pairs that say by how much."""
    annotators: dict[str, int]
    """Rankings by annotator, and below by source; most first."""
    sources: dict[str, int]
    contradictions: list[Contradiction]
    length: LengthBias | None
    """None: there are no pairs."""
    agreement: Agreement | None
    """None: no two named annotators compared the same answers."""
    wavering: int
    """Comparisons on which one annotator says different things in different rankings; not part of the agreement."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; a contradiction as its annotator and its answers."""
        told = [
            {"annotator": c.annotator, "prompt": c.prompt, "answers": [a.text for a in c.answers]}
            for c in self.contradictions
        ]
        length, agreement = (part and asdict(part) for part in (self.length, self.agreement))
        return {**vars(self), "contradictions": told, "length": length, "agreement": agreement}


def summarise(rankings: Sequence[Ranking]) -> PreferenceSummary:
    """Count and measure; nothing is left out."""
    pairs = [pair for ranking in rankings for pair in ranking.pairs()]
    outcomes, wavering = _outcomes(rankings)
    return PreferenceSummary(
        rankings=len(rankings),
        prompts=len({ranking.prompt_key for ranking in rankings}),
        answers=len({(r.prompt_key, answer.key) for r in rankings for answer in r.answers}),
        pairs=len(pairs),
        ties=sum(ranking.ties for ranking in rankings),
        with_margin=sum(pair.margin is not None for pair in pairs),
        annotators=dict(Counter(r.annotator or NAMELESS for r in rankings).most_common()),
        sources=dict(Counter(r.source or "(not said)" for r in rankings).most_common()),
        contradictions=contradictions(pairs),
        length=_length_bias(pairs) if pairs else None,
        agreement=agreement(outcomes),
        wavering=wavering,
    )


def _length_bias(pairs: Sequence[PreferencePair]) -> LengthBias:
    chosen, rejected = [len(p.chosen.text) for p in pairs], [len(p.rejected.text) for p in pairs]
    by_prompt: dict[str, list[float]] = {}
    for pair, c, r in zip(pairs, chosen, rejected, strict=True):
        by_prompt.setdefault(pair.prompt_key, []).append(0.5 if c == r else float(c > r))
    sums = [(sum(shares), len(shares)) for shares in by_prompt.values()]
    return LengthBias(
        chosen=fmean(chosen),
        rejected=fmean(rejected),
        longer_chosen=bootstrap(sums, lambda drawn: sum(s for s, _ in drawn) / sum(n for _, n in drawn)),
    )


def _outcomes(rankings: Sequence[Ranking]) -> tuple[list[dict[str, dict[Comparison, int]]], int]:
    """By prompt and named annotator, what is said of each two answers; and how many comparisons waver."""
    said: dict[str, dict[str, dict[Comparison, set[int]]]] = {}
    for ranking in rankings:
        if ranking.annotator is not None:
            mine = said.setdefault(ranking.prompt_key, {}).setdefault(ranking.annotator, {})
            for comparison, outcome in _comparisons(ranking):
                mine.setdefault(comparison, set()).add(outcome)
    wavering = sum(
        len(o) > 1 for by_name in said.values() for mine in by_name.values() for o in mine.values()
    )
    steady = [
        {name: {c: min(o) for c, o in mine.items() if len(o) == 1} for name, mine in by_name.items()}
        for by_name in said.values()
    ]
    return steady, wavering


def _comparisons(ranking: Ranking) -> list[tuple[Comparison, int]]:
    """Each two answers, by content in the order of their keys, and which of them is better."""
    tier_of = {ranking.answers[i].key: t for t, tier in enumerate(ranking.tiers) for i in tier}
    keys = sorted(tier_of)
    return [
        ((a, b), TIE if tier_of[a] == tier_of[b] else FIRST if tier_of[a] < tier_of[b] else SECOND)
        for i, a in enumerate(keys)
        for b in keys[i + 1 :]
    ]
