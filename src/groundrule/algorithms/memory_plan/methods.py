"""Which models a method holds in memory, which of them it trains, and whether it writes answers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from groundrule.errors import ConfigError


@dataclass(frozen=True)
class Method:
    """A method's models by role. With LoRA a role may be an adapter on weights that are there anyway."""

    about: str
    lora_models: tuple[str, ...]
    """Whole sets of weights with LoRA."""
    full_models: tuple[str, ...]
    """Whole sets of weights where all of them are trained; empty: impossible without an adapter to switch off."""
    trained: tuple[str, ...]
    """What has gradients and optimizer states."""
    adapters: tuple[str, ...]
    heads: tuple[str, ...] = ()
    """Roles that end in one number a token instead of logits."""
    decodes: bool = True
    """Answers are sampled from the policy while it learns."""
    answers: int | None = None
    """Answers to one prompt, where the method fixes it."""
    minibatches: bool = False
    """A step makes several updates, each of `trajectories_per_update` answers."""


FOUR = ("policy", "reference", "reward model", "critic")
VALUED = ("reward model", "critic")

METHODS: dict[str, Method] = {
    "ppo": Method(
        "policy, reference, reward model and critic, each with weights of its own",
        lora_models=FOUR,
        full_models=FOUR,
        trained=("policy", "critic"),
        adapters=("policy", *VALUED),
        heads=VALUED,
        minibatches=True,
    ),
    "ppo-shared": Method(
        "the same four on one set of weights: three adapters, two heads, and no adapter for the reference",
        lora_models=("base",),
        full_models=(),
        trained=("policy", "critic"),
        adapters=("policy", *VALUED),
        heads=VALUED,
        minibatches=True,
    ),
    "grpo": Method(
        "policy and reference; rewards come from outside, and the group is its own baseline",
        lora_models=("policy", "reference"),
        full_models=("policy", "reference"),
        trained=("policy",),
        adapters=("policy",),
    ),
    "grpo-folded": Method(
        "one model: the reference is the policy with its adapter switched off",
        lora_models=("policy",),
        full_models=(),
        trained=("policy",),
        adapters=("policy",),
    ),
    "dpo": Method(
        "pairs of answers that exist already; with LoRA the reference is the policy with its adapter switched off",
        lora_models=("policy",),
        full_models=("policy", "reference"),
        trained=("policy",),
        adapters=("policy",),
        decodes=False,
        answers=2,
    ),
}


def method_named(name: str) -> Method:
    """The method; `ConfigError` names the nearest known one."""
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name.lower(), METHODS, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"method {name!r} is not known; {hint}known: {', '.join(METHODS)}")
