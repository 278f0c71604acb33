"""A tiny Llama with random but fixed weights and a byte-level tokenizer, made in code: nothing is downloaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from openai.types.chat.chat_completion import ChatCompletion, Choice
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from groundrule.data.messages import Message
from groundrule.data.trajectory import Trajectory
from groundrule.inference.reply import completion
from groundrule.inference.schema import ChatCompletionBody
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel, wrap
from groundrule.models.snapshot import snapshot
from tiny_tokenizers import wrapped

SPECIALS = ["<|bos|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"]
END = 2
"""The id of the end marker."""
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 260,
    "initializer_range": 0.3,
}
"""What makes a model of any family tiny."""
ASK: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refunds?"}]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Four control tokens, then one token a byte."""
    names = [*SPECIALS, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    backend = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(SPECIALS)
    return wrapped(backend, "chatml")


def tiny_network(*, seed: int = 0, tied: bool = True, attention: str = "eager") -> LlamaForCausalLM:
    """2 layers, 4 heads over 2 key heads, weights wide enough for the next token to be far from uniform."""
    config = LlamaConfig(
        vocab_size=len(SPECIALS) + 256,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=END,
        pad_token_id=3,
        attn_implementation=attention,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def tiny_model(*, seed: int = 0, tied: bool = True) -> LanguageModel:
    """The tiny model as the library loads it."""
    return wrap("tiny", tiny_network(seed=seed, tied=tied), tiny_tokenizer())


def full_logprobs(
    network: Any, prompt: Sequence[int], answer: Sequence[int], *, temperature: float = 1.0
) -> torch.Tensor:
    """log p of the answer's tokens by one plain pass over prompt and answer: (tokens,)."""
    ids = torch.tensor([[*prompt, *answer]])
    logits = network(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 : -1] / temperature
    return torch.log_softmax(logits, dim=-1).gather(-1, torch.tensor(answer)[:, None])[:, 0]


def sampled_choices(
    model: LanguageModel,
    count: int,
    *,
    messages: Sequence[Message] = ASK,
    temperature: float = 0.7,
    max_tokens: int = 8,
    seed: int = 0,
) -> list[Choice]:
    """Answers sampled from the model with its adapter, as the local endpoint returns them."""
    body = ChatCompletionBody(
        model="tiny", messages=list(messages), n=count, temperature=temperature, max_tokens=max_tokens
    )
    prompt = model.renderer.prompt_ids(messages)
    requests = [body.sampling(prompt, seed * 1000 + i) for i in range(count)]
    samples = generate(snapshot(model), requests)
    return ChatCompletion.model_validate(completion(body, prompt, samples, model.tokenizer, 0)).choices


def sampled_trajectories(
    model: LanguageModel, rewards: Sequence[float], *, messages: Sequence[Message] = ASK, **more: Any
) -> list[Trajectory]:
    """One sampled trajectory per reward."""
    choices = sampled_choices(model, len(rewards), messages=messages, **more)
    return [
        Trajectory(messages_and_choices=[*messages, choice], reward=reward)
        for choice, reward in zip(choices, rewards, strict=True)
    ]


def close(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference, relative to the largest value of `b` (at least 1e-12)."""
    return float((a - b).abs().max()) / max(float(b.abs().max()), math.ulp(1.0))
