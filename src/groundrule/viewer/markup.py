"""HTML that is escaped unless it was made here.

`tag("p", text)` escapes `text`; only what `tag` or `trusted` returned goes in as it is.
"""

from __future__ import annotations

import html
from collections.abc import Iterable


class Html(str):
    """Text that is safe to put into a page."""

    __slots__ = ()


Child = str | None | Iterable["str | None"]
Attribute = str | int | float | bool | None


def tag(name: str, *children: Child, **attributes: Attribute) -> Html:
    """An element. `class_` is `class`, other underscores become hyphens; None and False are left out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Children one after the other."""
    return Html("".join(_child(child) for child in children))


def trusted(text: str) -> Html:
    """Text that is HTML already and comes from this package."""
    return Html(text)


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    return html.escape(child, quote=False) if isinstance(child, str) else join(child)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def details(summary: Child, *children: Child, class_: str | None = None, open_: bool = False) -> Html:
    """A part that opens on a click."""
    return tag("details", tag("summary", summary), *children, class_=class_, open=open_)


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], *, class_: str | None = None) -> Html:
    """A table whose first column names the row. It scrolls by itself on a narrow screen."""
    top = tag("tr", [tag("th", cell, scope="col") for cell in head])
    body = [_row(list(row)) for row in rows]
    return tag("div", tag("table", tag("thead", top), tag("tbody", body), class_=class_), class_="scroll")


def _row(cells: list[Child]) -> Html:
    return tag("tr", tag("th", cells[0], scope="row"), [tag("td", cell) for cell in cells[1:]])
