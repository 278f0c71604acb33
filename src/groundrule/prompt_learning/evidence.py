"""What scored groups say about the prompt: the best against the worst answer, and complaints that come again.

The judge's explanations are a review in words. One complaint about one answer says little; the same complaint in
several groups is a habit, and habits are what a lesson can change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer, text_of
from groundrule.data.trajectory import PROMPT, Trajectory
from groundrule.rewards.checks import content_words

_EXPLAINED = re.compile(r"^\S+ explanation: (?P<text>.*)", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")
_QUOTES = re.compile(r"\"([^\"]{3,})\"|“([^”]{3,})”|«([^»]{3,})»")
ALIKE = 0.5
"""Shared content words, as a part of the shorter complaint's, from which two complaints are the same."""
_FEWEST_WORDS = 2
_OF_ANY_ANSWER = frozenset({"agent", "answer", "assistant", "reply", "response", "trajectory"})
"""Words by which no two complaints are alike: nearly every one has them."""


@dataclass(frozen=True)
class Contrast:
    """A group in short."""

    id: str
    scenario_id: str
    task: str
    """What the agent was asked."""
    best: str
    best_score: float
    best_explanation: str
    worst: str
    worst_score: float
    worst_explanation: str
    reliability: float

    @property
    def quotes(self) -> list[str]:
        """What the judge quotes of the worst answer, where it really stands there."""
        found = (next(filter(None, groups)) for groups in _QUOTES.findall(self.worst_explanation))
        return [quote for quote in found if quote in self.worst]

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


@dataclass(frozen=True)
class Complaint:
    """What judges find wrong again and again."""

    text: str
    """In the words of the first one."""
    contrasts: tuple[str, ...]
    """The ids of those in which it was made, at most once each."""


@dataclass(frozen=True)
class Evidence:
    """What a reflection is made from."""

    contrasts: tuple[Contrast, ...]
    complaints: tuple[Complaint, ...]
    unreliable: int = 0
    """Groups that were left out because the judge contradicts itself there."""
    level: int = 0
    """Groups that were left out because their answers are equally good, or too few have a score."""

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "contrasts": [contrast.to_dict() for contrast in self.contrasts],
            "complaints": [{"text": c.text, "contrasts": list(c.contrasts)} for c in self.complaints],
            "unreliable": self.unreliable,
            "level": self.level,
        }

    def of(self, complaint: Complaint) -> list[Contrast]:
        """The contrasts of a complaint."""
        return [contrast for contrast in self.contrasts if contrast.id in complaint.contrasts]


def collect(
    groups: Sequence[TrajectoryGroup],
    *,
    least_reliability: float = 0.6,
    least_gap: float = 0.1,
    least_support: int = 2,
    prefix: str = "g",
) -> Evidence:
    """The contrasts of reliable groups with a gap, and the complaints made in at least `least_support` of them."""
    contrasts: list[Contrast] = []
    unreliable = level = 0
    for number, group in enumerate(groups, start=1):
        if _reliability(group) < least_reliability:
            unreliable += 1
            continue
        contrast = _contrast(f"{prefix}{number}", group, least_gap)
        if contrast is None:
            level += 1
        else:
            contrasts.append(contrast)
    found = tuple(c for c in recurring(contrasts) if len(c.contrasts) >= least_support)
    return Evidence(tuple(contrasts), found, unreliable, level)


def recurring(contrasts: Sequence[Contrast]) -> list[Complaint]:
    """Complaints about the worst answers, alike ones as one, those of most groups first."""
    clusters: list[tuple[str, list[set[str]], list[str]]] = []
    for contrast in contrasts:
        for sentence in _SENTENCES.split(contrast.worst_explanation):
            words = set(content_words(sentence))
            if len(words) < _FEWEST_WORDS:
                continue
            home = next((c for c in clusters if any(_alike(words, seen) for seen in c[1])), None)
            if home is None:
                clusters.append((sentence.strip(), [words], [contrast.id]))
            else:
                home[1].append(words)
                home[2].append(contrast.id)
    complaints = [Complaint(text, tuple(dict.fromkeys(ids))) for text, _, ids in clusters]
    return sorted(complaints, key=lambda complaint: -len(complaint.contrasts))


def explanation_of(trajectory: Trajectory) -> str:
    """What the last scorer said about it; empty where it said nothing."""
    said = [found["text"] for log in trajectory.logs if (found := _EXPLAINED.match(log))]
    return said[-1] if said else ""


def prompt_ids(groups: Iterable[TrajectoryGroup]) -> set[str]:
    """Which prompts the members were given, as far as they say."""
    return {str(t.metadata[PROMPT]) for group in groups for t in group if PROMPT in t.metadata}


def _alike(one: set[str], other: set[str]) -> bool:
    shared = one & other
    return len(shared) >= ALIKE * min(len(one), len(other)) and not shared <= _OF_ANY_ANSWER


def _reliability(group: TrajectoryGroup) -> float:
    return float(group.metrics.get("judge_reliability", 1.0))


def _contrast(name: str, group: TrajectoryGroup, least_gap: float) -> Contrast | None:
    scored = group.scored
    if len(scored) < 2:
        return None
    best, worst = max(scored, key=lambda t: t.reward), min(scored, key=lambda t: t.reward)
    if best.reward - worst.reward < least_gap:
        return None
    return Contrast(
        id=name,
        scenario_id=group.scenario_id or "",
        task=_task(best),
        best=last_answer(best.messages()) or "",
        best_score=best.reward,
        best_explanation=explanation_of(best),
        worst=last_answer(worst.messages()) or "",
        worst_score=worst.reward,
        worst_explanation=explanation_of(worst),
        reliability=_reliability(group),
    )


def _task(trajectory: Trajectory) -> str:
    asked = [m for m in trajectory.messages() if m.get("role") == "user"]
    return text_of(asked[0].get("content")) if asked else ""
