"""What a plan depends on besides the model and the method."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Tuning = Literal["lora", "full"]
Precision = Literal["fp32", "bf16"]
Device = Literal["cpu", "gpu"]
Optimizer = Literal["adamw", "momentum", "sgd"]

STATES: dict[Optimizer, int] = {"adamw": 2, "momentum": 1, "sgd": 0}
"""Numbers that an optimizer keeps for every trained weight."""

ALL_LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class PlanSettings(BaseModel):
    """Defaults are those of a training by this library."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tuning: Tuning = "lora"
    precision: Precision = "fp32"
    """Of weights, activations, keys and values. Adapters and heads beside frozen weights are float32 in any case;
    full tuning in bf16 keeps gradients and optimizer states in bf16 too, without a float32 copy."""
    device: Device = "cpu"
    optimizer: Optimizer = "adamw"
    lora_rank: int = Field(default=16, ge=1)
    lora_targets: tuple[str, ...] = ALL_LINEARS
    prompt_tokens: int = Field(default=512, ge=1)
    answer_tokens: int = Field(default=64, ge=1)
    """Of every answer: the longest allowed, so that the plan is for the worst batch."""
    group_size: int = Field(default=8, ge=1)
    """Answers to one prompt."""
    groups: int = Field(default=4, ge=1)
    """Prompts in a step."""
    trajectories_per_update: int = Field(default=8, ge=1)
    """Answers in a minibatch of PPO, as in `PpoSettings`; other methods make one update of a whole step."""
    tokens_at_once: int = Field(default=1024, ge=1)
    """As in the trainer's settings."""
    gradient_checkpointing: bool = False
    decodes: bool = True
    """False leaves out what writing answers takes: for an update alone."""

    @property
    def width(self) -> int:
        """Bytes of a number in the model's precision."""
        return 4 if self.precision == "fp32" else 2

    @property
    def trained_width(self) -> int:
        """Bytes of a trained number, its gradient and each of its optimizer states."""
        return 4 if self.tuning == "lora" else self.width
