"""The ways to learn a prompt, each run once in a simulated world: which prompt it ships after how many rollouts."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from groundrule._util.seed import derive
from groundrule.data.protocols import Policy
from groundrule.prompt_learning.best_of_n import BestOfN
from groundrule.prompt_learning.gepa_adapter import learn_with_gepa
from groundrule.prompt_learning.learner import PromptLearner
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.simulated import (
    SPEC,
    SimulatedAgent,
    SimulatedJudge,
    SimulatedWriter,
    World,
)
from groundrule.prompt_learning.trial import Trial
from groundrule.rewards.judges import Judge

BUDGET = 1_600
TRAINED_ON = 32
GROUPS, GROUP_SIZE = 8, 4
SETTINGS = PromptSettings(rounds=12, edits=2)


@dataclass
class Scene:
    """A world with everyone in it."""

    seed: int
    world: World = field(init=False)
    agent: SimulatedAgent = field(init=False)
    judge: SimulatedJudge = field(init=False)
    writer: SimulatedWriter = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(seed=self.seed)
        self.agent, self.judge = SimulatedAgent(self.world), SimulatedJudge(self.world)
        self.writer = SimulatedWriter(self.world)

    def trial(self, attempts: int = 2, kind: type[Trial] = Trial) -> Trial:
        policy = Policy("", "simulated", 0)
        return kind(
            SPEC, self.agent, policy, self.judge, attempts=attempts, max_concurrency=None, timeout_s=None
        )

    @property
    def reflector(self) -> Reflector:
        return Reflector([Judge(self.writer, "simulated")])


@dataclass
class Track:
    """Which prompt was shipped from which rollout on."""

    shipped: list[tuple[int, str]] = field(default_factory=lambda: [(0, SPEC)])

    def add(self, rollouts: int, prompt: str) -> None:
        if prompt != self.shipped[-1][1]:
            self.shipped.append((rollouts, prompt))

    def at(self, rollouts: int) -> str:
        return next(prompt for since, prompt in reversed(self.shipped) if since <= rollouts)


Method = Callable[[Scene, Track], Awaitable[None]]


async def round_of(scene: Scene, learner: PromptLearner | BestOfN, number: int) -> None:
    """Evidence under the prompt that the learner starts from, and what it makes of it."""
    rng = random.Random(derive("evidence", scene.seed, number))
    scenarios = rng.sample(scene.world.tasks[:TRAINED_ON], GROUPS)
    asking = replace(learner.trial, attempts=GROUP_SIZE)
    await learner.update(await asking.groups([learner.parent_prompt], scenarios, "round", number))


async def lessons(scene: Scene, track: Track) -> None:
    """`PromptLearner`, for its twelve rounds or the budget, whichever ends first."""
    tasks = scene.world.tasks
    learner = PromptLearner(
        scene.trial(), scene.reflector, tasks[TRAINED_ON:], SETTINGS, scene.seed, known=tasks[:TRAINED_ON]
    )
    for number in range(1, SETTINGS.rounds + 1):
        if scene.agent.answers < BUDGET:
            await round_of(scene, learner, number)
            track.add(scene.agent.answers, learner.policy.system_prompt or "")


async def best_of_n(scene: Scene, track: Track) -> None:
    """Three playbooks a round, until the budget is used."""
    tasks = scene.world.tasks
    learner = BestOfN(
        scene.trial(), scene.reflector, tasks[TRAINED_ON:], SETTINGS, scene.seed, known=tasks[:TRAINED_ON]
    )
    number = 0
    while scene.agent.answers < BUDGET:
        number += 1
        await round_of(scene, learner, number)
        track.add(scene.agent.answers, learner.parent_prompt)


async def gepa(scene: Scene, track: Track, attempts: int = 1) -> None:
    """With its own settings, of which one answer an example is one; two serve it less well here."""

    def better(playbook: Playbook, rollouts: int) -> None:
        track.add(rollouts, playbook.below(SPEC))

    tasks = scene.world.tasks
    await learn_with_gepa(
        scene.trial(attempts),
        scene.reflector,
        tasks[:TRAINED_ON],
        tasks[TRAINED_ON:],
        budget=BUDGET,
        seed=scene.seed,
        on_better=better,
    )


METHODS: dict[str, Method] = {"lessons": lessons, "best-of-n": best_of_n, "gepa": gepa}
