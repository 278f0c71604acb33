"""The sizes of a decoder that its memory depends on. Models give them, and plans count with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """A dense decoder of the Llama, Qwen or Mistral kind: grouped attention and a gated feed-forward layer."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    """The output layer is the embedding matrix."""
    parameters: int
    """All weights, as counted or as given; the sizes above may give a slightly different number."""

    @property
    def counted(self) -> int:
        """All weights of such a decoder without biases: embeddings, output layer, linear layers and norms."""
        attention = 2 * self.hidden * (self.queries + self.keys)
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * layer + self.hidden

    @property
    def queries(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def keys(self) -> int:
        """Width of all key heads together; values are as wide."""
        return self.kv_heads * self.head_dim

    @property
    def linears(self) -> dict[str, tuple[int, int]]:
        """The linear layers of one decoder layer: inputs and outputs by name."""
        return {
            "q_proj": (self.hidden, self.queries),
            "k_proj": (self.hidden, self.keys),
            "v_proj": (self.hidden, self.keys),
            "o_proj": (self.queries, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    def adapter_parameters(self, rank: int, targets: Collection[str]) -> int:
        """LoRA on these linear layers: rank x (inputs + outputs) each."""
        sizes = [size for name, size in self.linears.items() if name in targets]
        return self.layers * rank * sum(inputs + outputs for inputs, outputs in sizes)

    def linear_weights(self, targets: Collection[str]) -> int:
        """Weights in these linear layers, over all decoder layers."""
        return self.layers * sum(i * o for name, (i, o) in self.linears.items() if name in targets)
