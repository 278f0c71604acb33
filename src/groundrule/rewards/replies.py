"""Find the answer in what a model wrote: thinking, fences and prose aside.

One pass over the text. It skips thinking blocks, and picks out every complete JSON object or list that
stands on its own. Linear in the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_DEPTH = 32
"""A verdict is three levels deep; deeper nesting is noise, and no parser is sent into it."""

MAX_UNCLOSED = 100
"""After so many brackets that are never closed the rest is not searched for JSON."""

INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\u00a0"

_TAG_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think"
_OPEN_TAG = rf"<(?P<open>{_TAG_NAMES})>|\[(?P<open_bracket>THINK)\]|<\|channel\|?>(?:analysis|thought)"
_CLOSE_TAG = rf"</(?:{_TAG_NAMES})>|\[/THINK\]|<\|end\|>|<channel\|>"
_JSON_START = r"""\{(?=\s*["'}]|\s*[A-Za-z_]+\s*:)|\[(?=\s*[\[{\]])"""
_LANDMARK = re.compile(
    rf"(?P<opening>{_OPEN_TAG})|(?P<closing>{_CLOSE_TAG})|(?P<json>{_JSON_START})", re.IGNORECASE
)
_CLOSING = re.compile(_CLOSE_TAG, re.IGNORECASE)
_UP_TO_SIGN = re.compile(r"""(?:[^\[\]{}"']++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]{}"'])""", re.DOTALL)
"""Strings in double quotes are passed over whole; where the sign is such a quote, its string is never closed."""
_CLOSER = {"{": "}", "[": "]"}


@dataclass
class Answer:
    """What stands outside the thinking."""

    text: str = ""
    candidates: list[str] = field(default_factory=list)
    """Complete JSON objects and lists, in order."""
    unclosed: list[str] = field(default_factory=list)
    """The first characters of JSON that begins and is never closed."""
    thinking: bool = False


def read_answer(reply: str) -> Answer:
    """Split a reply into its thinking, which is dropped, and its answer.

    A closing tag without an opening one means that everything before it was thinking (chat templates
    often open the block themselves). An opening tag that is never closed leaves no answer after it.
    Tags inside a complete JSON value are text.
    """
    answer = Answer()
    at = kept_until = 0
    pieces: list[str] = []
    while landmark := _LANDMARK.search(reply, at):
        at = landmark.end()
        if landmark["json"]:
            if len(answer.unclosed) >= MAX_UNCLOSED:
                continue
            end = _balanced_end(reply, landmark.start())
            if end is None:
                answer.unclosed.append(reply[landmark.start() : landmark.start() + 40])
            else:
                answer.candidates.append(reply[landmark.start() : end])
                at = end
            continue
        if landmark["closing"]:
            answer, pieces = Answer(thinking=True), []
        else:
            pieces.append(reply[kept_until : landmark.start()])
            answer.thinking = True
            closing = _CLOSING.search(reply, at)
            at = closing.end() if closing else len(reply)
        kept_until = at
    pieces.append(reply[kept_until:])
    answer.text = "".join(pieces).strip(INVISIBLE + " \t\r\n")
    return answer


def answer_text(reply: str) -> str:
    """The reply without its thinking."""
    return read_answer(reply).text


def _balanced_end(text: str, start: int) -> int | None:
    """Where the JSON value that begins at `start` ends; None when its brackets do not match up."""
    expected: list[str] = []
    at = start
    while mark := _UP_TO_SIGN.match(text, at):
        sign, at = mark[1], mark.end()
        if sign in _CLOSER:
            expected.append(_CLOSER[sign])
            if len(expected) > MAX_DEPTH:
                return None
        elif sign in "]}":
            if sign != expected.pop():
                return None
            if not expected:
                return at
        elif sign == '"' or _opens_string(text, at - 1):
            string_end = end_of_string(text, at - 1)
            if string_end is None:
                return None
            at = string_end
    return None


def _opens_string(text: str, at: int) -> bool:
    """A single quote is a string's only where a value or a key may begin; elsewhere it is an apostrophe."""
    while at > 0 and text[at - 1].isspace():
        at -= 1
    return at > 0 and text[at - 1] in "{[,:"


def end_of_string(text: str, start: int) -> int | None:
    """The position behind the string that begins at `start`; None when it is not closed."""
    quote = text[start]
    pattern = _STRING_END[quote]
    at = start + 1
    while mark := pattern.search(text, at):
        if mark[0] == quote:
            return mark.end()
        at = mark.end() + 1
    return None


_STRING_END = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
