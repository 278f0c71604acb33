"""What provers tried against a verifier and what came of it: rates, test cases, proposals for the rubric."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from groundrule._util import jsonl
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.rewards.checklist.criteria import toml_text
from groundrule.rewards.universal.rates import Rate

Role = Literal["sneaky", "helpful"]
TruthBy = Literal["check", "judge", "nobody"]

ACCEPTS_AT = 0.5
"""From this score on the verifier lets an answer pass."""

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
    truth_by: TruthBy
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
    stopped: str | None = None
    """Why the hunt ended before its last round: a budget that is used up."""

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
        lines += [f"failed: {why}" for why in self.failed[:3]]
        return "\n".join([*lines, *([f"stopped early: {self.stopped}"] if self.stopped else [])])


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
