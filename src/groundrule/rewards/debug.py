"""What `debug=True` prints: scores in the judge's own wire format, then ranked."""

from __future__ import annotations

import json
from collections.abc import Sequence

from groundrule.data.score import Score


def print_scores(scores: Sequence[Score]) -> None:
    """In the wire format of chat judges, then ranked."""
    said = [
        {"trajectory_id": str(i), "explanation": s.explanation or s.reason, "score": s.value}
        for i, s in enumerate(scores, start=1)
    ]
    print(json.dumps({"scores": said}, ensure_ascii=False, indent=2))
    print_ranking([s for s in scores if s.value is not None])


def print_ranking(scores: Sequence[Score]) -> None:
    """One line a score, best first."""
    ranked = sorted(scores, key=lambda score: score.value or 0.0, reverse=True)
    for rank, score in enumerate(ranked, start=1):
        print(f"Rank {rank} | Score {score.value:.2f} | {score.explanation}")
