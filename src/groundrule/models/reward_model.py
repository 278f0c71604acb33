"""A reward model: a causal language model with a scalar head, and an adapter or all weights of its own.

The value of an answer is read at its last token: the end marker of the agent's last turn, as the model's own chat
template writes it. The base may be shared with a policy and with other judges; the adapter is on only while values
are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from groundrule.data.answers import is_empty
from groundrule.data.messages import Message, Tools
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings
from groundrule.models.scalar_model import ScalarModel, check_own, new_adapter, value_path, zero_head
from groundrule.models.tree import Path, token_tree
from groundrule.rewards.learned import Conversation, Value, ValueScale

TOKENS_AT_ONCE = 4096
"""Unique tokens that pass through the model together when nothing is trained."""


@dataclass(eq=False)
class RewardModel(ScalarModel):
    """Implements `rewards.learned.ValueModel`."""

    lora: LoraSettings | None
    """Shape of the adapter; None: all weights were trained."""
    scale: ValueScale = field(default_factory=ValueScale)

    def path(self, messages: Sequence[Message], tools: Tools | None = None) -> Path | str:
        """What is read of a conversation, up to the end of the agent's last turn; or why it has no value.

        It is written from its text, in this model's tokens. Nothing is ever cut.
        """
        last = max((i for i, m in enumerate(messages) if m.get("role") == "assistant"), default=None)
        if last is None:
            return "no assistant message to judge"
        if is_empty(messages[last : last + 1]):
            return "the answer is empty"
        said = Trajectory(messages_and_choices=list(messages[: last + 1]), tools=tools)
        try:
            turn = self.model.renderer.turns(said)[0][-1]
        except ModelError as error:  # The model cannot read this conversation, for example its images.
            return f"the reward model refused: {error}"
        ids = turn.prompt_ids + turn.answer_ids
        if len(ids) > self.model.max_tokens:
            return (
                f"the conversation has {len(ids)} tokens and the reward model on {self.model.name} reads "
                f"{self.model.max_tokens}; shorten it, or train one on a model with a longer context"
            )
        return value_path(ids)

    def raw_values(self, paths: Sequence[Path]) -> list[float]:
        """The value of each; what they share is computed once."""
        return [float(value) for value in self.numbers(token_tree(paths), tokens_at_once=TOKENS_AT_ONCE)]

    def values(self, conversations: Sequence[Conversation]) -> list[Value | str]:
        """In the order given; a text is the reason why there is no value."""
        paths = [self.path(c.messages, c.tools) for c in conversations]
        raw = iter(self.raw_values([p for p in paths if isinstance(p, Path)]))
        return [p if isinstance(p, str) else Value(next(raw), len(p.read)) for p in paths]


def new_reward_model(
    model: LanguageModel, lora: LoraSettings | None = None, *, seed: int = 0, name: str = "reward"
) -> RewardModel:
    """One that values everything at 0. Where the adapter's name is taken, a number is put behind it."""
    shape = lora or LoraSettings()
    return RewardModel(model, new_adapter(model, shape, seed=seed, name=name), zero_head(model), shape)


def whole_reward_model(model: LanguageModel) -> RewardModel:
    """One whose weights are all its own: the model is changed when it is trained.

    Raises `ConfigError` where others use the model, or its weights are too coarse to be trained.
    """
    check_own(model)
    return RewardModel(model, None, zero_head(model), None)
