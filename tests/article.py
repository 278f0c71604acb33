"""Four answers to one question, with the strict and the lax system prompt; the fixture names its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groundrule.data import Trajectory, TrajectoryGroup

ARTICLE: dict[str, Any] = json.loads(
    (Path(__file__).parent / "fixtures" / "article_answers.json").read_text("utf-8")
)


def four_answers(system: str) -> TrajectoryGroup:
    """The answers as a group, under the `strict` or the `lax` system prompt."""
    opening = [
        {"role": "system", "content": ARTICLE["systems"][system]},
        {"role": "user", "content": ARTICLE["user"]},
    ]
    return TrajectoryGroup(
        [
            Trajectory(messages_and_choices=[*opening, {"role": "assistant", "content": answer}])
            for answer in ARTICLE["answers"].values()
        ]
    )


def order_of(group: TrajectoryGroup) -> list[str]:
    """The answers' names, best first."""
    ranked = sorted(
        zip(ARTICLE["answers"], group.trajectories, strict=True), key=lambda pair: -pair[1].reward
    )
    return [name for name, _ in ranked]
