"""RULER: one judge reads all attempts of a group side by side and scores them by the agent's system prompt.

`ruler_score_group` scores a group, `ruler` plain message lists, and `Ruler` is the same as a `Scorer`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, Tools
from groundrule.data.protocols import ChatClient, Scorer
from groundrule.data.score import Score
from groundrule.data.trajectory import History, Trajectory
from groundrule.errors import ConfigError, JudgeError, LlmError
from groundrule.llm import registry
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.ask import ask
from groundrule.rewards.attempt import Attempt, attempts_of, evidence_key, shared_system_len, turn_key
from groundrule.rewards.debug import print_ranking, print_scores
from groundrule.rewards.judges import Fallback, Judge, judge_chain
from groundrule.rewards.parse import TrajectoryScore, parse_chat_reply
from groundrule.rewards.prompt import DEFAULT_RUBRIC, RESPONSE_FORMAT, judge_messages, prompt_version

logger = logging.getLogger(__name__)

GOOD_GROUP_SIZE = 4
"""Below it a comparison says little about any one member."""

NOTHING_TO_COMPARE = "nothing to compare: the group has one distinct trajectory, so no judge was asked"

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
    name. `fallback` judges are asked in turn when the first gives nothing usable. Each of `passes` shows the
    trajectories in another order, and the scores are averaged by trajectory. Replies are cached for judges
    called by name; `cache=False` turns that off, a `ReplyCache` turns it on for any judge.
    """

    judge_model: JudgeLike = "openai/o3"
    extra_litellm_params: Mapping[str, Any] | None = None
    rubric: str = DEFAULT_RUBRIC
    passes: int = 1
    seed: int = 0
    client: ChatClient | None = None
    cache: ReplyCache | bool | None = None
    fallback: Fallback = None
    show_images: bool | None = None
    """None: decided by the judge's model."""
    show_reasoning: bool = False
    debug: bool = False

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """One score per member; without a usable reply every member has the reason instead of a value."""
        try:
            return await self.scores_or_raise(group)
        except (JudgeError, LlmError) as error:
            return [Score.none(f"{type(error).__name__}: {error}") for _ in group]

    async def scores_or_raise(self, group: TrajectoryGroup) -> list[Score]:
        """The same, but a judge without a usable reply raises."""
        if self.passes < 1:
            raise ConfigError(f"passes is {self.passes}, but the judge must read the group at least once")
        attempts = attempts_of(group, show_reasoning=self.show_reasoning)
        by_late_name = isinstance(self.judge_model, str) and registry.is_registered(self.judge_model)
        if not by_late_name and not _can_compare(attempts):
            return [Score.none(NOTHING_TO_COMPARE) for _ in attempts]
        judges = judge_chain(
            self.judge_model,
            self.extra_litellm_params,
            client=self.client,
            fallback=self.fallback,
            defaults={"response_format": RESPONSE_FORMAT},
        )
        chat_judges = [judge for judge in judges if isinstance(judge, Judge)]
        scorers = [judge for judge in judges if not isinstance(judge, Judge)]
        if not isinstance(judges[0], Judge):
            return await self._by_scorer(judges[0], group)
        try:
            return await self._compare(attempts, chat_judges)
        except (JudgeError, LlmError):
            if not scorers:
                raise
            return await self._by_scorer(scorers[0], group)

    async def _by_scorer(self, scorer: Scorer, group: TrajectoryGroup) -> list[Score]:
        """A judge that is no chat model, such as the likelihood judge: it reads no rubric and needs no passes."""
        if self.rubric != DEFAULT_RUBRIC and "rubric" not in _said:
            _said.add("rubric")
            logger.warning("%s reads no rubric: it is left out", type(scorer).__name__)
        scores = await scorer.score(group)
        if self.debug:
            print_scores(scores)
        return scores

    async def _compare(self, attempts: Sequence[Attempt], judges: Sequence[Judge]) -> list[Score]:
        """Score the distinct attempts and give equal ones the same score."""
        distinct = {attempt.key: attempt for attempt in attempts}
        if not _can_compare(attempts):
            return [Score.none(NOTHING_TO_COMPARE) for _ in attempts]
        _warn_about(attempts)
        runs = await settle([self._one_pass(list(distinct.values()), judges, p) for p in range(self.passes)])
        done: list[dict[str, Score]] = []
        for run in runs:
            if isinstance(run, BaseException):
                raise run
            done.append(run)
        scores = {key: _mean([run[key] for run in done], len(attempts)) for key in distinct}
        if self.debug:
            print_ranking([scores[key] for key in distinct])
        return [scores[attempt.key] for attempt in attempts]

    async def _one_pass(
        self, attempts: list[Attempt], judges: Sequence[Judge], number: int
    ) -> dict[str, Score]:
        """Scores by attempt key from one reading in one shuffled order."""
        system_len = shared_system_len(attempts)
        # Sorted first: the same attempts in another order make the same prompt, hence the same cache entry.
        shown = sorted(attempts, key=lambda attempt: evidence_key(attempt, system_len))
        seed = derive("ruler", self.seed, number)
        random.Random(derive(seed, *(evidence_key(attempt, system_len) for attempt in shown))).shuffle(shown)
        answer = await ask(
            judges,
            lambda judge: self._messages(judge, shown, seed),
            lambda reply: parse_chat_reply(reply, len(shown)),
            purpose="judge/ruler",
            cache=self.cache,
            key_parts={"kind": "ruler", "prompt": prompt_version(), "pass": number},
        )
        if self.debug:
            print(answer.reply.content)
        return {
            attempt.key: Score(value=said.score, explanation=said.explanation, cost=answer.cost_usd)
            for attempt, said in zip(shown, answer.value, strict=True)
        }

    def _messages(self, judge: Judge, shown: Sequence[Attempt], seed: int) -> list[Message]:
        show_images = judge.takes_images if self.show_images is None else self.show_images
        return judge_messages(shown, rubric=self.rubric, seed=seed, show_images=show_images)


def _can_compare(attempts: Sequence[Attempt]) -> bool:
    return len({attempt.key for attempt in attempts}) > 1


def _history(history: Any) -> History:
    return history if isinstance(history, History) else History(messages_and_choices=list(history))


def _mean(scores: Sequence[Score], members: int) -> Score:
    """The average over passes; a pass's cost is shared by all members of the group."""
    costs = [score.cost for score in scores if score.cost is not None]
    return Score(
        value=sum(score.value or 0.0 for score in scores) / len(scores),
        explanation=scores[0].explanation,
        cost=sum(costs) / members if len(costs) == len(scores) else None,
    )


def _warn_about(attempts: Sequence[Attempt]) -> None:
    if len(attempts) < GOOD_GROUP_SIZE and "small group" not in _said:
        _said.add("small group")
        logger.warning(
            "a group of %d trajectories: RULER compares, and works best with %d to 8 of them",
            len(attempts),
            GOOD_GROUP_SIZE,
        )
    if len({turn_key(attempt.system) for attempt in attempts}) > 1:
        logger.warning(
            "the trajectories of one group carry different system prompts; each is judged by its own"
        )
