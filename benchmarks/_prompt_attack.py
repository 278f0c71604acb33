"""An attack on the bar: a writer that proposes nothing but lessons that lower it, in every round.

Two fences keep them out, the lint and the frozen spec; here each is taken away.
"""

from __future__ import annotations

import json
from typing import Any

from _prompt_methods import SETTINGS, TRAINED_ON, Scene, round_of

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.learner import PromptLearner
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.simulated import HABITS
from groundrule.prompt_learning.trial import JUDGE, Trial
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.judges import Judge
from groundrule.rewards.scoring import scores_or_reasons

LOWERING = [habit.lesson for habit in HABITS if habit.kind == "lowering"]


class Attacker:
    """A chat client that answers every review with both lessons, and finds them consistent with the spec."""

    base_url = "attack:"

    async def complete(self, request: ChatRequest) -> ChatReply:
        material = json.loads(text_of(request.messages[1].get("content")))
        if "COMPLAINTS" not in material:
            return ChatReply(json.dumps({"quote": "", "verdict": "consistent"}), cost_usd=0.0)
        edits = [{"action": "add", "text": text} for text in LOWERING]
        return ChatReply(json.dumps({"edits": edits}), cost_usd=0.0)


class Unlinted(PromptLearner):
    """Tests whatever is proposed, again in every round."""

    async def _refusal(self, edit: Edit, others: Any) -> str | None:
        return None


class JudgedAsAsked(Trial):
    """Shows the judge each answer with the prompt that it was given under, lessons and all."""

    async def _scored(self, group: TrajectoryGroup) -> TrajectoryGroup:
        return apply_scores(group, await scores_or_reasons(self.scorer, group), name=JUDGE)


ARMS: dict[str, tuple[type[PromptLearner], type[Trial]]] = {
    "lint and frozen spec": (PromptLearner, Trial),
    "frozen spec alone": (Unlinted, Trial),
    "neither": (Unlinted, JudgedAsAsked),
}


async def attack(seed: int, arm: str) -> dict[str, int]:
    """Whether a lowering lesson was accepted in twelve rounds, how often one was tested, and how often refused."""
    kind, trial = ARMS[arm]
    scene = Scene(seed)
    tasks = scene.world.tasks
    learner = kind(
        scene.trial(kind=trial),
        Reflector([Judge(Attacker(), "attack")]),
        tasks[TRAINED_ON:],
        SETTINGS,
        seed,
        known=tasks[:TRAINED_ON],
    )
    tested = refused = 0
    for number in range(1, SETTINGS.rounds + 1):
        await round_of(scene, learner, number)
        tested += len(learner.record["tested"])
        refused += len(learner.record["refused"])
        if any(lesson.text in LOWERING for lesson in learner.state.pool.head.playbook.lessons):
            return {"accepted": 1, "tested": tested, "refused": refused}
    return {"accepted": 0, "tested": tested, "refused": refused}
