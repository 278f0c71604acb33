"""Read a judge that answers with one of a few labels, such as CORRECT / INCORRECT."""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundrule.errors import JudgeReplyError
from groundrule.rewards.replies import answer_text

_MARKER = re.compile(r"\bverdict\b[\s*_`\"']*[:=]", re.IGNORECASE)
_DECORATION = " \t\r\n*_`\"'[](){}<>#"


def parse_verdict(text: str, labels: Sequence[str]) -> str:
    """The label that the reply settles on, spelt as in `labels`.

    Labels count as whole words only. The word after the last "Verdict:" decides, in any case; without
    such a marker exactly one of the labels may occur, spelt exactly. Anything else raises `JudgeReplyError`.
    """
    answer = answer_text(text)
    if not answer.strip():
        raise JudgeReplyError("empty", "the reply holds no answer")
    markers = list(_MARKER.finditer(answer))
    if markers:
        rest = answer[markers[-1].end() :].lstrip(_DECORATION)
        found = [label for label in labels if _word(label, re.IGNORECASE).match(rest)]
        where = f"after the last 'Verdict:' stands {rest[:40]!r}"
    else:
        found = [label for label in labels if _word(label).search(answer)]
        where = f"the reply names {', '.join(found) or 'none of the labels'}"
    # The longest wins where one label begins another ("A" and "A+").
    found = [
        label for label in found if not any(other != label and other.startswith(label) for other in found)
    ]
    if len(found) == 1:
        return found[0]
    raise JudgeReplyError(
        "ambiguous" if found or markers else "invalid_json", f"{where}; expected one of {list(labels)}"
    )


def _word(label: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(label)}(?![\w-])", flags)
