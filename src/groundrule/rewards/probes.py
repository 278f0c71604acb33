"""Probes: attempts slipped in among the real ones to see whether the judge can be trusted today.

A canary is known to be bad and must come out lowest; a twin is an exact copy and should get the score of
its original. Neither enters a reward. Rates are 0 unless asked for: a probe costs tokens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule.errors import ConfigError
from groundrule.rewards.attempt import Attempt
from groundrule.rewards.canary import CANARY_KINDS, canary_of, check_canary, twin, twin_gap
from groundrule.rewards.gate import question_len


@dataclass(frozen=True)
class Probes:
    """How often a call carries a probe, as shares of calls."""

    canary_rate: float = 0.0
    twin_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("canary_rate", "twin_rate"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1:
                raise ConfigError(f"{name} is {rate}, but it is a share of calls: 0 to 1")


@dataclass(frozen=True)
class Probed:
    """What is shown, and where among it the real attempts stand."""

    shown: list[Attempt]
    slots: list[int]
    """The place of each real attempt, in the order given."""
    canary: int | None = None
    twin: int | None = None
    original: int | None = None
    """The place of the attempt that the twin copies."""

    def check(self, values: Sequence[float]) -> dict[str, float]:
        """What the scores of the shown attempts say about the judge.

        `judge/canary_missed`: 1.0 where a real attempt scored below the canary. `judge/twin_gap`: the
        distance between twin and original, 0 to 1.
        """
        found: dict[str, float] = {}
        if self.canary is not None:
            real = [values[slot] for slot in self.slots]
            is_lowest = check_canary([*real, values[self.canary]], len(real))
            found["judge/canary_missed"] = float(not is_lowest)
        if self.twin is not None and self.original is not None:
            found["judge/twin_gap"] = twin_gap(values, self.original, self.twin)
        return found


def insert_probes(attempts: Sequence[Attempt], probes: Probes, rng: random.Random) -> Probed:
    """The attempts in their order, with the probes that this call is due in random places among them."""
    marked: list[tuple[str, int, Attempt]] = [("real", i, a) for i, a in enumerate(attempts)]
    if attempts and rng.random() < probes.canary_rate:
        model, kind = rng.choice(list(attempts)), rng.choice(CANARY_KINDS)
        bad = canary_of(model, kind, rng, question_len=question_len(attempts))
        marked.insert(rng.randint(0, len(marked)), ("canary", 0, bad))
    if attempts and rng.random() < probes.twin_rate:
        copied = rng.randrange(len(attempts))
        marked.insert(rng.randint(0, len(marked)), ("twin", copied, twin(attempts[copied], rng)))
    place = {(kind, index): slot for slot, (kind, index, _) in enumerate(marked)}
    copy = next(((slot, index) for slot, (kind, index, _) in enumerate(marked) if kind == "twin"), None)
    return Probed(
        shown=[attempt for _, _, attempt in marked],
        slots=[place["real", index] for index in range(len(attempts))],
        canary=place.get(("canary", 0)),
        twin=copy[0] if copy else None,
        original=place["real", copy[1]] if copy else None,
    )
