"""The chain's own stages; those of learning from the preferences are RLHF's, in a folder of their own."""

from __future__ import annotations

from typing import Any

from groundrule.recipes.constitution.config import RLHF, ConstitutionalConfig
from groundrule.recipes.rlhf.stages import settings_under

BEFORE = ("answers", "revisions", "sft", "samples", "preferences")
"""Up to the preferences, in order. Each depends on those before it."""
EVALUATION = "evaluation"
OWN = (*BEFORE, RLHF, EVALUATION)
"""In order, with the folder of the others at its place."""


def learning_stages(config: ConstitutionalConfig) -> tuple[str, ...]:
    """Of RLHF, those that the configuration asks for."""
    ppo = ("reward-model", "ppo") if config.ppo is not None else ()
    return ("rankings", *ppo, *(("dpo",) if config.dpo is not None else ()))


def all_stages(config: ConstitutionalConfig) -> tuple[str, ...]:
    """In order."""
    return (*BEFORE, *learning_stages(config), EVALUATION)


def made_from(config: ConstitutionalConfig, content_hash: str, stage: str) -> dict[str, Any]:
    """The values that a stage depends on beyond those of the stages before it. A constitution counts by what it says,
    not by where it stands."""
    found = settings_under(config, *_DEPENDS[stage])
    return {**found, "constitution.content": content_hash} if stage in _READ_IT else found


_READ_IT = ("revisions", "preferences")
_DEPENDS: dict[str, tuple[str, ...]] = {
    "answers": ("scenarios.", "policy.", "run.seed"),
    "revisions": ("constitution.critic", "revisions."),
    "sft": ("sft.",),
    "samples": ("preferences.answers",),
    "preferences": ("constitution.judge", "preferences."),
    "evaluation": ("ppo.", "dpo.", "evaluation."),
}
