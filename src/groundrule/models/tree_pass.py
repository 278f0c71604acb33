"""A pass over a whole token tree in bounded memory, with or without gradients.

Subtrees of at most `tokens_at_once` tokens go through the model together, in one graph that is gone after its
backward pass. A larger subtree is cut below its first node: the node's keys, values and numbers become leaves,
everything below is run against them, and the gradients gathered there are sent back through the node. Cuts nest,
so what is held at any time is one path of cut nodes and one pack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.tree import Node, TokenTree
from groundrule.models.tree_forward import Past, Readout, forward, place

Loss = Callable[[int, torch.Tensor], torch.Tensor]
"""The loss of one path, given its index and its logprobs (scored,), or whatever else is read out."""
JointLoss = Callable[[Sequence[torch.Tensor]], torch.Tensor]
"""The loss of all paths together, given what is read out for each (scored,)."""


def add_gradients(
    model: LanguageModel,
    tree: TokenTree,
    loss_of: Loss,
    *,
    tokens_at_once: int,
    read: Readout | None = None,
) -> None:
    """Add the gradient of the sum of all paths' losses to the `.grad` of what is trainable.

    `loss_of` is called once a path, with everything that it scores. `read` None: logprobs.
    """

    def visit(nodes: Sequence[Node], past: Past) -> None:
        for pack in packs(nodes, tokens_at_once):
            if not _is_cut(pack, tokens_at_once):
                found = forward(model, placed := place(pack), past, read=read)
                _send(found, [p.node for p in placed], tree, loss_of)
                continue
            (node,) = pack
            whole = forward(model, place([_alone(node)]), past, keep=True, read=read)
            leaves = whole.leaves()
            _send(leaves, [node], tree, loss_of)
            visit(node.children, leaves)
            whole.send_back(leaves)

    with torch.enable_grad():
        visit(tree.roots, Past())


def add_joint_gradients(
    model: LanguageModel,
    tree: TokenTree,
    loss_of: JointLoss,
    *,
    tokens_at_once: int,
    read: Readout | None = None,
) -> torch.Tensor:
    """The same for a loss that needs all paths at once; returns that loss.

    A tree that is too large for one graph is computed twice: first without a graph, to learn the loss's gradient
    for every number, then piece by piece with that gradient (GradCache, Gao et al. 2021). The sums are the same.
    """
    if tree.unique_tokens <= tokens_at_once:
        with torch.enable_grad():
            found = forward(model, place(tree.roots), Past(), read=read)
            loss = loss_of([found.row(row) for row in tree.rows])
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()
    rows = [
        row.requires_grad_() for row in all_numbers(model, tree, tokens_at_once=tokens_at_once, read=read)
    ]
    with torch.enable_grad():
        loss = loss_of(rows)
        slopes = torch.autograd.grad(loss, rows, materialize_grads=True)
    add_gradients(
        model, tree, lambda i, row: (slopes[i] * row).sum(), tokens_at_once=tokens_at_once, read=read
    )
    return loss.detach()


def all_logprobs(model: LanguageModel, tree: TokenTree, *, tokens_at_once: int) -> list[torch.Tensor]:
    """Every path's logprobs, each (scored,), without gradients."""
    return all_numbers(model, tree, tokens_at_once=tokens_at_once)


def all_numbers(
    model: LanguageModel, tree: TokenTree, *, tokens_at_once: int, read: Readout | None = None
) -> list[torch.Tensor]:
    """What is read out for every path, each (scored,), without gradients; `read` None: logprobs."""
    rows = [torch.zeros(0, device=model.device) for _ in tree.rows]

    def visit(nodes: Sequence[Node], past: Past) -> None:
        for pack in packs(nodes, tokens_at_once):
            is_cut = _is_cut(pack, tokens_at_once)
            placed = place([_alone(pack[0])] if is_cut else pack)
            found = forward(model, placed, past, keep=is_cut, read=read)
            for i in [i for p in placed for i in p.node.ends]:
                rows[i] = found.row(tree.rows[i])
            if is_cut:
                visit(pack[0].children, found)

    with torch.no_grad():
        visit(tree.roots, Past())
    return rows


def packs(nodes: Sequence[Node], tokens_at_once: int) -> list[list[Node]]:
    """These subtrees in as few packs as first-fit finds; one that is too large is a pack of its own."""
    found: list[list[Node]] = []
    room: list[int] = []
    for node in sorted(nodes, key=lambda n: -n.size):
        fits = next((i for i, left in enumerate(room) if left >= node.size), None)
        if fits is None:
            found.append([node])
            room.append(tokens_at_once - node.size)
        else:
            found[fits].append(node)
            room[fits] -= node.size
    return found


def _is_cut(pack: Sequence[Node], tokens_at_once: int) -> bool:
    return pack[0].size > tokens_at_once and bool(pack[0].children)


def _alone(node: Node) -> Node:
    return Node(node.start, node.ids, node.wanted, node.ends, (), len(node.ids))


def _send(found: Past, nodes: Sequence[Node], tree: TokenTree, loss_of: Loss) -> None:
    losses = [loss_of(i, found.row(tree.rows[i])) for node in nodes for i in node.ends]
    if losses:
        torch.stack(losses).sum().backward()  # type: ignore[no-untyped-call]
