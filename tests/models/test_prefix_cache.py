"""The tree of keys and values: what it finds, what it splits, what it lets go of."""

from __future__ import annotations

import torch

from groundrule.models.key_values import KeyValues
from groundrule.models.prefix_cache import PrefixCache

TOKEN_BYTES = 8
"""Of one token below: one layer, one head, one number in keys and values each."""
HIDDEN = torch.ones(3)


def kv(*tokens: int) -> KeyValues:
    """Keys and values that say which tokens they are of."""
    numbers = torch.tensor(tokens, dtype=torch.float32)[None, :, None]
    return KeyValues([numbers], [numbers])


def cache_with(*prompts: tuple[int, ...], tokens: int = 100) -> PrefixCache:
    cache = PrefixCache(tokens * TOKEN_BYTES)
    for prompt in prompts:
        cache.insert(prompt, kv(*prompt))
    return cache


def known(cache: PrefixCache, *ids: int) -> list[int]:
    """The tokens whose keys are found for this prompt."""
    return [int(x) for part in cache.match(ids).parts for x in part.keys[0].flatten()]


def test_an_empty_tree_knows_nothing() -> None:
    assert cache_with().match((1, 2)).tokens == 0


def test_a_prompt_that_goes_on_takes_all_that_is_known() -> None:
    assert known(cache_with((1, 2, 3)), 1, 2, 3, 4) == [1, 2, 3]


def test_a_prompt_that_turns_off_takes_what_is_shared() -> None:
    assert known(cache_with((1, 2, 3)), 1, 2, 9) == [1, 2]


def test_the_last_token_of_a_known_prompt_is_read_again_when_nothing_was_drawn_after_it() -> None:
    assert known(cache_with((1, 2, 3)), 1, 2, 3) == [1, 2]


def test_a_prompt_of_one_token_is_always_read() -> None:
    assert known(cache_with((1, 2, 3)), 1) == []


def test_a_prompt_whose_last_hidden_state_is_known_is_known_whole() -> None:
    cache = PrefixCache(100)
    cache.insert((1, 2, 3), kv(1, 2, 3), HIDDEN)

    match = cache.match((1, 2, 3))

    assert (match.tokens, match.hidden) == (3, HIDDEN)


def test_the_hidden_state_stays_with_its_token_when_the_run_is_split() -> None:
    cache = PrefixCache(100)
    cache.insert((1, 2, 3), kv(1, 2, 3), HIDDEN)
    cache.insert((1, 7), kv(1, 7))

    assert cache.match((1, 2, 3)).hidden is HIDDEN
    assert cache.match((1,)).hidden is None


def test_both_sides_of_a_split_are_found() -> None:
    cache = cache_with((1, 2, 3), (1, 2, 8, 9))

    assert known(cache, 1, 2, 3, 0) == [1, 2, 3]
    assert known(cache, 1, 2, 8, 9, 0) == [1, 2, 8, 9]


def test_a_shared_run_is_kept_once() -> None:
    assert cache_with((1, 2, 3), (1, 2, 8)).bytes == 4 * TOKEN_BYTES


def test_what_follows_known_tokens_is_kept_without_them() -> None:
    cache = cache_with((1, 2))
    cache.insert((1, 2, 3, 4), kv(3, 4))

    assert known(cache, 1, 2, 3, 4, 5) == [1, 2, 3, 4]


def test_what_follows_tokens_that_are_gone_is_not_kept() -> None:
    cache = cache_with()
    cache.insert((1, 2, 3, 4), kv(3, 4))

    assert known(cache, 1, 2, 3, 4, 5) == []


def test_the_least_recently_used_leaf_goes_first() -> None:
    cache = cache_with((1, 2), (3, 4), tokens=5)
    known(cache, 1, 2, 0)
    cache.insert((5, 6), kv(5, 6))

    assert (known(cache, 1, 2, 0), known(cache, 3, 4, 0), known(cache, 5, 6, 0)) == ([1, 2], [], [5, 6])


def test_a_shared_run_outlives_the_leaf_that_is_let_go() -> None:
    cache = cache_with((1, 2, 3, 4), (1, 2, 5, 6), tokens=6)
    cache.insert((9,), kv(9))

    assert known(cache, 1, 2, 3, 0) == [1, 2]
    assert known(cache, 1, 2, 5, 6, 0) == [1, 2, 5, 6]


def test_no_more_is_kept_than_allowed() -> None:
    cache = cache_with(*[(n, n + 1, n + 2) for n in range(10, 90, 4)], tokens=10)

    assert cache.bytes == 9 * TOKEN_BYTES


def test_a_prompt_larger_than_the_whole_cache_is_not_kept() -> None:
    assert cache_with((1, 2, 3), tokens=2).bytes == 0


def test_a_cleared_tree_knows_nothing() -> None:
    cache = cache_with((1, 2, 3))
    cache.clear()

    assert (known(cache, 1, 2, 3, 4), cache.bytes) == ([], 0)
