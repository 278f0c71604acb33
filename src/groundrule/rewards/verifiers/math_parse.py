"""One expression of LaTeX as a sympy expression, through the parser of math-verify. Runs in a worker only.

The parser drops, multiplies or invents what it does not know, so only spellings that it is known to read right
are sent to it; everything else is `Unreadable`. Decimals become exact fractions: no equality depends on a
tolerance.
"""

from __future__ import annotations

import functools
import logging
import re
from typing import Any

import sympy  # type: ignore[import-untyped]
from latex2sympy2_extended.latex2sympy2 import (  # type: ignore[import-untyped]
    ConversionConfig,
    NormalizationConfig,
    _Latex2Sympy,
    normalize_latex,
)

from groundrule.rewards.verifiers.math_kinds import Malformed, Unreadable

_SPELLING = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="none", equations=False
)
_CONVERSION = ConversionConfig(interpret_as_mixed_fractions=False, lowercase_symbols=False)
_KNOWN = frozenset(
    r"""frac sqrt cdot times div pm le ge ne ln log exp sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh
    pi infty binom choose sum prod int gcd lcm max min lfloor rfloor lceil rceil begin end cup cap setminus emptyset
    mathbb circ in alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
    sigma tau upsilon phi varphi chi psi omega Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega Gamma""".split()
)
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_UNSAFE = [
    (re.compile(r"(?<![_\d])\d+\s+\d"), "two numbers side by side"),
    (re.compile(r"\)\s*\d"), "a number right behind a bracket"),
    (re.compile(r"(?<![_\d.^])\d+\s*\\frac\s*(?:\{\s*\d+\s*\}|\d)"), "an improper fraction behind a number"),
    (re.compile(r"[0-9)]\s*_"), "an index on a number"),
    (re.compile(r"!\s*!"), "a double factorial"),
    (re.compile(r"['\"]"), "a prime"),
    (re.compile(r"%|:|~"), "a sign inside an expression"),
    (re.compile(r"(?<![A-Za-z])[A-Za-z]\s*\^\s*\{?\s*-\s*1\s*\}?\s*\("), "an inverse function"),
    (re.compile(r"\\Gamma(?!\s*\()"), "a bare Gamma"),
    (re.compile(r"\\mathbb\{[^RZNC]\}|\\mathbb\{.\}\s*[\^_]"), "a number set of another kind"),
    (re.compile(r"\\begin\{(?!(?:[pbBvV]?matrix|array)\})|[lr]?Vmatrix"), "an environment"),
]
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4,}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[a-zA-Z]+\}(?:\{[lcr|]*\})?")
_EXPONENT = re.compile(r"\^\s*(-?\s*(?:\d+(?:\.\d+)?|\.\d+))(?![\d.])")
_DECIMAL = re.compile(r"(?<![\d.])(\d*)\.(\d+)(?![\d.])|(?<![\d.])(\d+)\.(?![\d.])")
_SCIENTIFIC = re.compile(r"(?<![\dA-Za-z.])(\d+(?:\.\d+)?|\.\d+)[eE]([+-]?\d{1,4})(?![\dA-Za-z.])")
_DEGREES = re.compile(r"(\d+(?:\.\d+)?|[a-z]|\\(?:alpha|beta|theta|phi))\s*\^\\circ(?![A-Za-z])")

logging.getLogger("math_verify").setLevel(logging.CRITICAL)


@functools.lru_cache(maxsize=256)
def parse(latex: str) -> Any:
    """The expression, unevaluated. Raises `Unreadable`."""
    _check(latex)
    text = _SCIENTIFIC.sub(r"(\1 \\cdot 10^{\2})", latex)
    text = _DEGREES.sub(r"(\1 \\cdot \\frac{\\pi}{180})", text)
    text = _EXPONENT.sub(r"^{\1}", text)
    text = _DECIMAL.sub(_fraction, text)
    try:
        found = _Parser(None, True, config=_CONVERSION).parse(normalize_latex(text, _SPELLING))
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except Exception as error:  # The parser raises bare exceptions.
        raise Unreadable(f"the parser cannot read {latex[:80]!r}") from error
    return _checked(found)


class _Parser(_Latex2Sympy):  # type: ignore[misc]
    """What stands side by side is multiplied, always: the original adds numbers, and drops what is no expression."""

    def convert_postfix_list(self, arr: Any, i: int = 0) -> Any:
        """The product of all factors from the i-th on."""
        factors = [self.convert_postfix(factor) for factor in arr[i:]]
        if len(factors) == 1:
            return factors[0]
        matrix = sympy.MatrixBase | sympy.MatrixExpr
        if not all(isinstance(factor, sympy.Expr | matrix) for factor in factors):
            raise Unreadable("a product of things that are no expressions")
        times = self.mat_mul_flat if any(isinstance(factor, matrix) for factor in factors) else self.mul_flat
        return functools.reduce(times, factors)


def _check(latex: str) -> None:
    if not latex.strip():
        raise Malformed("a part of it is empty")
    unknown = [name for name in _COMMAND.findall(latex) if name not in _KNOWN]
    if unknown:
        raise Unreadable(f"it holds \\{unknown[0]}, which the parser may not know")
    bare = _ENVIRONMENT.sub("", latex)
    if _PROSE.search(bare):
        raise Malformed("it is prose")
    for pattern, problem in _UNSAFE:
        if pattern.search(latex if "begin" in pattern.pattern else bare):
            raise (Malformed if problem == "two numbers side by side" else Unreadable)(f"it holds {problem}")


def _fraction(match: re.Match[str]) -> str:
    whole, decimals = (match[1] or "0", match[2]) if match[2] else (match[3], "")
    return rf"\frac{{{int(whole + decimals)}}}{{{10 ** len(decimals)}}}" if decimals else whole


def _checked(found: Any) -> Any:
    if not isinstance(found, sympy.Basic | sympy.MatrixBase):
        raise Unreadable("the parser gave no expression")
    if found.has(sympy.Float, sympy.nan, sympy.zoo, sympy.Derivative, sympy.Limit):
        raise Unreadable("it has no definite value")
    found = found.replace(sympy.UnevaluatedExpr, lambda inside: inside)
    return found.xreplace({symbol: sympy.I for symbol in found.free_symbols if symbol.name == "i"})
