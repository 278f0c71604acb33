"""Units: taken off an answer, and brought to one name so that `5 cm` and `5 \\text{ centimetres}` agree."""

from __future__ import annotations

import re

_NAMES = {
    "degree": "degrees deg °",
    "cm": "centimeter centimeters centimetre centimetres cms",
    "mm": "millimeter millimeters millimetre millimetres",
    "m": "meter meters metre metres",
    "km": "kilometer kilometers kilometre kilometres kms",
    "inch": "inches in",
    "foot": "feet ft",
    "yard": "yards yd",
    "mile": "miles mi",
    "g": "gram grams gm gms",
    "kg": "kilogram kilograms kgs",
    "mg": "milligram milligrams",
    "pound": "pounds lb lbs",
    "ounce": "ounces oz",
    "s": "second seconds sec secs",
    "minute": "minutes min mins",
    "hour": "hours hr hrs h",
    "day": "days",
    "week": "weeks",
    "month": "months",
    "year": "years yr yrs",
    "l": "liter liters litre litres",
    "ml": "milliliter milliliters millilitre millilitres",
    "dollar": "dollars usd",
    "cent": "cents",
    "euro": "euros eur",
    "percent": "percentage pct",
    "radian": "radians rad",
    "mile/hour": "mph",
    "km/hour": "kmh kph",
    "hz": "hertz",
    "n": "newton newtons",
    "j": "joule joules",
    "w": "watt watts",
    "v": "volt volts",
    "ohm": "ohms",
    "": "unit units",
}
CHANGING_WORDS = frozenset(
    """not no or and less more than least most fewer over under above below between greater larger smaller minus
    negative plus times half third quarter hundred thousand million billion trillion dozen squared cubed factorial
    tenth hundredth thousandth except up to from maximum minimum""".split()
)
"""A unit that is left out may be forgiven; one of these words beside a number may not."""

_CANON = {word: name for name, words in _NAMES.items() for word in (name, *words.split())}
_PLAIN = frozenset(word for word in _CANON if len(word) > 1)
"""Written without \\text, a single letter is a variable."""

_TAIL = r"(?:\\text\{[^{}]*\}|\^\{?-?\d\}?|[ /()]|\\cdot |\\times |\d(?=\\text))*"
_SUFFIX = re.compile(rf"(?P<latex>.*?[^\s\\]) *(?P<unit>\\text\{{[^{{}}]*\}}{_TAIL})")
_PREFIX = re.compile(r"(?P<sign>-?) *(?P<unit>\\text\{[^{}]*\}) *(?P<latex>[\d.\\({-].*)")
_WORDS = re.compile(r"(?P<latex>.*[\d})]) *(?P<unit>[A-Za-z][A-Za-z/ ]*(?:\^\{?[23]\}?)?)")
_CIRCLE = re.compile(r"(?P<latex>[^a-z]*?[\d})]) *\^\\circ *(?P<scale>[CF]?)")


def split_unit(text: str) -> tuple[str, str]:
    """The expression and the name of its unit, "" for none."""
    if circle := _CIRCLE.fullmatch(text):
        return circle["latex"], "degree" + circle["scale"].lower()
    for pattern in (_SUFFIX, _PREFIX):
        if match := pattern.fullmatch(text):
            return match.groupdict().get("sign", "") + match["latex"], unit_name(match["unit"])
    match = _WORDS.fullmatch(text)
    if match and _is_unit(match["unit"]):
        return match["latex"], unit_name(match["unit"])
    return text, ""


def _is_unit(words: str) -> bool:
    """A known unit of two letters or more, or a word that is too long for a product of variables."""
    names = re.findall(r"[A-Za-z]+", words)
    if "/" in words or len(names) > 1:
        return all(name.lower() in _CANON or len(name) > 3 for name in names)
    return names[0].lower() in _PLAIN or len(names[0]) > 3


def unit_name(said: str) -> str:
    """One name for one unit: `square metres`, `\\text{m}^2` and `sq m` are all `m^2`."""
    said = re.sub(r"\\text\{([^{}]*)\}", r" \1 ", said).lower()
    said = re.sub(r"\\(?:cdot|times)|[{}(),.]", " ", said)
    said = re.sub(r"\bper\b", "/", said)
    said = re.sub(r"\b(?:square|sq)\s+([a-z]+)", r"\1^2", said)
    said = re.sub(r"\b(?:cubic|cu)\s+([a-z]+)", r"\1^3", said)
    said = re.sub(r"\s*\^\s*", "^", re.sub(r"\s*/\s*", "/", said))
    names = [_canonical(name) for name in re.findall(r"[a-z°]+(?:\^-?\d)?|/", said)]
    return " ".join(name for name in names if name).replace(" / ", "/")


def _canonical(word: str) -> str:
    name, caret, power = word.partition("^")
    name = _CANON.get(
        name, _CANON.get(name.removesuffix("s"), name.removesuffix("s") if len(name) > 3 else name)
    )
    return name + caret + power if name else ""
