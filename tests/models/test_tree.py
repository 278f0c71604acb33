"""Sequences become a tree whose size is their unique tokens, and whose packs never exceed the bound."""

from __future__ import annotations

import random

import pytest

from groundrule.models.tree import Node, Path, TokenTree, token_tree
from groundrule.models.tree_forward import blocks_of, place
from groundrule.models.tree_pass import packs


def path(ids: str, *scored: int, temperature: float = 1.0) -> Path:
    """A path of letters."""
    return Path(tuple(map(ord, ids)), scored, temperature)


def outline(nodes: tuple[Node, ...]) -> list[object]:
    """A tree as nested lists: text, how many logprobs, children."""
    return [
        ["".join(map(chr, n.ids)), len(n.wanted), *([outline(n.children)] if n.children else [])]
        for n in nodes
    ]


def random_tree(seed: int) -> tuple[list[Path], TokenTree]:
    """Forty random sequences over two letters, so that they branch late and often."""
    rng = random.Random(seed)
    paths = []
    for _ in range(40):
        ids = tuple(rng.randrange(2) for _ in range(rng.randrange(2, 20)))
        scored = tuple(i for i in range(1, len(ids)) if rng.random() < 0.5)
        paths.append(Path(ids, scored, rng.choice([1.0, 0.7])))
    return paths, token_tree(paths)


def all_nodes(nodes: tuple[Node, ...]) -> list[Node]:
    return [p.node for p in place(nodes)] if nodes else []


def test_a_prompt_and_its_answers_are_a_node_with_children() -> None:
    tree = token_tree([path("promptab", 6, 7), path("promptcd", 6, 7), path("promptef", 6, 7)])

    assert outline(tree.roots) == [["prompt", 3, [["a", 1], ["c", 1], ["e", 1]]]]
    assert (tree.unique_tokens, tree.all_tokens, tree.wanted) == (9, 21, 6)


def test_what_follows_the_last_scored_token_is_not_read() -> None:
    tree = token_tree([path("prompt answer, and a tool's reply", 7, 8)])

    assert outline(tree.roots) == [["prompt a", 2]]


def test_groups_that_share_a_system_prompt_share_it_in_the_tree() -> None:
    tree = token_tree([path("sys Q1 a", 7), path("sys Q1 b", 7), path("sys Q2 c", 7)])

    assert outline(tree.roots) == [["sys Q", 0, [["1 ", 2], ["2 ", 1]]]]


def test_the_same_token_scored_for_two_members_is_one_logprob() -> None:
    tree = token_tree([path("paab", 1, 2, 3), path("paac", 1, 2, 3)])

    assert tree.rows == ((0, 1, 2), (0, 1, 3))


def test_another_temperature_shares_the_tokens_and_not_the_logprobs() -> None:
    tree = token_tree([path("paa", 1, 2), path("paa", 1, 2, temperature=0.7)])

    assert (tree.unique_tokens, tree.wanted) == (2, 4)


def test_a_sequence_that_continues_another_ends_inside_the_tree() -> None:
    tree = token_tree([path("pab", 1), path("pabcd", 1, 4)])

    assert [(n.ids, n.ends) for n in all_nodes(tree.roots)] == [((112,), (0,)), ((97, 98, 99), (1,))]


def test_without_sharing_every_path_is_a_tree_of_its_own() -> None:
    tree = token_tree([path("pab", 1, 2), path("pab", 1, 2)], share=False)

    assert (tree.unique_tokens, tree.all_tokens, tree.wanted) == (4, 4, 4)


def test_a_path_without_scored_tokens_is_not_in_the_tree() -> None:
    tree = token_tree([path("prompt"), path("pa", 1)])

    assert (outline(tree.roots), tree.rows[0]) == ([["p", 1]], ())


def test_a_scored_token_that_nothing_predicts_is_refused() -> None:
    with pytest.raises(ValueError, match="path 1 scores its first token"):
        token_tree([path("pa", 1), path("a", 0)])


@pytest.mark.parametrize("seed", range(5))
def test_the_size_of_a_tree_is_the_number_of_different_beginnings(seed: int) -> None:
    paths, tree = random_tree(seed)

    beginnings = {p.read[: i + 1] for p in paths for i in range(len(p.read))}
    edges = {(p.ids[: i + 1], p.temperature) for p in paths for i in p.scored}

    assert tree.unique_tokens == len(beginnings) == sum(len(n.ids) for n in all_nodes(tree.roots))
    assert tree.wanted == len(edges)


@pytest.mark.parametrize("tokens_at_once", [1, 5, 20, 1000])
def test_packs_hold_every_subtree_once_and_only_lone_ones_are_too_large(tokens_at_once: int) -> None:
    nodes = all_nodes(random_tree(0)[1].roots)

    found = packs(nodes, tokens_at_once)

    assert sorted(n.size for pack in found for n in pack) == sorted(n.size for n in nodes)
    assert all(len(pack) == 1 or sum(n.size for n in pack) <= tokens_at_once for pack in found)


def test_every_query_sees_its_own_path_and_nothing_else() -> None:
    paths, tree = random_tree(1)
    placed = place(tree.roots)
    size = placed[-1].end
    prefix_of = {}
    for p in placed:
        whole = next(q.read for q in paths if q.read[p.node.start : p.node.start + len(p.node.ids)] == p.node.ids
                     and _leads_to(tree.roots, p.node, q.read))  # fmt: skip
        for i in range(len(p.node.ids)):
            prefix_of[p.begin + i] = whole[: p.node.start + i + 1]

    seen = [[0] * (3 + size) for _ in range(size)]
    for b in blocks_of(placed, 3):
        for row in range(b.q.start, b.q.stop):
            for key in range(b.k.start, b.k.stop):
                seen[row][key] += not b.causal or key - b.k.start <= row - b.q.start

    for row in range(size):
        assert seen[row][:3] == [1, 1, 1]
        for key in range(size):
            is_before = prefix_of[row][: len(prefix_of[key])] == prefix_of[key]
            assert seen[row][3 + key] == int(is_before)


def _leads_to(nodes: tuple[Node, ...], node: Node, ids: tuple[int, ...]) -> bool:
    """Whether following `ids` down the tree passes through this very node."""
    for candidate in nodes:
        if ids[candidate.start : candidate.start + len(candidate.ids)] == candidate.ids:
            return candidate is node or _leads_to(candidate.children, node, ids)
    return False
