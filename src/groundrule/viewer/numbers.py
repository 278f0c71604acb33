"""How numbers are written on the page."""

from __future__ import annotations

NONE = "–"
MINUS = "\N{MINUS SIGN}"


def shown(value: float | int | bool | None) -> str:
    """A number at the precision that a reader can use."""
    if value is None:
        return NONE
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace("-", MINUS)
    size = abs(value)
    if 0 < size < 0.01:
        text = f"{value:.2g}"
    elif size < 10:
        text = f"{value:.2f}"
    else:
        text = f"{value:,.1f}" if size < 1000 else f"{value:,.0f}"
    return text.replace("-", MINUS)


def signed(value: float) -> str:
    """A difference, always with its sign."""
    return ("+" if value >= 0 else "") + shown(float(value))


def share(part: int, whole: int, one: str) -> str:
    """`12 of 40 answers (30%)`."""
    return f"{part:,} of {plural(whole, one)} ({part / whole:.0%})"


def dollars(value: float | None) -> str:
    """Unknown stays unknown; small amounts keep their digits."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 answer`, `2 answers`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
