"""Make text from the party being graded harmless: it stays readable and cannot pass for anything else.

Three kinds of text are changed, each by swapping a bracket for a look-alike: the boundaries of the judge's
prompt, the control tokens of chat templates, and thinking tags. Characters that hide or reorder text are
shown as escapes. Everything else, in any alphabet, stays as it is.
"""

from __future__ import annotations

import re

_HIDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and newline
    "\u202a-\u202e\u2066-\u2069"  # reordering
    "\ud800-\udfff"  # halves of a surrogate pair, which UTF-8 cannot carry
    "\U000e0000-\U000e007f]"  # invisible tag characters
)
_BOUNDARY = re.compile(r"<{3,}")
_CONTROL = re.compile(
    r"<(?=[|｜][^\s<>|｜]{1,64}(?:[|｜]|>))"  # <|im_start|> and relatives; not the operators <| and <|>
    r"|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|think|thinking)>)"
    r"|<(?=/?trajector(?:y|ies)\b)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\])",
    re.IGNORECASE,
)


def neutral(text: str) -> str:
    """The text as a judge may safely read it."""
    text = text.replace("\r\n", "\n")
    text = _HIDING.sub(_escape, text)
    text = _BOUNDARY.sub(lambda match: "‹" * len(match[0]), text)
    return _CONTROL.sub(lambda match: "‹" if match[0] == "<" else "⟦", text)


def neutral_line(text: str) -> str:
    """The same for names and ids that stand inside a boundary line."""
    return neutral(text).replace("\n", " ").replace(">>>", "›››")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
