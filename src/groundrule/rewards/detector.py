"""Find text in an attempt that speaks to the grader instead of doing the task.

It only reports. Forged boundaries are harmless already (see `neutral`), the judge is told that a plea to it
is a violation, and what else follows is the scorer's to decide. The patterns are in `pleas`; here a text is
brought into the forms in which it is searched: without invisible characters, with look-alike letters
folded, with runs written right to left turned round, and with base64 and hex decoded.

What it cannot do: it knows no other codings (rot13, base32), no other languages than those of the table, and
no plea that is free of the usual words. It is a smoke alarm, not a wall.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from groundrule.data.messages import text_of
from groundrule.rewards.attempt import Attempt, Turn
from groundrule.rewards.neutral import hidden_spans
from groundrule.rewards.pleas import Plea, PleaKind, possible_pleas

_LONGEST_SHOWN = 160
_DEPTH = 2
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_CODED = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![\w+/-])")
_OVERRIDE = re.compile("[\u202d\u202e]([^\u202c\u202d\u202e\n]{8,})")
_LOOK_ALIKES = {
    ord(pair[0]): pair[1]
    for pair in (
        "аa еe оo рp сc уy хx іi јj ѕs һh ԁd ԛq ԝw АA ВB ЕE ІI ЈJ КK МM НH ОO РP СC ЅS ТT УY ХX ԌG "
        "αa οo νv ρp υu ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ɑa ɡg ıi"
    ).split()
}
"""Cyrillic, Greek and phonetic letters that look like Latin ones."""


@dataclass(frozen=True)
class Finding:
    """A place where a text speaks to the grader."""

    span: tuple[int, int]
    """Where in the text that was searched; for decoded text, where its coded form stands."""
    kind: PleaKind
    why: str
    text: str
    """What was found as a reader would see it: decoded, folded, at most 160 characters."""
    where: str = ""
    """Which part of an attempt was searched."""


def addresses_grader(text: str) -> list[Finding]:
    """What in the text speaks to a grader, in order; of overlapping findings of a kind only the first."""
    return _first_of_each(_search(text, _DEPTH))


def _first_of_each(found: list[Finding]) -> list[Finding]:
    if not found:
        return []
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda finding: finding.span):
        if not any(before.kind == finding.kind and before.span[1] > finding.span[0] for before in kept):
            kept.append(finding)
    return kept


def findings_of(attempt: Attempt, start: int = 0) -> list[Finding]:
    """The same for all that the agent and its tools wrote in an attempt.

    `start` is how many opening turns the whole group shares; they are not searched, nor is what a user wrote
    (but the names that turns carry are).
    """
    return findings_of_each([attempt], start)[0]


def findings_of_each(attempts: Sequence[Attempt], start: int = 0) -> list[list[Finding]]:
    """The same for all attempts of a group. What none of them can have is looked for only once."""
    texts = [[place for place in _places(attempt, start) if place[1]] for attempt in attempts]
    ascii_texts = [text for places in texts for _, text in places if text.isascii()]
    among = possible_pleas("\n".join(ascii_texts))
    return [
        [
            replace(finding, where=where)
            for where, text in places
            for finding in _first_of_each(_search(text, _DEPTH, among if text.isascii() else None))
        ]
        for places in texts
    ]


def _places(attempt: Attempt, start: int) -> Iterator[tuple[str, str]]:
    """Each text of an attempt that is searched, and where it stands."""
    conversations = [("", attempt.turns[start:], start)]
    conversations += [(f"conversation {i}, ", turns, 0) for i, turns in enumerate(attempt.histories, start=1)]
    for prefix, turns, first in conversations:
        for number, turn in enumerate(turns, start=first + 1):
            for part, text in _texts(turn):
                yield f"{prefix}turn {number}, {part}", text


def _texts(turn: Turn) -> Iterator[tuple[str, str]]:
    """What is shown of a turn and was not written by the user."""
    if turn.get("name"):
        yield "name", _spaced(turn["name"])
    if turn["role"] in ("user", "system", "developer"):
        return
    content = turn["content"]
    yield "content", text_of(content)
    for part in content if isinstance(content, list) else []:
        if isinstance(part, dict) and not text_of([part]):
            yield "part", " ".join(str(value)[:200] for value in (part.get("type"), part.get("image_url")))
    for key in ("reasoning", "refusal"):
        yield key, str(turn.get(key) or "")
    for call in turn["calls"]:
        arguments = call["arguments"]
        said = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        yield "call", _spaced(call["name"])
        yield f"arguments of {call['name'][:64]}", said


def _spaced(name: str) -> str:
    return str(name).replace("_", " ")


def _search(text: str, depth: int, among: Sequence[Plea] | None = None) -> list[Finding]:
    if not text:
        return []
    found: list[Finding] = []
    for form in _forms(text):
        for plea in possible_pleas(form.text, among):
            for match in plea.matches(form.text):
                said = " ".join(match[0].split())[:_LONGEST_SHOWN]
                found.append(Finding(form.span(*match.span()), plea.kind, plea.why, said))
    for span, decoded in _decoded(text) if depth else ():
        inner = _search(decoded, depth - 1)
        found.extend(replace(f, span=span, why=f"{f.why} (encoded)") for f in inner)
    return found


@dataclass(frozen=True)
class _Form:
    """A text made readable, and where each of its characters comes from; None: from the same place."""

    text: str
    origins: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        if self.origins is None:
            return start, end
        places = self.origins[start:end]
        return min(places), max(places) + 1


def _forms(text: str) -> Iterator[_Form]:
    if text.isascii():
        yield _Form(text)
        return
    folded = _folded(text)
    yield folded
    latin = folded.text.translate(_LOOK_ALIKES)
    if latin != folded.text:
        yield _Form(latin, folded.origins)
    for match in _OVERRIDE.finditer(text):
        places = range(match.end(1) - 1, match.start(1) - 1, -1)
        yield _Form("".join(text[at] for at in places), places)


def _folded(text: str) -> _Form:
    """Without invisible characters, tag characters as the ASCII they stand for, each character in its plain form."""
    characters: list[str] = []
    origins: list[int] = []
    hidden = {at for span in hidden_spans(text) for at in range(*span)}
    for at, character in enumerate(text):
        if at in hidden:
            continue
        if "\U000e0020" <= character <= "\U000e007e":
            plain = chr(ord(character) - 0xE0000)
        else:
            plain = character if character < "\x80" else unicodedata.normalize("NFKC", character)
        characters.extend(plain)
        origins.extend([at] * len(plain))
    return _Form("".join(characters), origins)


def _decoded(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """What base64 and hex in the text say, where they say text."""
    for match in _CODED.finditer(text):
        coded = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = (
                bytes.fromhex(coded)
                if _HEX.fullmatch(coded)
                else base64.b64decode(coded + "=" * (-len(coded) % 4))
            )
            decoded = plain.decode("utf-8")
        except (binascii.Error, ValueError):
            continue
        if all(character.isprintable() or character.isspace() for character in decoded):
            yield match.span(), decoded
