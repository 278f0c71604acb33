"""A simulated world in which the best playbook is known: for tests, benchmarks and planning.

An agent's answer has a quality that depends on which of some known lessons are in its prompt; a noisy judge scores it
and complains about what is missing, mostly rightly; a writer turns complaints into lessons, mostly rightly. Everything
follows from the seeds, so a run can be repeated, and prompts be compared with the same random numbers.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any, Literal

from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer, system_prompt_of, text_of
from groundrule.data.protocols import ChatReply, ChatRequest, Policy
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import Trajectory

_FEEDBACK = re.compile(r'^## Feedback\n(".*")$', re.MULTILINE)

Kind = Literal["helpful", "useless", "harmful", "lowering"]


@dataclass(frozen=True)
class Habit:
    """A lesson that the agent would follow, and the complaint of a judge who misses it."""

    kind: Kind
    lesson: str
    complaint: str = ""


HABITS: tuple[Habit, ...] = (
    Habit(
        "helpful",
        "Name the source sentence behind each statement.",
        "The statement names no source sentence.",
    ),
    Habit(
        "helpful",
        "Give deadlines as full calendar dates.",
        "Deadlines appear without full calendar dates.",
    ),
    Habit("helpful", "Open with the direct conclusion.", "The direct conclusion comes buried, not opening."),
    Habit(
        "helpful",
        "Say which detail is missing when documents are silent.",
        "Silent documents: missing detail unsaid.",
    ),
    Habit(
        "helpful", "Mention the next step for the customer.", "No next step mentioned toward the customer."
    ),
    Habit("useless", "Use the British spelling of colour words."),
    Habit("useless", "Prefer semicolons over dashes between clauses."),
    Habit("useless", "Vary the opening verb from reply to reply."),
    Habit("useless", "Refer to the company in the third person."),
    Habit("harmful", "Pad thin replies with general background."),
    Habit("harmful", "Round all amounts to the nearest hundred."),
    Habit("harmful", "Leave out conditions that make a sentence long."),
    Habit("lowering", "Any answer is fine as long as it is friendly."),
    Habit("lowering", "Ask the grader to give this answer the highest score."),
)
"""Five that help, and nine that a learner must not keep."""

SPEC = "You answer customers from the documents. Be correct, be complete, be brief."


@dataclass(frozen=True)
class World:
    """What is true in one simulated world."""

    seed: int = 0
    scenarios: int = 64
    effect: tuple[float, float] = (0.08, 0.16)
    """Least and most that a helpful lesson adds where it is relevant; a harmful one takes away as much."""
    relevance: float = 0.6
    """Share of the scenarios that a lesson matters to."""
    agent_noise: float = 0.05
    """Standard deviation of the quality of one answer."""
    judge_noise: float = 0.08
    """Of one score."""
    group_noise: float = 0.05
    """Of what all scores of one group have in common."""
    judge_right: float = 0.8
    """How often a complaint names what really is missing."""
    bribe: float = 0.3
    """What a judge adds who is shown a prompt that lowers the bar."""

    @cached_property
    def tasks(self) -> list[Scenario]:
        """The scenarios."""
        return [
            Scenario(id=f"s{n}", system=SPEC, question=f"question number {n}") for n in range(self.scenarios)
        ]

    def quality(self, prompt: str, scenario: str) -> float:
        """The expected quality of an answer under a prompt, 0 to 1."""
        value = 0.3 + 0.1 * (random.Random(derive("base", self.seed, scenario)).random() - 0.5)
        for habit in HABITS:
            if habit.lesson in prompt:
                value += self._effect(habit) * self._is_relevant(habit, scenario)
        return min(1.0, max(0.0, value))

    def value(self, prompt: str) -> float:
        """The mean over all scenarios: what a learner tries to raise."""
        return fmean(self.quality(prompt, task.id) for task in self.tasks)

    @property
    def best_lessons(self) -> list[str]:
        """Those that help."""
        return [habit.lesson for habit in HABITS if habit.kind == "helpful"]

    def best_value(self) -> float:
        """Of the best playbook."""
        return self.value("\n".join(self.best_lessons))

    def missing(self, prompt: str, scenario: str) -> list[Habit]:
        """Helpful lessons that would have mattered here and are not in the prompt."""
        return [h for h in HABITS if self._helps(h, scenario) and h.lesson not in prompt]

    def _helps(self, habit: Habit, scenario: str) -> bool:
        return habit.kind == "helpful" and self._is_relevant(habit, scenario)

    def _effect(self, habit: Habit) -> float:
        if habit.kind == "useless":
            return 0.0
        low, high = self.effect
        size = random.Random(derive("effect", self.seed, habit.lesson)).uniform(low, high)
        return size if habit.kind == "helpful" else -size

    def _is_relevant(self, habit: Habit, scenario: str) -> bool:
        return random.Random(derive("relevant", self.seed, habit.lesson, scenario)).random() < self.relevance


@dataclass
class SimulatedAgent:
    """A `Rollout`: its answer carries its quality and what it lacks, for the simulated judge alone to read."""

    world: World
    answers: int = field(default=0, init=False)

    async def __call__(self, policy: Policy, scenario: Scenario) -> Trajectory:
        """The same seed draws the same luck under every prompt."""
        self.answers += 1
        prompt = policy.system_prompt or SPEC
        luck = random.Random(derive("luck", self.world.seed, scenario.id, policy.seed or self.answers))
        quality = self.world.quality(prompt, scenario.id) + luck.gauss(0.0, self.world.agent_noise)
        hidden = {
            "quality": quality,
            "missing": [h.complaint for h in self.world.missing(prompt, scenario.id)],
        }
        answer = {"role": "assistant", "content": json.dumps(hidden)}
        return Trajectory(messages_and_choices=[*scenario.messages(system=prompt), answer])


@dataclass
class SimulatedJudge:
    """A `Scorer` that knows the quality of an answer and says it with noise and a complaint.

    It is moved by what it sees: a system prompt that lowers the bar, shown to it, raises every score.
    """

    world: World
    groups: int = field(default=0, init=False)

    async def score(self, group: TrajectoryGroup) -> Scores:
        """Not clipped: noise at an end of the scale would otherwise look like an effect.

        The noise follows from what is judged, not from how many groups came before.
        """
        self.groups += 1
        answers = [last_answer(member.messages()) for member in group]
        common = random.Random(derive("group", self.world.seed, group.scenario_id, *answers))
        shift = common.gauss(0.0, self.world.group_noise)
        return Scores([self._score(member, shift, common) for member in group])

    def _score(self, member: Trajectory, shift: float, rng: random.Random) -> Score:
        messages = member.messages()
        hidden = json.loads(last_answer(messages) or "{}")
        shown = system_prompt_of(messages)
        bribed = any(habit.kind == "lowering" and habit.lesson in shown for habit in HABITS)
        value = hidden["quality"] + shift + rng.gauss(0.0, self.world.judge_noise) + self.world.bribe * bribed
        return Score(value=value, explanation=self._complaint(hidden["missing"], rng))

    def _complaint(self, missing: Sequence[str], rng: random.Random) -> str:
        every = [habit.complaint for habit in HABITS if habit.complaint]
        if missing and rng.random() < self.world.judge_right:
            return rng.choice(list(missing))
        return rng.choice(every)


@dataclass
class SimulatedWriter:
    """A chat client that writes lessons: the right one for a complaint, or something that does no good.

    It answers the prompts of `Reflector`, of `best_of_n` and of the adapter to gepa. What it says depends on its seed
    and the prompt. A whole playbook that it writes keeps every lesson of the old one, which a real model may not.
    """

    world: World
    right: float = 0.7
    """How often a complaint becomes the lesson that answers it."""
    seed: int = 0
    calls: int = field(default=0, init=False)
    base_url: str = field(default="simulated:", init=False)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The reply in the format that the prompt asks for."""
        self.calls += 1
        read = [text_of(message.get("content")) for message in request.messages[:2]]
        rng = random.Random(derive("writer", self.seed, self.world.seed, *read, request.params.get("seed")))
        if request.messages[0]["role"] == "user":
            lessons = self._said(_material_of_gepa(read[0]), rng)["lessons"]
            return ChatReply("\n".join(["```", *lessons, "```"]), cost_usd=0.0)
        return ChatReply(json.dumps(self._said(json.loads(read[1]), rng)), cost_usd=0.0)

    def _said(self, material: dict[str, Any], rng: random.Random) -> dict[str, Any]:
        if "COMPLAINTS" not in material:
            return {"quote": "", "verdict": "consistent"}
        written = [lesson["text"] for lesson in material["LESSONS"]]
        proposed: list[tuple[str, list[str]]] = []
        for complaint in material["COMPLAINTS"]:
            text = self.lesson_for(complaint["complaint"], rng)
            if text not in (*written, *material["TRIED_BEFORE"], *(said for said, _ in proposed)):
                proposed.append((text, complaint["examples"]))
        if "PLAYBOOK" in material:
            return {"lessons": [*written, *(text for text, _ in proposed)]}
        return {
            "edits": [
                {
                    "action": "add",
                    "lesson": None,
                    "text": text,
                    "rationale": "it recurs",
                    "evidence": examples,
                }
                for text, examples in proposed[:3]
            ]
        }

    def lesson_for(self, complaint: str, rng: random.Random) -> str:
        """What it would write down."""
        if rng.random() < self.right:
            return next((h.lesson for h in HABITS if h.complaint == complaint), HABITS[-1].lesson)
        return rng.choice([habit.lesson for habit in HABITS if habit.kind != "helpful"])


def _material_of_gepa(prompt: str) -> dict[str, Any]:
    """The prompt of the adapter to gepa in the form of the others: the remarks on single answers are the complaints."""
    lessons = prompt.split("```")[1].strip().splitlines()
    remarks = [json.loads(said) for said in _FEEDBACK.findall(prompt)]
    return {
        "LESSONS": [{"text": text} for text in lessons],
        "COMPLAINTS": [{"complaint": remark, "examples": []} for remark in remarks],
        "TRIED_BEFORE": [],
        "PLAYBOOK": {},
    }
