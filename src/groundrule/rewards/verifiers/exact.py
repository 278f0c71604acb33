"""Is an answer the expected text, or of the expected form?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Literal, get_args

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.errors import ConfigError
from groundrule.rewards.replies import INVISIBLE, answer_text
from groundrule.rewards.verifiers.scorer import VerifierScorer, group_reference
from groundrule.rewards.verifiers.workers import WorkerError, WorkerTimeout, shared

Step = Literal["case", "space", "punctuation", "articles", "numbers"]
NORMALISE: tuple[Step, ...] = ("case", "space", "punctuation", "numbers")

_STEPS = get_args(Step)
_PUNCTUATION = re.compile(r"""[.,;:!?()\[\]{}"`´“”„«»…]|(?<!\w)'|'(?!\w)""")
_DASH = re.compile(r"[-‐‑–—_]")
_NUMBER_SIGN = re.compile(r"(?:(?<=\d)[.,:]|(?<![\w.])[.]|(?<![\w)])[-–−]\s?|(?<=\d)[-–])(?=\.?\d)")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][+-]?\d{1,4})?")
_LIKE = str.maketrans("−‘’", "-''")
_LONGEST_NUMBER = 100


def verify_exact(answer: str, reference: Any, *, normalise: Collection[Step] = NORMALISE) -> Score:
    """1.0 where the whole answer, without thinking, is one of the references, else 0.0.

    `reference` is a text or a number, or several of them, any of which is right. Unicode forms are always unified
    (NFKC). `normalise` names what else does not count: "case"; "space" (how much of it); "punctuation" (signs that
    belong to a number are kept, so `-5` is not `5`); "articles" (a, an, the); with "numbers", two numbers are compared
    as numbers (`1,000.0` is `1000`). Without a reference there is no score.
    """
    unknown = sorted(set(normalise) - set(_STEPS))
    if unknown:
        raise ConfigError(f"normalise names {unknown[0]!r}; known are {', '.join(_STEPS)}")
    references = _several(reference)
    if not references:
        return Score.none("bad_reference: there is no reference text")
    said = answer_text(answer)
    right = next((text for text in references if _same(said, text, normalise)), None)
    if right is not None:
        return Score(value=1.0, explanation=f"{said[:100]!r} is {right[:100]!r}")
    others = "" if len(references) == 1 else f" nor one of {len(references) - 1} others"
    return Score(value=0.0, explanation=f"{said[:100]!r} is not {references[0][:100]!r}{others}")


def _several(reference: Any) -> list[str]:
    many = (
        reference
        if isinstance(reference, Iterable) and not isinstance(reference, str | bytes)
        else [reference]
    )
    return [text for text in (str(one) for one in many if one is not None) if text.strip()]


def _same(said: str, reference: str, steps: Collection[Step]) -> bool:
    said, reference = _unified(said), _unified(reference)
    if "numbers" in steps:
        numbers = _number(said), _number(reference)
        if None not in numbers:
            return numbers[0] == numbers[1]
    wanted = _normal(reference, steps)
    # Where nothing is left ("?", "the"), what was taken away is all that there is to compare.
    return _normal(said, steps) == wanted if wanted else said == reference


def _unified(text: str) -> str:
    """NFKC, but a raised two is no two: `10²` must not become `102`."""
    parts = []
    for character in text:
        kind = unicodedata.decomposition(character).partition(">")[0]
        mark = {"<super": "^", "<sub": "_", "<fraction": " "}.get(kind, "")
        parts.append("" if character in INVISIBLE and character != "\u00a0" else mark + character)
    return unicodedata.normalize("NFKC", "".join(parts)).translate(_LIKE).strip()


def _number(text: str) -> Decimal | None:
    text = text.removesuffix(".")
    if not re.search(r"\d", text) or len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def _normal(text: str, steps: Collection[Step]) -> str:
    if "case" in steps:
        text = text.casefold()
    if "punctuation" in steps:
        text = _without_punctuation(text)
    if "articles" in steps:
        text = _ARTICLE.sub(" ", text)
    if "space" in steps or "punctuation" in steps or "articles" in steps:
        text = " ".join(text.split())
    return text


def _without_punctuation(text: str) -> str:
    pieces, at = [], 0
    for sign in _NUMBER_SIGN.finditer(text):
        pieces += [_bare(text[at : sign.start()]), sign[0].strip().replace("–", "-")]
        at = sign.end()
    return "".join([*pieces, _bare(text[at:])])


def _bare(text: str) -> str:
    return _DASH.sub(" ", _PUNCTUATION.sub("", text))


def verify_regex(answer: str, pattern: str, *, anywhere: bool = False, timeout_s: float = 2.0) -> Score:
    """1.0 where the pattern matches the whole answer without thinking (or, `anywhere`, a part of it), else 0.0.

    It runs in a process that is killed after `timeout_s` seconds, so a pattern that backtracks for ever on what a
    policy wrote gives no score instead of a training that stands still. Flags go into the pattern: `(?i)...`.
    """
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"verify_regex: {pattern!r} is no regular expression: {error}") from error
    try:
        found = shared.call(
            f"{__name__}:matches", pattern, answer_text(answer), anywhere, timeout_s=timeout_s
        )
    except WorkerTimeout as error:
        return Score.none(f"timeout: {error}; the pattern {pattern!r} backtracks too much")
    except WorkerError as error:
        return Score.none(f"broken: {error}")
    said = "matches" if found else "does not match"
    return Score(value=float(found), explanation=f"the answer {said} {pattern!r}")


def matches(pattern: str, text: str, anywhere: bool) -> bool:
    """The worker's part."""
    return bool(re.search(pattern, text) if anywhere else re.fullmatch(pattern, text))


def exact_scorer(
    *,
    normalise: Collection[Step] = NORMALISE,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
) -> VerifierScorer:
    """`verify_exact` for groups."""
    return VerifierScorer(partial(verify_exact, normalise=normalise), reference=reference)


def regex_scorer(
    *,
    anywhere: bool = False,
    timeout_s: float = 2.0,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
) -> VerifierScorer:
    """`verify_regex` for groups; the reference is the pattern."""
    return VerifierScorer(partial(verify_regex, anywhere=anywhere, timeout_s=timeout_s), reference=reference)
