"""The embedded model through our decoder says what transformers says, token by token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from groundrule.models.generate import generate
from groundrule.models.load import load_model
from groundrule.models.sampling import SamplingRequest
from groundrule.models.snapshot import snapshot
from groundrule.rollouts.scenarios import load_scenarios

pytestmark = pytest.mark.embedded
QUESTIONS, TOKENS = 50, 8


def conversations() -> list[list[dict[str, Any]]]:
    """50 questions under one system prompt, so that they share a beginning."""
    return [
        [{"role": "system", "content": "Answer briefly."}, {"role": "user", "content": s.question}]
        for s in load_scenarios("support", split="train")[:QUESTIONS]
    ]


@pytest.fixture(scope="module")
def model(embedded_model: Path) -> Any:
    return load_model(str(embedded_model), device="cpu")


@pytest.fixture(scope="module")
def requests(model: Any) -> list[SamplingRequest]:
    prompts = [tuple(model.renderer.prompt_ids(messages)) for messages in conversations()]
    return [SamplingRequest(prompt, max_tokens=TOKENS, temperature=0.0) for prompt in prompts]


def test_greedy_text_is_that_of_transformers_for_fifty_prompts(
    model: Any, requests: list[SamplingRequest], embedded_model: Path
) -> None:
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(str(embedded_model), dtype=torch.float32).eval()
    ours = generate(snapshot(model), requests)

    differing = []
    for request, sample in zip(requests, ours, strict=True):
        ids = torch.tensor([request.prompt_ids])
        with torch.inference_mode():
            theirs = plain.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=TOKENS,
                pad_token_id=0,
            )[0, ids.shape[1] :].tolist()
        if theirs != sample.token_ids:
            differing.append((theirs, sample.token_ids))
    assert differing == []


def test_log_probabilities_are_those_of_a_plain_pass(model: Any, requests: list[SamplingRequest]) -> None:
    sampled = [
        SamplingRequest(r.prompt_ids, max_tokens=TOKENS, temperature=1.0, seed=i)
        for i, r in enumerate(requests[:8])
    ]

    samples = generate(snapshot(model), sampled)

    with torch.inference_mode():
        for request, sample in zip(sampled, samples, strict=True):
            ids = torch.tensor([[*request.prompt_ids, *sample.token_ids]])
            logits = model.network(input_ids=ids, use_cache=False).logits[0, len(request.prompt_ids) - 1 : -1]
            wanted = torch.log_softmax(logits, -1).gather(-1, torch.tensor(sample.token_ids)[:, None])[:, 0]
            assert sample.logprobs == pytest.approx(wanted.tolist(), abs=1e-4)
