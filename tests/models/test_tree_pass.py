"""A pass over a tree gives the logprobs and gradients of plain passes, however the tree is cut."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import transformers

from groundrule.models.load import LanguageModel, wrap
from groundrule.models.tree import Path, token_tree
from groundrule.models.tree_forward import place
from groundrule.models.tree_pass import add_gradients, add_joint_gradients, all_logprobs
from tiny import SMALL, close, full_logprobs, tiny_model, tiny_network


def agents(*, branches: int = 9, seed: int = 0) -> list[Path]:
    """Conversations over two system prompts that branch at different turns; some share sampled tokens."""
    rng = random.Random(seed)
    draw = lambda n: [rng.randrange(4, 260) for _ in range(n)]  # noqa: E731
    trunks = [draw(11), draw(6)]
    paths: list[Path] = []
    for i in range(branches):
        if paths and rng.random() < 0.7:
            parent = rng.choice(paths)
            keep = rng.randrange(8, len(parent.ids))
            ids, scored = list(parent.ids[:keep]), [at for at in parent.scored if at < keep]
        else:
            ids, scored = list(trunks[i % 2]), []
        for _ in range(2):
            scored += range(len(ids), len(ids) + 4)
            ids += draw(7)
        paths.append(Path(tuple(ids), tuple(scored), rng.choice([1.0, 0.7])))
    return paths


def plain_rows(network: Any, paths: list[Path]) -> list[torch.Tensor]:
    rows = []
    for p in paths:
        every = full_logprobs(network, p.ids[:1], p.ids[1:], temperature=p.temperature)
        rows.append(every[torch.tensor(p.scored) - 1])
    return rows


def loss_of(index: int, row: torch.Tensor) -> torch.Tensor:
    """Something that needs all of a row at once."""
    return (index + 1) * torch.exp(row.mean() / 4) + row.square().sum() / 100


def tree_gradient(model: LanguageModel, paths: list[Path], tokens_at_once: int) -> dict[str, torch.Tensor]:
    add_gradients(model, token_tree(paths), loss_of, tokens_at_once=tokens_at_once)
    return {n: p.grad for n, p in model.network.named_parameters() if p.grad is not None}


def plain_gradient(network: Any, paths: list[Path]) -> dict[str, torch.Tensor]:
    sum(loss_of(i, row) for i, row in enumerate(plain_rows(network, paths))).backward()  # type: ignore[union-attr]
    return {n: p.grad for n, p in network.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("tokens_at_once", [1, 10, 25, 60, 10_000])
def test_logprobs_are_those_of_plain_passes_however_the_tree_is_cut(tokens_at_once: int) -> None:
    paths = agents()

    rows = all_logprobs(tiny_model(), token_tree(paths), tokens_at_once=tokens_at_once)
    with torch.no_grad():
        wanted = plain_rows(tiny_network(), paths)

    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


@pytest.mark.parametrize("tokens_at_once", [1, 10, 25, 60, 10_000])
@pytest.mark.parametrize("tied", [True, False])
def test_gradients_are_those_of_plain_passes_however_the_tree_is_cut(tokens_at_once: int, tied: bool) -> None:
    paths, model, plain = agents(), tiny_model(tied=tied), tiny_network(tied=tied)
    for network in (model.network, plain):
        network.requires_grad_(True)

    found, wanted = tree_gradient(model, paths, tokens_at_once), plain_gradient(plain, paths)

    assert found.keys() == wanted.keys()
    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4


@pytest.mark.parametrize("tokens_at_once", [1, 25, 10_000])
def test_a_loss_of_all_paths_together_has_one_gradient_however_the_tree_is_cut(tokens_at_once: int) -> None:
    def joint(rows: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.logsumexp(torch.stack([row.mean() for row in rows]), dim=0)

    paths, model, plain = agents(), tiny_model(), tiny_network()
    for network in (model.network, plain):
        network.requires_grad_(True)
    wanted = joint(plain_rows(plain, paths))
    wanted.backward()  # type: ignore[no-untyped-call]

    found = add_joint_gradients(model, token_tree(paths), joint, tokens_at_once=tokens_at_once)

    pairs = zip(model.network.parameters(), plain.parameters(), strict=True)
    assert float(found) == pytest.approx(wanted.item(), abs=1e-5)
    assert max(close(a.grad, b.grad) for a, b in pairs if a.grad is not None and b.grad is not None) < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_sequences_does_not_matter(seed: int) -> None:
    paths = agents(seed=seed)
    order = random.Random(seed).sample(range(len(paths)), len(paths))
    model, other = tiny_model(), tiny_model()
    for each in (model, other):
        each.causal_lm.model.layers.requires_grad_(True)

    found = tree_gradient(model, paths, 30)
    add_gradients(
        other,
        token_tree([paths[i] for i in order]),
        lambda at, row: loss_of(order[at], row),
        tokens_at_once=17,
    )

    moved = {n: p.grad for n, p in other.network.named_parameters() if p.grad is not None}
    assert found.keys() == moved.keys() and len(found) == 18
    assert max(close(found[name], moved[name]) for name in found) < 1e-4


@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Mistral", "Phi3"])
def test_other_families_have_the_gradients_of_plain_passes(family: str) -> None:
    config = getattr(transformers, f"{family}Config")(pad_token_id=3, eos_token_id=2, **SMALL)
    network = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    paths = agents(branches=5)
    network.model.layers.requires_grad_(True)
    network.lm_head.requires_grad_(False)
    wanted = {n: g.clone() for n, g in plain_gradient(network, paths).items() if ".layers." in n}

    model = wrap(family, network, tiny_model().tokenizer)
    model.causal_lm.model.layers.requires_grad_(True)
    model.network.zero_grad()
    found = tree_gradient(model, paths, 20)

    assert found.keys() == wanted.keys()
    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4


@pytest.mark.parametrize("tokens_at_once", [1, 25, 10_000])
def test_every_unique_token_passes_through_the_model_exactly_once(tokens_at_once: int) -> None:
    model, tree = tiny_model(), token_tree(agents())
    model.causal_lm.model.layers.requires_grad_(True)
    passed: list[int] = []
    hook = model.core.register_forward_pre_hook(
        lambda module, args, kwargs: passed.append(kwargs["input_ids"].numel()), with_kwargs=True
    )

    add_gradients(model, tree, loss_of, tokens_at_once=tokens_at_once)
    hook.remove()

    longest = max(len(p.node.ids) for p in place(tree.roots))
    assert max(passed) <= max(tokens_at_once, longest)
    assert sum(passed) == tree.unique_tokens == 113
    assert tree.all_tokens == 202
