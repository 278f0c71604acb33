"""Is the final answer of a reply equal to the reference answer of a mathematical question?

The pieces: `math_answer` finds the answer, `math_text` brings both to one spelling, `math_form` reads what kind of
thing they are, `math_parse` and `math_equal` compare them with math-verify's parser and sympy, in a process that
is killed when it takes too long.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.errors import ConfigError
from groundrule.rewards.verifiers.math_answer import find_answer
from groundrule.rewards.verifiers.scorer import VerifierScorer, group_reference
from groundrule.rewards.verifiers.workers import WorkerError, WorkerTimeout, shared

LONGEST = 500
"""Characters. A longer text is no final answer, unless the reference is nearly as long."""

_COMPARE = "groundrule.rewards.verifiers.math_equal:compare"


def verify_math(answer: str, gold: str, *, allow_unboxed: bool = False, timeout_s: float = 5.0) -> Score:
    """1.0 where the final answer of the reply `answer` equals `gold`, else 0.0.

    `gold` is LaTeX, plain or in a box. The final answer is what the last `\\boxed{}` outside the thinking holds;
    `allow_unboxed` also accepts, in a reply without any box, what is stated last ("the answer is ...", "#### ...", a
    last line of mathematics). No answer, and one that is no mathematics, is wrong: 0.0.

    There is no score where the verifier cannot decide, with one of these words first in the reason: `bad_gold` (the
    reference cannot be read), `unreadable` (the answer cannot be read for sure), `timeout` (no verdict within
    `timeout_s` seconds of wall-clock time), `broken`. Raises `ConfigError` without math-verify.
    """
    if importlib.util.find_spec("math_verify") is None:
        raise ConfigError("verify_math needs math-verify; install it: pip install 'groundrule[verify]'")
    reference = find_answer(gold).text or gold.strip()
    if not reference:
        return Score.none("bad_gold: the reference is empty")
    found = find_answer(answer, allow_unboxed=allow_unboxed)
    parts = {"boxed": float(found.boxed)}
    if found.text is None:
        return Score(value=0.0, explanation=f"no answer: {found.problem}", parts=parts)
    if len(found.text) > max(LONGEST, 2 * len(reference)):
        said = f"{len(found.text)} characters are no final answer"
        return Score(value=0.0, explanation=said, parts=parts)
    return _compared(found.text, reference, timeout_s).model_copy(update={"parts": parts})


def _compared(answer: str, reference: str, timeout_s: float) -> Score:
    shown = f"{answer[:100]!r} against the reference {reference[:100]!r}"
    try:
        verdict = shared.call(_COMPARE, reference, answer, timeout_s=timeout_s)
    except WorkerTimeout as error:
        return Score.none(f"timeout: {error}", explanation=shown)
    except WorkerError as error:
        return Score.none(f"broken: {error}", explanation=shown)
    why = f" ({verdict['why']})" if verdict["why"] else ""
    if verdict["equal"] is None:
        kind = "bad_gold" if verdict.get("bad_gold") else "unreadable"
        return Score.none(f"{kind}: {verdict['why']}", explanation=shown)
    said = "equal" if verdict["equal"] else "not equal"
    return Score(value=float(verdict["equal"]), explanation=f"{said}: {shown}{why}")


async def verify_math_async(
    answer: str, gold: str, *, allow_unboxed: bool = False, timeout_s: float = 5.0
) -> Score:
    """`verify_math` without blocking the event loop."""
    return await asyncio.to_thread(
        verify_math, answer, gold, allow_unboxed=allow_unboxed, timeout_s=timeout_s
    )


def math_scorer(
    *,
    allow_unboxed: bool = False,
    timeout_s: float = 5.0,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
) -> VerifierScorer:
    """`verify_math` for groups: the last assistant message against the reference of the group."""
    return VerifierScorer(
        partial(verify_math, allow_unboxed=allow_unboxed, timeout_s=timeout_s), reference=reference
    )
