"""The exact one-sided sign-flip test for paired differences: is their mean above a bound?

Under the hypothesis each difference is as likely to be its own mirror image, so of the 2^n ways to choose the signs
the share whose sum is at least the observed one is the p-value (Fisher 1935, chapter 21; Pitman 1937). No normality, no
equal variances. Differences are first put on a grid of `STEPS` steps for the largest one, and the test is exact for
what stands on the grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

STEPS = 512


def sign_flip_p(differences: Sequence[float], *, bound: float = 0.0) -> float:
    """The probability of a sum at least as large, if the differences lay symmetrically around `bound`.

    1.0 without differences: nothing was seen. Raises `ValueError` for a difference that is not finite.
    """
    shifted = [difference - bound for difference in differences]
    if not all(map(math.isfinite, shifted)):
        raise ValueError(f"differences must be finite; got {list(differences)}")
    largest = max(map(abs, shifted), default=0.0)
    if largest == 0.0:
        return 1.0
    # Towards zero: rounding must not make an effect larger.
    whole = [math.trunc(d / largest * STEPS + math.copysign(1e-9, d)) for d in shifted]
    return _share_at_least(sum(whole), [abs(w) for w in whole])


def _share_at_least(observed: int, sizes: Sequence[int]) -> float:
    """Of all signs, the share whose sum reaches `observed`.

    The counts of all sums are the coefficients of the product of (1 + x^(2 size)), which one large integer holds, a
    slot of bytes for each power: sums count from -total in steps of one.
    """
    slot = len(sizes) // 8 + 1
    counts = 1
    for size in sizes:
        counts += counts << (8 * slot * 2 * size)
    total = sum(sizes)
    reached = counts >> (8 * slot * (observed + total))
    parts = reached.to_bytes(slot * (total - observed + 1), "little")
    favourable = sum(
        int.from_bytes(parts[start : start + slot], "little") for start in range(0, len(parts), slot)
    )
    return float(favourable / 2 ** len(sizes))
