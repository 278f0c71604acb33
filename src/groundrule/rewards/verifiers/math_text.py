"""One spelling for mathematical text: what looks the same on paper becomes the same string.

Layout, fonts, Unicode signs, currency signs, separators of thousands and mixed numbers are dealt with here, before
any parser sees the text, because parsers drop or multiply what they do not know: math-verify 0.9 reads `1\\,000` as
1 times 0, `1 1/4` as 1/2 and `3(4)` as 7.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from groundrule.rewards.replies import INVISIBLE
from groundrule.rewards.verifiers.math_brackets import closing_brace

_SIGNS = {
    "−": "-", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": "/", "∕": "/", "⁄": "/",
    "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "⩽": r"\le ", "≥": r"\ge ", "⩾": r"\ge ", "≠": r"\ne ",
    "≈": r"\approx ",
    "±": r"\pm ", "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "√": r"\sqrt ",
    "°": r"^\circ ", "ℝ": r"\mathbb{R}", "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "ℂ": r"\mathbb{C}",
    "…": r"\ldots ", "⋯": r"\ldots ", "∖": r"\setminus ", "∨": r"\lor ", "∧": r"\land ", "′": "'", "’": "'",
    "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ", "θ": r"\theta ", "λ": r"\lambda ", "μ": r"\mu ",
    "φ": r"\phi ", "ω": r"\omega ", "σ": r"\sigma ",
    "\u2009": r"\,", "\u202f": r"\,", "\u00a0": "~", "\u2007": "~",
}  # fmt: skip
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_CURRENCIES = {
    r"\$": "dollar",
    "$": "dollar",
    "£": "pound",
    "€": "euro",
    "¥": "yen",
    "₹": "rupee",
    r"\pounds": "pound",
}
_SAME = [
    (re.compile(pattern), replacement)
    for pattern, replacement in [
        (r"\\(?:[dtc]frac)(?![A-Za-z])", r"\\frac"),
        (r"\\(?:leq|leqslant|leqq)(?![A-Za-z])|<=", r"\\le "),
        (r"\\(?:geq|geqslant|geqq)(?![A-Za-z])|>=", r"\\ge "),
        (r"\\neq(?![A-Za-z])|!=", r"\\ne "),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\(?:varnothing|O)(?![A-Za-z])", r"\\emptyset "),
        (r"\\vee(?![A-Za-z])", r"\\lor "),
        (r"\\wedge(?![A-Za-z])", r"\\land "),
        (r"\\lbrace(?![A-Za-z])", r"\\{"),
        (r"\\rbrace(?![A-Za-z])", r"\\}"),
        (r"\\lbrack(?![A-Za-z])", "["),
        (r"\\langle(?![A-Za-z])", "("),
        (r"\\rangle(?![A-Za-z])", ")"),
        (r"\\rbrack(?![A-Za-z])", "]"),
        (r"\\[lr]vert(?![A-Za-z])", "|"),
        (r"\\(?:dots|cdots|dotsc|dotsb|ldots)(?![A-Za-z])|\.\.\.", r"\\ldots "),
        (r"\\(?:degree|degrees)(?![A-Za-z])", r"^\\circ "),
        (r"\^\s*\{\s*\\circ\s*\}", r"^\\circ "),
        (r"\\(?:ast|star)(?![A-Za-z])", "*"),
        (r"\\mathbb\s+([A-Z])", r"\\mathbb{\1}"),
        (r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
        (r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}", r"\\binom{\1}{\2}"),
        (r"\\log\s*_\s*(?:e|\{\s*e\s*\})", r"\\ln "),
        (r"\s*\{\s*,\s*\}\s*", "{,}"),
        (r"\\(?:imath|jmath)(?![A-Za-z])", "i"),
        (r"\\prime(?![A-Za-z])", "'"),
        (r"\*\*", "^"),
    ]
]
_LAYOUT = re.compile(
    r"\\(?:left|right)(?![A-Za-z])\.?|\\(?:middle|[bB]igg?[lr]?|displaystyle|textstyle|scriptstyle)(?![A-Za-z])|"
    r"\\(?:limits|nolimits|mathstrut|strut)(?![A-Za-z])|\\(?:tag|label)\{[^{}]*\}|"
    r"(?<=\\\\)\[[\d.]+ ?(?:pt|ex|em|cm|mm)\]|\\\\\s*$"
)
_SPACES = re.compile(
    r"(?<!\\)\\[,;:! ]|\\(?:quad|qquad|thinspace|enspace)(?![A-Za-z])|\\hspace\*?\{[^{}]*\}|~|\s+"
)
_FONT = re.compile(
    r"\\(?:mathbf|boldsymbol|bm|mathit|textbf|textit|emph|underline|mathsf|mathcal|mathnormal)\s*(?=\{)"
)
_UPRIGHT = re.compile(r"\\(?:mathrm|textrm|mbox|hbox|textnormal|textup|text|rm)\s*(?=\{)")
_GROUPED = re.compile(
    r"(?<![\d.])\d{1,3}(?P<gap>\\,|\\!|\\;|\\:|\\ |\{,\}|,\\! ?|~|')\d{3}(?:(?P=gap)\d{3})*(?!\d)"
)
_MIXED = re.compile(
    r"(?<![\d.^_}{)A-Za-z])(\d+)(?:\s+(\d+)\s*/\s*(\d+)|\s*\\frac\s*\{?(\d+)\}?\s*\{(\d+)\}|\s*\\frac(\d)(\d))(?!\d|\.\d)"
)
_REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*)\\(?:overline|bar)\s*\{?(\d+)\}?")
_PLAIN_WORDS = re.compile(
    r"\\(?:text|operatorname)\{[^{}]*\}|(?<![\\A-Za-z])(?P<word>pi|sqrt|sin|cos|tan|ln|log|infty|infinity)(?![A-Za-z])"
)


def plain(text: str) -> str:
    """The text in one spelling. Raises nothing; what it does not know it leaves."""
    text = _characters(text).replace("\n", " ")
    text = _currency(text)
    text = re.sub(r"(?<!\\)\\[()\[\]]|\$", " ", text)
    for pattern, replacement in _SAME:
        text = pattern.sub(replacement, text)
    text = _LAYOUT.sub("", text)
    text = _GROUPED.sub(lambda match: match[0].replace(match["gap"], ""), text)
    text = re.sub(r"(?<=\d)\{,\}(?=\d)", ".", text)  # Not a group of three: a decimal comma.
    text = _SPACES.sub(" ", text)
    text = _upright(_unwrapped(_FONT, text, lambda inside: inside))
    text = _PLAIN_WORDS.sub(_backslashed, text)
    text = _roots(text)
    text = _REPEATING.sub(_repeating, text)
    text = _MIXED.sub(_mixed, text)
    text = re.sub(r"\s+", " ", text).rstrip(" .,;:").lstrip(" ,;:")
    return re.sub(r"^(?:=|\\approx|\\equiv)\s*", "", text)


def _characters(text: str) -> str:
    text = re.sub(r"(?<![\w)}\]])\s*[–—]\s*(?=[\d.\\])", "-", text)  # Between two numbers it is a range.
    text = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda run: "^{" + run[0].translate(_RAISED) + "}", text)
    result: list[str] = []
    for character in text:
        if character in _SIGNS:
            result.append(_SIGNS[character])
        elif character in INVISIBLE:
            continue
        elif "VULGAR FRACTION" in unicodedata.name(character, ""):
            top, _, bottom = unicodedata.normalize("NFKC", character).partition("⁄")
            result.append(rf"\frac{{{top}}}{{{bottom}}}")
        else:
            result.append(unicodedata.normalize("NFKC", character))
    return "".join(result)


def _currency(text: str) -> str:
    """Currency signs as words of the unit; a lone dollar sign before a number is one, a pair encloses a formula."""
    for sign, word in _CURRENCIES.items():
        if sign == "$" and not re.fullmatch(r"\s*-?\$\s*[\d.][^$]*", text):
            continue
        text = text.replace(sign, rf"\text{{{word}}}")
    return text


def _unwrapped(command: re.Pattern[str], text: str, inside: Callable[[str], str]) -> str:
    """`\\command{content}` replaced by what `inside` makes of the content."""
    at = 0
    while match := command.search(text, at):
        end = closing_brace(text, match.end())
        if end is None:
            return text
        new = inside(text[match.end() + 1 : end])
        text = text[: match.start()] + new + text[end + 1 :]
        at = match.start() + (len(new) if new.startswith("\\text{") else 0)
    return text


def _upright(text: str) -> str:
    """Upright numbers and the constants e, i, d are ordinary ones; other upright text becomes `\\text{...}`."""
    return _unwrapped(_UPRIGHT, text, _upright_content)


def _upright_content(content: str) -> str:
    is_formula = not re.search(r"[^\W\d_]", content) or re.match(r"\s*[-+]?[\d.]|.*[+*/=^<>\\]", content)
    if content.strip() in ("e", "i", "d") or is_formula:
        return content
    return r"\text{" + content + "}"


def _backslashed(match: re.Match[str]) -> str:
    word = match["word"]
    return match[0] if word is None else "\\" + word.replace("infinity", "infty") + " "


def _roots(text: str) -> str:
    """`\\sqrt(2)` is the root of two, not a root of a bracket that is then forgotten."""
    at = 0
    while (at := text.find(r"\sqrt", at)) >= 0:
        at += len(r"\sqrt")
        opening = re.compile(r"\s*\(").match(text, at)
        if opening is None:
            continue
        depth, end = 1, opening.end()
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        if depth == 0:
            text = text[:at] + "{" + text[opening.end() : end - 1] + "}" + text[end:]
    return text


def _repeating(match: re.Match[str]) -> str:
    """0.1\\overline{6} as a fraction."""
    whole, fixed, repeated = match[1] or "0", match[2], match[3]
    bottom = (10 ** len(repeated) - 1) * 10 ** len(fixed)
    top = int(whole + fixed + repeated) - int(whole + fixed)
    return rf"\frac{{{top}}}{{{bottom}}}"


def _mixed(match: re.Match[str]) -> str:
    """A whole number before a proper fraction is added to it; before an improper one it is not a mixed number."""
    whole = int(match[1])
    top, bottom = next(
        (int(a), int(b)) for a, b in zip(match.groups()[1::2], match.groups()[2::2], strict=True) if a
    )
    if not 0 < top < bottom:
        return match[0]
    return rf"\frac{{{whole * bottom + top}}}{{{bottom}}}"
