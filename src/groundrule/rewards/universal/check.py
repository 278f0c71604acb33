"""The cheapest layer: what a program can decide, where the scenario asks for it.

`metadata["check"]` is a verifier by name, or a table, or a list of them:

    {"kind": "math", "reference": "5/4", "allow_unboxed": true}
    {"kind": "regex", "reference": "(?s).{1,400}", "decides": false}
    "my_checks.py:lists_three_risks"

`reference` is that of the scenario unless it is given here; other keys are settings of a built-in verifier. With
`decides` false a check is only a hurdle: failing it is final, passing it leaves the answer to the next check or layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score
from groundrule.errors import ConfigError
from groundrule.rewards.functions import BUILT_IN, scorer_of
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.universal.case import Case
from groundrule.rewards.universal.verdict import Verdict

PASSES_AT = 1.0 - 1e-9
"""What a hurdle and a programmatic criterion ask for."""


@dataclass(frozen=True)
class Check:
    """A verifier by name, and what it compares with."""

    kind: str
    reference: Any = None
    """None: the scenario's own."""
    decides: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def scorer(self) -> Scorer:
        """Raises `ConfigError` for a name that is no verifier."""
        if self.kind not in BUILT_IN and ":" not in self.kind:
            raise ConfigError(
                f"{self.kind!r} is no check; known are {', '.join(sorted(BUILT_IN))}, and functions such as "
                "'my_checks.py:function'"
            )
        return scorer_of(self.kind, self.settings)


def checks_of(wanted: Any, place: str = 'metadata["check"]') -> list[Check]:
    """What a scenario asks for; raises `ConfigError` for what cannot be read."""
    if wanted is None:
        return []
    if isinstance(wanted, list):
        return [check for one in wanted for check in checks_of(one, place)]
    if isinstance(wanted, str):
        return [Check(wanted)]
    if not isinstance(wanted, Mapping) or not isinstance(wanted.get("kind"), str):
        raise ConfigError(
            f"{place} is {str(wanted)[:80]!r}; write a verifier's name, or a table with a 'kind', such as "
            '{"kind": "math"}'
        )
    decides = wanted.get("decides", True)
    if not isinstance(decides, bool):
        raise ConfigError(f"{place}: decides is {decides!r}; write true or false")
    settings = {key: value for key, value in wanted.items() if key not in ("kind", "reference", "decides")}
    return [Check(wanted["kind"], wanted.get("reference"), decides, settings)]


async def score_by(check: Check, cases: Sequence[Case], group: TrajectoryGroup) -> list[Score]:
    """What the check says of each answer, as the agent gave it."""
    metadata = dict(group.metadata)
    if check.reference is not None:
        metadata["reference"] = _parsed(check) if check.kind == "json_schema" else check.reference
    members = group.with_members([case.member for case in cases], metadata=metadata)
    return await scores_or_reasons(check.scorer(), members)


def _parsed(check: Check) -> Any:
    """A schema may be written as text: TOML tables and JSON objects are not the same."""
    if not isinstance(check.reference, str):
        return check.reference
    try:
        return json.loads(check.reference)
    except ValueError as error:
        raise ConfigError(f"the schema of a json_schema check is not JSON: {error}") from error


async def checked(cases: Sequence[Case], group: TrajectoryGroup) -> list[Verdict | None]:
    """The verdict on each answer; None where no check decides it."""
    verdicts: list[Verdict | None] = [None] * len(cases)
    for check in checks_of(group.metadata.get("check")):
        open_places = [i for i, verdict in enumerate(verdicts) if verdict is None or verdict.score is None]
        scores = await score_by(check, [cases[i] for i in open_places], group)
        for i, score in zip(open_places, scores, strict=True):
            verdicts[i] = _verdict(check, score) or verdicts[i]
    return verdicts


def _verdict(check: Check, score: Score) -> Verdict | None:
    said = f"{check.kind}: {score.explanation or score.reason or score.value}"
    if score.value is None:
        return Verdict.abstain(f"the check {check.kind} gave no score: {score.reason}", "check")
    if not check.decides:
        if score.value >= PASSES_AT:
            return None
        return Verdict(0.0, None, "check", 1.0, explanation=said, parts={f"check/{check.kind}": score.value})
    return Verdict(
        score.value, None, "check", 1.0, explanation=said, parts={f"check/{check.kind}": score.value}
    )
