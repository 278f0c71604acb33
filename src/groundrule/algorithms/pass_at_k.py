"""How often a model is right when it may try several times: pass@k, and the vote of k answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from math import comb
from statistics import fmean


def pass_at_k(attempts: int, right: int, k: int) -> float:
    """The chance that one of k attempts is right, from more attempts of which some were (Chen et al. 2021, eq. 1).

    1 - C(attempts - right, k) / C(attempts, k), unbiased, where 1 - (1 - right/attempts)^k is not. Raises
    `ValueError` for k above the number of attempts: it cannot be estimated from them.
    """
    if not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} cannot be estimated from {attempts} attempts; k is 1 to {attempts}")
    if not 0 <= right <= attempts:
        raise ValueError(f"{right} of {attempts} attempts cannot be right")
    return 1.0 - comb(attempts - right, k) / comb(attempts, k)


def majority_is_right(answers: Sequence[Hashable | None], is_right: Sequence[bool]) -> float:
    """Whether the answer given most often is right: 1 or 0, and the mean over the winners of a tie.

    None is an attempt without an answer: it does not vote. Equal answers are taken to be right or wrong together;
    where a verifier says otherwise, their mean counts. Without any vote it is 0.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return 0.0
    verdicts: dict[Hashable, list[bool]] = defaultdict(list)
    for answer, right in zip(answers, is_right, strict=True):
        if answer is not None:
            verdicts[answer].append(right)
    most = max(votes.values())
    return fmean(fmean(verdicts[answer]) for answer, count in votes.items() if count == most)
