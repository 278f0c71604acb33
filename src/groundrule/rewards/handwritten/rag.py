"""A hand-written reward for answers from a retrieved passage: five criteria, each a number from 0 to 1.

It measures words, not meaning: a claim turned round in the passage's own words passes, an honest paraphrase
loses. `groundrule reward-bench` shows what it measures before anything is trained on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score, Scores
from groundrule.rewards.checks import content_words, words_of
from groundrule.rewards.situation import Situation, case_of

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_HEDGE = re.compile(
    r"\b(?:two|both|either|or|differ\w*|conflict\w*|contradict\w*|unclear|not clear|ambiguous|depends|while|whereas|"
    r"elsewhere|another place|in one place)\b",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|\b[A-Z][a-z]+\b|\d+(?:[.,:]\d+)*")

_STEM = 4


@dataclass(frozen=True)
class RagWeights:
    """What each criterion counts. The defaults are the usual first guess: faithful first, form last."""

    uses_context: float = 0.4
    no_unsupported_claims: float = 0.3
    complete: float = 0.2
    concise: float = 0.1
    says_ambiguous: float = 0.0


def rag_parts(
    answer: str, question: str, context: str, *, is_ambiguous: bool | None = None, most_words: int = 40
) -> dict[str, float]:
    """The five criteria.

    uses_context: share of the answer's content words that the passage holds, doubled and cut at 1.
    no_unsupported_claims: share of its sentences whose numbers, names and addresses all stand in passage or question.
    complete: share of the content words of the passage's best matching sentence that the answer holds.
    concise: 1 up to `most_words` words, falling to 0 at three times as many.
    says_ambiguous: where the passage is known to be ambiguous, whether the answer says so; else 1 unless it hedges.
    An answer without words gets 0 everywhere.
    """
    words = words_of(answer)
    if not words:
        return dict.fromkeys(asdict(RagWeights()), 0.0)
    hedges = bool(_HEDGE.search(answer))
    says_so = 1.0 if is_ambiguous is None else float(hedges == is_ambiguous)
    return {
        "uses_context": _uses(answer, context),
        "no_unsupported_claims": _supported(answer, f"{context} {question}"),
        "complete": _complete(answer, question, context),
        "concise": min(1.0, max(0.0, (3 * most_words - len(words)) / (2 * most_words))),
        "says_ambiguous": says_so,
    }


@dataclass(frozen=True)
class RagReward:
    """The weighted mean of the criteria as a `Scorer`; every criterion is kept in the score's parts."""

    weights: RagWeights = RagWeights()
    most_words: int = 40

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member; without question and passage there is none, with the reason."""
        return Scores(self._one(case_of(member, group), group) for member in group)

    def _one(self, case: tuple[Situation, str] | str, group: TrajectoryGroup) -> Score:
        if isinstance(case, str):
            return Score.none(case)
        situation, answer = case
        if situation.passage is None or situation.question is None:
            return Score.none("question and passage cannot be told apart in this conversation")
        kind = group.metadata.get("kind")
        parts = rag_parts(
            answer,
            situation.question,
            situation.passage,
            is_ambiguous=None if kind is None else kind == "ambiguous",
            most_words=self.most_words,
        )
        return Score(
            value=weighted(parts, asdict(self.weights)), explanation=_said(parts), parts=parts, cost=0.0
        )


def weighted(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The mean of the parts by their weights; raises `ValueError` where no part counts."""
    total = sum(weights[name] for name in parts)
    if total <= 0:
        raise ValueError("all weights are 0, so nothing would be measured")
    return sum(weights[name] * value for name, value in parts.items()) / total


def _uses(answer: str, context: str) -> float:
    own, known = content_words(answer), set(words_of(context))
    return min(1.0, 2 * sum(w in known for w in own) / len(own)) if own else 0.0


def _supported(answer: str, known: str) -> float:
    text = known.lower()
    sentences = _sentences(answer)
    kept = [all(found.lower() in text for found in _specifics(sentence)) for sentence in sentences]
    return sum(kept) / len(kept) if kept else 0.0


def _specifics(sentence: str) -> list[str]:
    """Numbers, addresses and names; a capital at the beginning of a sentence makes no name."""
    return [m[0] for m in _SPECIFIC.finditer(sentence) if m.start() > 0 or not m[0][0].isupper()]


def _complete(answer: str, question: str, context: str) -> float:
    asked, said = _stems(content_words(question)), _stems(words_of(answer))
    best = max(_sentences(context), key=lambda s: (len(asked & _stems(words_of(s))), -len(s)), default="")
    wanted = _stems(content_words(best)) - asked
    return len(wanted & said) / len(wanted) if wanted else 0.0


def _stems(words: Sequence[str]) -> set[str]:
    """The beginnings of words, so that "book" meets "books"."""
    return {word[:_STEM] for word in words}


def _sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if re.search(r"\w", sentence)]


def _said(parts: Mapping[str, float]) -> str:
    weakest: Sequence[tuple[str, float]] = sorted(parts.items(), key=lambda item: item[1])
    return "weakest: " + ", ".join(f"{name} {value:.2f}" for name, value in weakest[:2])
