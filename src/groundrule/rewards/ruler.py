"""RULER: one judge reads all attempts of a group side by side and scores them by the agent's system prompt.

`ruler_score_group` scores a group, `ruler` plain message lists, and `Ruler` is the same as a `Scorer`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Tools, text_of
from groundrule.data.protocols import ChatClient, Scorer
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import History, Trajectory
from groundrule.errors import JudgeError, LlmError
from groundrule.llm import registry
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike, resolve
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.attempt import Attempt, attempts_of, shared_system_len
from groundrule.rewards.calibration import Calibration
from groundrule.rewards.calls import Reader, RulerReader
from groundrule.rewards.checklist.criteria import Checklist
from groundrule.rewards.checklist.extract import list_demands
from groundrule.rewards.checklist.reader import ChecklistReader
from groundrule.rewards.compare import can_compare, compare, floors, nothing_to_compare
from groundrule.rewards.debug import print_scores
from groundrule.rewards.economy import calls_of, cheaper_of
from groundrule.rewards.judges import Fallback, Judge, judge_chain
from groundrule.rewards.parse import TrajectoryScore
from groundrule.rewards.passes import Passes
from groundrule.rewards.probes import Probes
from groundrule.rewards.prompt import DEFAULT_RUBRIC, RESPONSE_FORMAT

logger = logging.getLogger(__name__)

_said: set[str] = set()


async def ruler(
    message_lists: Sequence[Sequence[Any]],
    judge_model: JudgeLike = "openai/o3",
    extra_litellm_params: Mapping[str, Any] | None = None,
    rubric: str = DEFAULT_RUBRIC,
    tools: Tools | None = None,
    *,
    debug: bool = False,
    passes: int = 1,
    seed: int = 0,
    client: ChatClient | None = None,
    cache: ReplyCache | bool | None = None,
    fallback: Fallback = None,
    histories: Sequence[Sequence[Any]] | None = None,
    show_images: bool | None = None,
    show_reasoning: bool = False,
) -> list[TrajectoryScore]:
    """One score per message list, in the order given; ids count from "1".

    `histories` holds further conversations per list. Lists that all say the same cannot be compared:
    that raises `JudgeError` without asking the judge, because there is no score that would mean anything.
    The other parameters are those of `Ruler`.
    """
    further = histories or [[] for _ in message_lists]
    group = TrajectoryGroup(
        [
            Trajectory(
                messages_and_choices=list(messages),
                tools=tools,
                additional_histories=[_history(h) for h in more],
            )
            for messages, more in zip(message_lists, further, strict=True)
        ]
    )
    scores = await Ruler(
        judge_model,
        extra_litellm_params,
        rubric,
        debug=debug,
        passes=passes,
        seed=seed,
        client=client,
        cache=cache,
        fallback=fallback,
        show_images=show_images,
        show_reasoning=show_reasoning,
    ).scores_or_raise(group)
    result: list[TrajectoryScore] = []
    for number, score in enumerate(scores, start=1):
        if score.value is None:
            raise JudgeError(f"trajectory {number} has no score: {score.reason}")
        result.append(
            TrajectoryScore(trajectory_id=str(number), explanation=score.explanation, score=score.value)
        )
    return result


async def ruler_score_group(
    group: TrajectoryGroup,
    judge_model: JudgeLike = "openai/o3",
    extra_litellm_params: Mapping[str, Any] | None = None,
    rubric: str = DEFAULT_RUBRIC,
    *,
    swallow_exceptions: bool = False,
    debug: bool = False,
    passes: int = 1,
    seed: int = 0,
    client: ChatClient | None = None,
    cache: ReplyCache | bool | None = None,
    fallback: Fallback = None,
    show_images: bool | None = None,
    show_reasoning: bool = False,
) -> TrajectoryGroup:
    """A new group with the judge's scores as rewards; nothing else of the group is lost.

    When no judge gives usable scores, `JudgeError` is raised, or with `swallow_exceptions` every member
    comes back with the reason in `unscored`. A wrong setting raises `ConfigError` in either case.
    """
    scorer = Ruler(
        judge_model,
        extra_litellm_params,
        rubric,
        debug=debug,
        passes=passes,
        seed=seed,
        client=client,
        cache=cache,
        fallback=fallback,
        show_images=show_images,
        show_reasoning=show_reasoning,
    )
    scores = await (scorer.score(group) if swallow_exceptions else scorer.scores_or_raise(group))
    return apply_scores(group, scores, name="ruler")


@dataclass(frozen=True)
class Ruler:
    """The `Scorer` behind both functions.

    `judge_model` is a name, a `ChatClient` or an async function; `client` is asked in its place under that
    name. `fallback` judges are asked in turn when the first gives nothing usable. Replies are cached for
    judges called by name; `cache=False` turns that off, a `ReplyCache` turns it on for any judge.
    """

    judge_model: JudgeLike = "openai/o3"
    extra_litellm_params: Mapping[str, Any] | None = None
    rubric: str = DEFAULT_RUBRIC
    passes: int = 1
    """Readings of the group, in changing order: a random one, its reverse, another, its reverse, ..."""
    max_passes: int | None = None
    """Pairs of readings are added up to so many while the reliability is below `min_reliability`."""
    min_reliability: float = 0.6
    most_per_call: int = 8
    """Larger groups are judged in overlapping chunks of at most so many, twice at least."""
    seed: int = 0
    client: ChatClient | None = None
    cache: ReplyCache | bool | None = None
    fallback: Fallback = None
    show_images: bool | None = None
    """None: decided by the judge's model."""
    show_reasoning: bool = False
    gate: bool = True
    """Answers that say nothing (empty, punctuation, a mere opener) get 0.0 and never reach the judge."""
    probes: Probes = field(default_factory=Probes)
    """Known-bad attempts and exact copies slipped in to test the judge; never part of a reward."""
    calibration: Calibration | None = None
    """Learns the judge's slot effect from group to group and takes it off; worth it with a single pass."""
    context_tokens: int | None = None
    """The judge's context; None: what is known of its model. Longer groups are shown with elisions."""
    checklist: Checklist | Literal["auto"] | None = None
    """Judge the demands of the system prompt one by one, each with a quote, in place of one overall score;
    "auto" has the judge list them first. Takes the place of `rubric`."""
    debug: bool = False
    rungs: int = 0
    """How many times a judge that is itself a scorer, such as a constitution, is made cheaper before it is asked."""

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score per member; without a usable reply every member has the reason instead of a value."""
        try:
            return await self.scores_or_raise(group)
        except (JudgeError, LlmError) as error:
            return Scores(Score.none(f"{type(error).__name__}: {error}") for _ in group)

    async def scores_or_raise(self, group: TrajectoryGroup) -> Scores:
        """The same, but a judge without a usable reply raises."""
        plan = Passes(self.passes, self.max_passes, self.min_reliability, self.most_per_call)
        attempts = attempts_of(group, show_reasoning=self.show_reasoning)
        if not self._has_late_name and not can_compare(attempts):
            return nothing_to_compare(attempts)
        judges = judge_chain(
            self.judge_model,
            self.extra_litellm_params,
            client=self.client,
            fallback=self.fallback,
            defaults={"response_format": RESPONSE_FORMAT} if self.checklist is None else None,
        )
        chat_judges = [judge for judge in judges if isinstance(judge, Judge)]
        scorers = [judge for judge in judges if not isinstance(judge, Judge)]
        if not isinstance(judges[0], Judge):
            return await self._by_scorer(self._made_cheaper(judges[0]), group, attempts)
        try:
            if not can_compare(attempts):
                return nothing_to_compare(attempts)
            reader = await self._reader(chat_judges, attempts)
            return await compare(
                reader, attempts, plan, gate=self.gate, calibration=self.calibration, debug=self.debug
            )
        except (JudgeError, LlmError):
            if not scorers:
                raise
            return await self._by_scorer(scorers[0], group, attempts)

    async def _by_scorer(self, scorer: Scorer, group: TrajectoryGroup, attempts: Sequence[Attempt]) -> Scores:
        """A judge that is no chat model, such as the likelihood judge: it reads no rubric and needs no passes."""
        if self.rubric != DEFAULT_RUBRIC and "rubric" not in _said:
            _said.add("rubric")
            logger.warning("%s reads no rubric: it is left out", type(scorer).__name__)
        floor = floors(attempts) if self.gate else [None] * len(attempts)
        judged = group.with_members(m for m, low in zip(group, floor, strict=True) if low is None)
        said = await scorer.score(judged) if len(judged) else []
        if len(said) != len(judged):
            name = type(scorer).__name__
            raise JudgeError(f"{name} gave {len(said)} scores for a group of {len(judged)} trajectories")
        rest = iter(said)
        scores = [next(rest) if low is None else low for low in floor]
        gated = {"judge/gated": float(len(group) - len(judged))} if len(judged) < len(group) else {}
        if self.debug:
            print_scores(scores)
        return Scores(scores, metrics={**(said.metrics if isinstance(said, Scores) else {}), **gated})

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes, when none has to be repeated.

        A registered name takes what its scorer says, and nothing where that says nothing or is a chat model.
        """
        if self._has_late_name:
            return 0 if self._scorer is None else calls_of(self._scorer, members)
        if members <= self.most_per_call:
            return max(self.passes, self.max_passes or 0)
        return max(2, self.passes, self.max_passes or 0) * math.ceil(members / self.most_per_call)

    def cheaper(self) -> Ruler | None:
        """First without adaptive passes, then with half as many; a judge that is a scorer in its own way."""
        if self._scorer is not None:
            return None if cheaper_of(self._scorer) is None else replace(self, rungs=self.rungs + 1)
        if self.max_passes is not None and self.max_passes > self.passes:
            return replace(self, max_passes=None)
        return replace(self, passes=self.passes // 2, max_passes=None) if self.passes > 1 else None

    @property
    def _has_late_name(self) -> bool:
        return (
            self.client is None
            and isinstance(self.judge_model, str)
            and registry.is_registered(self.judge_model)
        )

    @cached_property
    def _scorer(self) -> Scorer | None:
        """What a registered name stands for, as it is asked; None for a chat model."""
        if not self._has_late_name:
            return None
        found = resolve(self.judge_model, self.extra_litellm_params)
        return None if isinstance(found, tuple) else self._made_cheaper(found)

    def _made_cheaper(self, scorer: Scorer) -> Scorer:
        for _ in range(self.rungs):
            scorer = cheaper_of(scorer) or scorer
        return scorer

    async def _reader(self, judges: Sequence[Judge], attempts: Sequence[Attempt]) -> Reader:
        if self.context_tokens is not None:
            judges = [replace(judge, stated_context=self.context_tokens) for judge in judges]
        if self.checklist is None:
            return RulerReader(
                judges=judges,
                rubric=self.rubric,
                seed=self.seed,
                cache=self.cache,
                show_images=self.show_images,
                probes=self.probes,
            )
        checklist = self.checklist
        if checklist == "auto":
            checklist = await list_demands(_spec_of(attempts), judges, cache=self.cache)
        return ChecklistReader(judges, checklist, self.seed, self.cache, self.show_images)


def _spec_of(attempts: Sequence[Attempt]) -> str:
    """The system prompt that all attempts share."""
    shared = attempts[0].turns[: shared_system_len(attempts)]
    if not shared:
        raise JudgeError(
            "the trajectories share no system prompt, so no checklist can be made from it; give one with checklist="
        )
    return "\n\n".join(text_of(turn["content"]) for turn in shared)


def _history(history: Any) -> History:
    return history if isinstance(history, History) else History(messages_and_choices=list(history))
