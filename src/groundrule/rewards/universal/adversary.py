"""A prover against the verifier: wrong answers that are made to be accepted, and right ones that should be.

After Prover-Verifier Games (Kirchner et al. 2024, 2407.13692), with a chat model in the place of trained provers: a
sneaky one writes wrong answers that look right, a helpful one right answers. What the verifier accepts though it is
wrong becomes a test case and a proposal for the rubric, which a person accepts or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from groundrule._util import jsonl
from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.ask import ask
from groundrule.rewards.checklist.criteria import toml_text
from groundrule.rewards.checklist.extract import reading_judges
from groundrule.rewards.judges import Judge
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_object, reply_text
from groundrule.rewards.prompt_files import prompt_text, prompt_version
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.universal.case import cases_of
from groundrule.rewards.universal.check import PASSES_AT, checks_of, score_by
from groundrule.rewards.universal.rates import Rate
from groundrule.rewards.universal.reference import told
from groundrule.rewards.verdict import parse_verdict

Role = Literal["sneaky", "helpful"]

_ROLES: tuple[Role, ...] = get_args(Role)

ACCEPTS_AT = 0.5
"""From this score on the verifier lets an answer pass."""
SHOWN_AGAIN = 3
"""Earlier attempts that the sneaky prover learns from."""

_TRUTHS = ("RIGHT", "WRONG", "UNSURE")
_HEADING = "Proposed criteria: each names a fault that the verifier let pass. Take over what holds, leave out the rest."


@dataclass(frozen=True)
class Ploy:
    """One answer of a prover, and what came of it."""

    scenario: Scenario
    round: int
    role: Role
    answer: str
    flaw: str
    """What a sneaky prover says is wrong in it."""
    is_right: bool | None
    """None where nobody could tell."""
    truth_by: Literal["check", "judge", "nobody"]
    score: Score

    @property
    def is_accepted(self) -> bool:
        """Whether the verifier let it pass; an abstention does not."""
        return self.score.value is not None and self.score.value >= ACCEPTS_AT

    @property
    def is_success(self) -> bool:
        """A wrong answer that passed."""
        return self.is_right is False and self.is_accepted


@dataclass(frozen=True)
class Hunt:
    """All that the provers tried."""

    ploys: tuple[Ploy, ...]
    failed: tuple[str, ...] = ()
    """Calls that gave no answer to verify, and why."""

    @property
    def successes(self) -> list[Ploy]:
        """Wrong answers that were accepted, each text once for a scenario."""
        return list({(p.scenario.id, p.answer): p for p in self.ploys if p.is_success}.values())

    @property
    def false_accepts(self) -> Rate:
        """Of the wrong answers that were accepted or rejected, by tasks where a check knows the truth."""
        wrong = [p for p in self._known if p.is_right is False]
        return Rate(sum(p.is_accepted for p in wrong), len(wrong))

    @property
    def false_rejects(self) -> Rate:
        """The same of the right answers that did not pass."""
        right = [p for p in self._known if p.is_right]
        return Rate(sum(not p.is_accepted for p in right), len(right))

    @property
    def _known(self) -> list[Ploy]:
        return [p for p in self.ploys if p.truth_by == "check" and p.score.value is not None]

    @property
    def abstained(self) -> int:
        """Answers without a score; they are in neither rate."""
        return sum(p.score.value is None for p in self.ploys)

    def cases(self) -> list[dict[str, Any]]:
        """The successes as records that `groundrule verify` reads, with the score that is due."""
        return [_case(ploy) for ploy in self.successes]

    def save_cases(self, path: str | Path) -> None:
        """As JSON lines."""
        jsonl.write(path, self.cases())

    def patches(self) -> str:
        """Pitfalls for a rubric file, one for each flaw that passed; "" where none did."""
        flaws = list(dict.fromkeys(p.flaw for p in self.successes if p.flaw))
        tables = [
            {"id": f"hunt-{number}", "text": flaw, "kind": "evidence", "pitfall": True}
            for number, flaw in enumerate(flaws, start=1)
        ]
        return toml_text(_HEADING, {"criteria": tables}, "criteria") if tables else ""

    def __str__(self) -> str:
        lines = [
            f"{len(self.ploys)} answers, {len(self.successes)} wrong ones accepted, {self.abstained} without a score",
            f"false accepts: {self.false_accepts}",
            f"false rejects: {self.false_rejects}",
        ]
        return "\n".join(lines + [f"failed: {why}" for why in self.failed[:3]])


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
) -> Hunt:
    """In each round a sneaky and a helpful answer to every scenario; the sneaky prover sees how its last ones fared.

    The truth comes from `metadata["truth"]` of a scenario, a check as in `metadata["check"]` that the verifier is not
    shown; else from `metadata["check"]`; else from `second_judge`, which should be another model than the verifier's.
    Rates count only what a check knows. Raises `ConfigError` for models that cannot be had, and where nothing can know
    the truth.
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
    ploys: list[Ploy] = []
    failed: list[str] = []
    for number in range(1, rounds + 1):
        jobs = [
            hunter.ploy(
                s, role, number, [p for p in ploys if p.scenario.id == s.id and p.role == role == "sneaky"]
            )
            for s in scenarios
            for role in _ROLES
        ]
        for result in await settle(jobs):
            if isinstance(result, Ploy):
                ploys.append(result)
            elif isinstance(result, JudgeError | LlmError):
                failed.append(f"round {number}: {result}")
            elif isinstance(result, BaseException):
                raise result
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

    async def ploy(self, scenario: Scenario, role: Role, number: int, earlier: Sequence[Ploy]) -> Ploy:
        """One answer, verified and held against the truth."""
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
    ) -> tuple[bool | None, Literal["check", "judge", "nobody"]]:
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


def _case(ploy: Ploy) -> dict[str, Any]:
    known = {key: value for key, value in ploy.scenario.metadata.items() if key != "truth"}
    record = {
        **known,
        "id": f"{ploy.scenario.id}-{ploy.role}-{ploy.round}",
        "scenario_id": ploy.scenario.id,
        "question": ploy.scenario.user_message,
        "answer": ploy.answer,
        "reference": ploy.scenario.reference,
        "expected": 0.0,
        "got": ploy.score.value,
        "flaw": ploy.flaw,
    }
    return {key: value for key, value in record.items() if value is not None}
