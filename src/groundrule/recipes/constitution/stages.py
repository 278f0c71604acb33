"""The chain's own stages; those of learning from the preferences are RLHF's, in a folder of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from groundrule.errors import RunError
from groundrule.recipes.constitution.config import RLHF, ConstitutionalConfig
from groundrule.recipes.rlhf.stages import Stages

BEFORE = ("answers", "revisions", "sft", "samples", "preferences")
"""Up to the preferences, in order. Each depends on those before it."""
EVALUATION = "evaluation"


def learning_stages(config: ConstitutionalConfig) -> tuple[str, ...]:
    """Of RLHF, those that the configuration asks for."""
    ppo = ("reward-model", "ppo") if config.ppo is not None else ()
    return ("rankings", *ppo, *(("dpo",) if config.dpo is not None else ()))


def all_stages(config: ConstitutionalConfig) -> tuple[str, ...]:
    """In order."""
    return (*BEFORE, *learning_stages(config), EVALUATION)


class OwnStages(Stages):
    """The same files, with the names of this chain in what is said."""

    def result(self, name: str, made_from: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the stage gave; None where it is still to be done. Raises `RunError` where it was done from something
        else."""
        if not self.path(name).exists():
            return None
        record = self._read(self.path(name))
        before, now = record["made_from"], json.loads(json.dumps(dict(made_from)))
        differing = next((key for key in {**before, **now} if before.get(key) != now.get(key)), None)
        if differing is not None:
            order = (*BEFORE, EVALUATION)
            after = [f"{stage}.json" for stage in order[order.index(name) + 1 :]]
            folders = [f"{RLHF}/", f"{EVALUATION}/"] if after else [f"{EVALUATION}/"]
            raise RunError(
                f"{self.path(name)} was made with {differing} = {json.dumps(before.get(differing))[:80]}, and the "
                f"configuration says {json.dumps(now.get(differing))[:80]}; change it back, use another folder, or "
                f"remove {self.path(name)} and what came of it ({', '.join([*after, *folders])}) to make it anew"
            )
        result: dict[str, Any] = record["result"]
        return result


def made_from(config: ConstitutionalConfig, content_hash: str, stage: str) -> dict[str, Any]:
    """The values that a stage depends on beyond those of the stages before it, flat. A constitution counts by what it
    says, not by where it stands."""
    dumped = config.model_dump(mode="json")
    flat = {f"{s}.{key}": value for s, values in dumped.items() for key, value in (values or {}).items()}
    flat["constitution.content"] = content_hash
    wanted = _DEPENDS[stage]
    return {key: value for key, value in flat.items() if key.startswith(wanted)}


_DEPENDS: dict[str, tuple[str, ...]] = {
    "answers": ("scenarios.", "policy.", "run.seed"),
    "revisions": ("constitution.content", "constitution.critic", "revisions."),
    "sft": ("sft.",),
    "samples": ("preferences.answers",),
    "preferences": ("constitution.content", "constitution.judge", "preferences."),
    "evaluation": ("ppo.", "dpo.", "evaluation."),
}
