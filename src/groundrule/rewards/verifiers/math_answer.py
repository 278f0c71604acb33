"""Find the final answer in a reply to a mathematical question.

Only the last box outside the thinking counts, and only when its braces close: an earlier box was retracted, and
a box that was cut off says nothing. Nothing is joined, and no number is fished out of the prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from groundrule.rewards.replies import answer_text
from groundrule.rewards.verifiers.math_brackets import closing_brace

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*(?=\{)")
_ANNOUNCED = re.compile(
    r"answer(?:\s+to\b[^\n.:]{0,80})?(?:\*\*)?\s*(?:is\s*:?|:|=)(?:\*\*)?\s*|####[ \t]*", re.IGNORECASE
)
_FORMULA = re.compile(
    r"\$\$(.{1,500}?)\$\$|\\\[(.{1,500}?)\\\]|\\\((.{1,500}?)\\\)|(?<![\\$])\$([^$\n]{1,500})\$", re.DOTALL
)
_SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z]|\s*$)")
_BARE = re.compile(r"[-+]?[\d\\({\[$][^\n]*|[a-zA-Z]\w*\s*=[^\n]*")


@dataclass(frozen=True)
class Found:
    """The final answer as it was written, or why there is none."""

    text: str | None
    problem: str = ""
    boxed: bool = False


def find_answer(reply: str, *, allow_unboxed: bool = False) -> Found:
    """The content of the last box of a reply; if there is no box and it is allowed, what was stated last."""
    said = answer_text(reply)
    boxed = _last_box(said)
    if boxed is not None:
        return boxed
    if not allow_unboxed:
        return Found(None, "no \\boxed{} outside the thinking")
    stated = _last_stated(said)
    return Found(stated) if stated else Found(None, "no box, and no final answer is stated")


def _last_box(text: str) -> Found | None:
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    start = boxes[-1].end()
    end = closing_brace(text, start)
    if end is None:
        return Found(None, "the last \\boxed{ is never closed")
    content = text[start + 1 : end].strip()
    return Found(content, boxed=True) if content else Found(None, "the last \\boxed{} is empty")


def _last_stated(text: str) -> str | None:
    """After "the answer is", "Answer:" or "####"; else the last formula, or a last line that begins as one."""
    announced = list(_ANNOUNCED.finditer(text))
    if announced:
        return _trimmed(text[announced[-1].end() :].partition("\n")[0])
    lines = [line.strip(" *\t") for line in text.splitlines() if line.strip(" *\t")]
    if not lines:
        return None
    if _BARE.fullmatch(lines[-1]) and not re.search(r"[A-Za-z]{3,} [A-Za-z]{2,} ", lines[-1]):
        return _trimmed(lines[-1])
    formulas = list(_FORMULA.finditer(text))
    return next((group for group in formulas[-1].groups() if group), None) if formulas else None


def _trimmed(said: str) -> str | None:
    """One sentence without emphasis; of a sentence with formulas the only formula."""
    said = said.strip().strip("*").strip()
    formulas = list(_FORMULA.finditer(said))
    if len(formulas) == 1 and said.startswith(formulas[0][0]):
        rest = said[formulas[0].end() :].strip(" .*")
        inner = next(group for group in formulas[0].groups() if group)
        return inner if not rest or not re.match(r"[\w\\%]", rest) else f"{inner} {rest}"
    end = _SENTENCE_END.search(said)
    return (said[: end.start()] if end else said).strip(" *") or None
