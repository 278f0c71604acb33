"""A prover against the verifier: wrong answers that are made to be accepted, and right ones that should be.

After Prover-Verifier Games (Kirchner et al. 2024, 2407.13692), with a chat model in the place of trained provers: a
sneaky one writes wrong answers that look right, a helpful one right answers. What the verifier accepts though it is
wrong becomes a test case and a proposal for the rubric, which a person accepts or not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import BudgetError, ConfigError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.llm.watched import all_or_nothing
from groundrule.rewards.ask import ask
from groundrule.rewards.checklist.extract import reading_judges
from groundrule.rewards.judges import Judge
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_object, reply_text
from groundrule.rewards.prompt_files import prompt_text, prompt_version
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.universal.case import cases_of
from groundrule.rewards.universal.check import PASSES_AT, checks_of, score_by
from groundrule.rewards.universal.ploys import Hunt, Ploy, Role, TruthBy
from groundrule.rewards.universal.reference import told
from groundrule.rewards.verdict import parse_verdict

SHOWN_AGAIN = 3
"""Earlier attempts that the sneaky prover learns from."""
AT_ONCE = 16
"""Answers that are written and verified at the same time."""

_ROLES: tuple[Role, ...] = get_args(Role)
_TRUTHS = ("RIGHT", "WRONG", "UNSURE")


async def hunt(
    verifier: Scorer,
    prover: JudgeLike,
    scenarios: Sequence[Scenario],
    rounds: int = 3,
    *,
    second_judge: JudgeLike | None = None,
    prover_params: Mapping[str, Any] | None = None,
    judge_params: Mapping[str, Any] | None = None,
    seed: int = 0,
    cache: ReplyCache | bool | None = None,
    done: Sequence[Ploy] = (),
    on_each: Callable[[Ploy], None] | None = None,
) -> Hunt:
    """In each round a sneaky and a helpful answer to every scenario; the sneaky prover sees how its last ones fared.

    The truth comes from `metadata["truth"]` of a scenario, a check as in `metadata["check"]` that the verifier is not
    shown; else from `metadata["check"]`; else from `second_judge`, which should be another model than the verifier's.
    Rates count only what a check knows. `on_each` is called with every ploy as soon as it is known, and what an earlier
    hunt has `done` is not tried again. A budget that is used up ends the hunt, with what it has found. Raises
    `ConfigError` for models that cannot be had, and where nothing can know the truth.
    """
    if rounds < 1 or not scenarios:
        raise ConfigError(f"a hunt needs scenarios and rounds, not {len(scenarios)} and {rounds}")
    provers = reading_judges(prover, prover_params, to="write answers")
    judges = reading_judges(second_judge, judge_params, to="tell the truth") if second_judge else []
    unknown = next((s for s in scenarios if not _truth_checks(s)), None)
    if unknown is not None and not judges:
        raise ConfigError(
            f'the scenario {unknown.id!r} has neither metadata["truth"] nor metadata["check"]; give one, or a '
            "second_judge"
        )
    hunter = _Hunter(verifier, provers, judges, seed, cache)
    ploys = [ploy for ploy in done if ploy.round <= rounds]
    failed: list[str] = []
    for number in range(1, rounds + 1):
        results = await hunter.round(number, scenarios, ploys, on_each or (lambda ploy: None))
        ploys += [result for result in results if isinstance(result, Ploy)]
        faults = [result for result in results if not isinstance(result, Ploy)]
        failed += [f"round {number}: {fault}" for fault in faults if not isinstance(fault, BudgetError)]
        if stops := [str(fault) for fault in faults if isinstance(fault, BudgetError)]:
            return Hunt(tuple(ploys), tuple(failed), stops[0])
    return Hunt(tuple(ploys), tuple(failed))


def group_of_answer(scenario: Scenario, answer: str) -> TrajectoryGroup:
    """An answer to a scenario as a verifier reads it. The truth stays out of what it sees."""
    known = {key: value for key, value in scenario.metadata.items() if key != "truth"}
    metadata = {**known, "question": scenario.question, "context": scenario.context}
    if scenario.reference is not None:
        metadata["reference"] = scenario.reference
    messages = [*scenario.messages(), {"role": "assistant", "content": answer}]
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=messages)], scenario_id=scenario.id, metadata=metadata
    )


@dataclass(frozen=True)
class _Hunter:
    verifier: Scorer
    provers: Sequence[Judge]
    judges: Sequence[Judge]
    seed: int
    cache: ReplyCache | bool | None

    async def round(
        self,
        number: int,
        scenarios: Sequence[Scenario],
        before: Sequence[Ploy],
        on_each: Callable[[Ploy], None],
    ) -> list[Ploy | JudgeError | LlmError]:
        """What is new of this round, or what went wrong with it; other faults are raised."""
        known = {(p.scenario.id, p.role) for p in before if p.round == number}
        jobs = [
            self.ploy(scenario, role, number, _earlier(before, scenario, number) if role == "sneaky" else [])
            for scenario in scenarios
            for role in _ROLES
            if (scenario.id, role) not in known
        ]
        results = await settle(
            jobs,
            limit=asyncio.Semaphore(AT_ONCE),
            on_each=lambda _, result: on_each(result) if isinstance(result, Ploy) else None,
        )
        found: list[Ploy | JudgeError | LlmError] = []
        for result in results:
            if not isinstance(result, Ploy | JudgeError | LlmError):
                raise result
            found.append(result)
        return found

    async def ploy(self, scenario: Scenario, role: Role, number: int, earlier: Sequence[Ploy]) -> Ploy:
        """One answer, verified and held against the truth."""
        with all_or_nothing():
            answer, flaw = await self._answer(scenario, role, number, earlier)
            group = group_of_answer(scenario, answer)
            score = (await scores_or_reasons(self.verifier, group))[0]
            is_right, by = await self._truth(scenario, group, answer)
        return Ploy(scenario, number, role, answer, flaw, is_right, by, score)

    async def _answer(
        self, scenario: Scenario, role: Role, number: int, earlier: Sequence[Ploy]
    ) -> tuple[str, str]:
        file = f"universal_{role}.md"
        messages: list[Message] = [
            {"role": "system", "content": prompt_text(file)},
            {"role": "user", "content": _task(scenario, earlier)},
        ]
        seed = derive("prover", self.seed, role, number, scenario.id)
        reading = await ask(
            [told(prover, lambda exact: None, seed) for prover in self.provers],
            lambda _: messages,
            _read_sneaky if role == "sneaky" else lambda reply: (reply_text(reply), ""),
            purpose=f"prover/{role}",
            cache=self.cache,
            key_parts={"kind": role, "prompt": prompt_version(file), "round": number},
        )
        return reading.value

    async def _truth(
        self, scenario: Scenario, group: TrajectoryGroup, answer: str
    ) -> tuple[bool | None, TruthBy]:
        if checks := _truth_checks(scenario):
            case = cases_of(group)
            values = [(await score_by(check, case, group))[0].value for check in checks]
            known = [value >= PASSES_AT for value in values if value is not None]
            return (all(known), "check") if len(known) == len(values) else (None, "nobody")
        messages: list[Message] = [
            {"role": "system", "content": prompt_text("universal_truth.md")},
            {"role": "user", "content": f"{_task(scenario)}\n\nANSWER:\n{neutral(answer)}"},
        ]
        try:
            reading = await ask(
                self.judges,
                lambda _: messages,
                lambda reply: parse_verdict(reply_text(reply), _TRUTHS),
                purpose="judge/truth",
                cache=self.cache,
                key_parts={"kind": "truth", "prompt": prompt_version("universal_truth.md")},
            )
        except (JudgeError, LlmError):
            return None, "nobody"
        return (None, "nobody") if reading.value == "UNSURE" else (reading.value == "RIGHT", "judge")


def _earlier(ploys: Sequence[Ploy], scenario: Scenario, number: int) -> list[Ploy]:
    """What the sneaky prover tried at this scenario in earlier rounds."""
    tried = (p for p in ploys if p.role == "sneaky" and p.scenario.id == scenario.id and p.round < number)
    return sorted(tried, key=lambda ploy: ploy.round)


def _truth_checks(scenario: Scenario) -> list[Any]:
    name = "truth" if "truth" in scenario.metadata else "check"
    checks = checks_of(scenario.metadata.get(name), f'metadata["{name}"] of {scenario.id}')
    return checks if name == "truth" else [check for check in checks if check.decides]


def _task(scenario: Scenario, earlier: Sequence[Ploy] = ()) -> str:
    parts = [("SYSTEM PROMPT", scenario.system), ("TASK", scenario.user_message)]
    parts.append(("RIGHT ANSWER", scenario.reference or ""))
    text = "\n\n".join(f"{name}:\n{neutral(part)}" for name, part in parts if part)
    for ploy in earlier[-SHOWN_AGAIN:]:
        fate = "was accepted" if ploy.is_accepted else "was rejected"
        truth = "is right, so it does not count, and " if ploy.is_right else ""
        why = ploy.score.explanation or ploy.score.reason or ""
        text += f"\n\nEARLIER ATTEMPT ({truth}{fate}: {why[:200]}):\n{neutral(ploy.answer)[:1000]}"
    return text


def _read_sneaky(reply: ChatReply) -> tuple[str, str]:
    data = reply_object(reply, "answer")
    answer, flaw = data["answer"], data.get("flaw") or ""
    if not isinstance(answer, str) or not isinstance(flaw, str):
        raise JudgeReplyError("wrong_type", f"answer and flaw must be texts, not {json.dumps(data)[:80]}")
    if not answer.strip():
        raise JudgeReplyError("empty", "the answer is empty")
    return answer, " ".join(flaw.split())
