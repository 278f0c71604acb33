"""Load a causal language model by name: the embedded one, a local folder, or a Hugging Face id."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from groundrule.errors import ModelError
from groundrule.models import embedded
from groundrule.models.prefix import Branches, extend, install, record
from groundrule.models.quiet import quiet
from groundrule.models.render import ChatRenderer


@dataclass(eq=False)
class LanguageModel:
    """A loaded model with what is needed to talk to it.

    One thread at a time may use it: hold `lock` around anything that runs or changes it.
    """

    name: str
    network: Any
    """The transformers model, wrapped by peft once an adapter is added."""
    tokenizer: Any
    renderer: ChatRenderer
    eos_ids: frozenset[int]
    max_tokens: int
    """Longest sequence the model was made for."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def causal_lm(self) -> Any:
        """The transformers model itself, adapter layers inside."""
        return self.network.get_base_model() if hasattr(self.network, "peft_config") else self.network

    @property
    def core(self) -> Any:
        """The body: token ids in, hidden states out."""
        return getattr(self.causal_lm, self.causal_lm.base_model_prefix)

    @property
    def head(self) -> Any:
        """The output layer: hidden states in, logits out."""
        return self.causal_lm.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    @contextlib.contextmanager
    def base_only(self) -> Iterator[None]:
        """Inside, the adapter is off: the reference policy and the frozen judge."""
        if not hasattr(self.network, "peft_config"):
            yield
            return
        with self.network.disable_adapter():
            yield


def best_device() -> str:
    """`cuda`, `mps` or `cpu`, the first that is there."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def load_model(name: str, *, device: str | None = None, dtype: torch.dtype | None = None) -> LanguageModel:
    """Load by name; `smollm2-135m` is pulled on first use.

    Weights are float32 on a CPU and bfloat16 on an accelerator unless `dtype` says otherwise.
    Raises `ModelError` with the remedy when the model cannot be had or its attention cannot share
    prefixes.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    target = device or best_device()
    source = str(embedded.pull()) if name == embedded.NAME else name
    with quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(source)
            network = AutoModelForCausalLM.from_pretrained(
                source, dtype=dtype or (torch.float32 if target == "cpu" else torch.bfloat16)
            )
        except (OSError, ValueError) as error:
            raise ModelError(_cannot_load(name, error)) from error
    return wrap(name, network.to(target), tokenizer)


def wrap(name: str, network: Any, tokenizer: Any) -> LanguageModel:
    """A `LanguageModel` around a transformers model and tokenizer that are already in memory."""
    network.eval()
    network.requires_grad_(False)
    plain = _plain_logits(network)
    install(network)
    model = LanguageModel(
        name=name,
        network=network,
        tokenizer=tokenizer,
        renderer=ChatRenderer(tokenizer),
        eos_ids=_eos_ids(network, tokenizer),
        max_tokens=_longest(network.config),
    )
    _check_logits(model, plain)
    return model


def _eos_ids(network: Any, tokenizer: Any) -> frozenset[int]:
    """Every id that ends a reply: the tokenizer's, and those of the generation config."""
    listed = getattr(network.generation_config, "eos_token_id", None)
    ids = set(listed if isinstance(listed, list | tuple) else [listed])
    ids.add(tokenizer.eos_token_id)
    return frozenset(int(i) for i in ids if i is not None)


def _longest(config: Any) -> int:
    """The longest sequence that is computed as the model was trained: inside a sliding window, where it has one."""
    limits = [getattr(config, "max_position_embeddings", None), getattr(config, "sliding_window", None)]
    return min((int(limit) for limit in limits if limit), default=2048)


def _few_tokens(network: Any) -> torch.Tensor:
    """Ids to try a model with: (1, 12)."""
    device = next(network.parameters()).device
    return torch.arange(12, device=device)[None] % min(50, int(network.config.vocab_size))


def _plain_logits(network: Any) -> torch.Tensor:
    """What the model says of a few tokens by itself, before anything of ours is in it: (4, vocabulary)."""
    with torch.inference_mode():
        logits: torch.Tensor = network(input_ids=_few_tokens(network), use_cache=False).logits[0, 8:]
    return logits


def _check_logits(model: LanguageModel, plain: torch.Tensor) -> None:
    """The same tokens as prompt and continuation, through body and head, must give the same logits."""
    kind, ids = type(model.causal_lm).__name__, _few_tokens(model.network)
    with torch.inference_mode():
        try:
            branches = Branches([record(model.core, ids[0, :8])], [1])
            split = model.head(extend(model.core, ids[:, 8:], branches))[0]
            difference = float((plain.float() - split.float()).abs().max() / plain.float().abs().max())
        except (TypeError, RuntimeError, IndexError, AttributeError) as error:
            raise ModelError(f"{model.name} ({kind}) cannot share prefixes: {error}") from error
    if difference > (1e-3 if plain.dtype == torch.float32 else 0.1):
        raise ModelError(
            f"{model.name} ({kind}) computes something else when a prompt is shared (relative difference "
            f"{difference:.3g}): its attention, or what it does to its logits, is not known here; "
            "use a model of the Llama, Qwen or Mistral kind"
        )


def _cannot_load(name: str, error: Exception) -> str:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    place = "folder" if Path(name).exists() else "Hugging Face id or folder"
    return (
        f"model {name!r} cannot be loaded as a {place}: {first}. "
        f"Check the spelling and the network, or use the embedded model {embedded.NAME!r}"
    )
