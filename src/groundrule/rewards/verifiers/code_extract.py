"""Find the program in a reply: a fenced block, never prose."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from groundrule.rewards.replies import answer_text

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<label>[^`\n]*)$")
_PYTHON = {"python", "python3", "py", "py3", "python 3"}


@dataclass(frozen=True)
class _Block:
    label: str
    code: str


def extract_code(reply: str) -> str | None:
    """The last complete block that is labelled as Python, outside the thinking; None where there is none.

    Without such a block the last one without a label counts (a bare block beside a labelled one is mostly sample
    output). A fence ends at a line of at least as many of the same marks and nothing else, so that a fence of four
    may hold one of three; a fence that is never closed was cut off and does not count.
    """
    blocks = _blocks(answer_text(reply).splitlines())
    for wanted in (_PYTHON, {""}):
        for block in reversed(blocks):
            if block.label in wanted:
                return block.code
    return None


def _blocks(lines: list[str]) -> list[_Block]:
    blocks: list[_Block] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if opening is None:
            continue
        end = next((i for i in range(at, len(lines)) if _closes(opening, lines[i])), None)
        if end is None:
            break
        words = opening["label"].strip().lower().strip("{}.").split()
        code = textwrap.dedent("\n".join(lines[at:end])) if opening["indent"] else "\n".join(lines[at:end])
        blocks.append(_Block(words[0] if words else "", code))
        at = end + 1
    return blocks


def _closes(opening: re.Match[str], line: str) -> bool:
    marks = line.strip()
    indent = len(line) - len(line.lstrip())
    mark = opening["marks"][0]
    return (
        set(marks) == {mark} and len(marks) >= len(opening["marks"]) and indent <= len(opening["indent"]) + 3
    )
