"""Rankings by a fixed rule, short enough for the tiny model."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

from groundrule.data.preferences import Ranking

QUESTIONS = ["Refunds?", "Parking?", "Dogs?", "Hours?", "Bikes?", "Cats?"]


def ranking(*tiers: str | list[str], question: str = "Refunds?", **more: Any) -> Ranking:
    """Answers by their texts, best first."""
    texts = [text for tier in tiers for text in ([tier] if isinstance(tier, str) else tier)]
    return Ranking(
        prompt=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}],
        answers=[{"id": text, "text": text} for text in texts],
        order=[[tier] if isinstance(tier, str) else tier for tier in tiers],
        **more,
    )


def shorter_is_better(count: int, *, seed: int) -> list[Ranking]:
    """Rankings of three answers of different lengths, made of random letters."""
    rng = random.Random(seed)
    found = []
    for i in range(count):
        lengths = sorted(rng.sample(range(1, 16), 3))
        texts = ["".join(rng.choice("abcdefgh ") for _ in range(n - 1)) + "." for n in lengths]
        margins = [float(b - a) for a, b in pairwise(lengths)]
        found.append(ranking(*texts, question=QUESTIONS[i % len(QUESTIONS)], margins=margins))
    return found
