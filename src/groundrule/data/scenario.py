"""Scenario: one task for the agent."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Split = Literal["train", "held-out"]


class Scenario(BaseModel):
    """An input for the agent, with what is known about a right answer.

    `reference` and `facts` serve independent checks. They are never shown to the policy or the judge.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    system: str = ""
    """The agent's system prompt: the spec that its answers are judged by."""
    question: str = Field(min_length=1)
    context: str = ""
    """What was retrieved for the question; empty where nothing was."""
    reference: str | None = None
    facts: tuple[tuple[str, ...], ...] = ()
    """Key facts of a right answer, each as alternatives of short strings."""
    split: Split = "train"
    metadata: dict[str, Any] = Field(default_factory=dict)

    @property
    def user_message(self) -> str:
        """What the user turn says: the retrieved passage if there is one, then the question."""
        if not self.context:
            return self.question
        return f"{CONTEXT_LABEL} {self.context}\n\n{QUESTION_LABEL} {self.question}"

    def messages(self, *, system: str | None = None) -> list[dict[str, Any]]:
        """The opening messages of a conversation; `system` replaces the scenario's own prompt."""
        prompt = self.system if system is None else system
        opening = [{"role": "system", "content": prompt}] if prompt else []
        return [*opening, {"role": "user", "content": self.user_message}]


CONTEXT_LABEL = "[Retrieved context]:"
QUESTION_LABEL = "Question:"
