"""Make text from the party being graded harmless: it stays readable and cannot pass for anything else.

First what nobody can see is removed: zero-width characters, soft hyphens, byte order marks, controls of
writing direction. Then three kinds of text are changed, each by swapping a bracket for a look-alike: the
boundaries of the judge's prompt, the control tokens of chat templates, and the tags of thinking and tool
calls. Removal comes first, so that no token can be put together from halves with something invisible
between them. Other control characters are shown as escapes; all other text, in any alphabet, stays as it is.

Some invisible characters are part of a script and stay: one joiner after a letter of Arabic, of an Indic or
another joining script, a joiner between emoji, a variation selector after a character that has variants.
Hebrew and Arabic lose their direction marks, which show nowhere in a judge's prompt.
"""

from __future__ import annotations

import re

_JOINING = (
    "\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\u1a00-\u1b7f\ua840-\ua87f\ua8e0-\ua9df\uaa60-\uaadf"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
"""Scripts in which a joiner changes how the letters around it are written."""
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0100-\U000e01ef"
)
_HIDDEN = re.compile(
    rf"(?P<kept>(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])"
    rf"|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])"
    r"|(?<=[#*0-9\u00a9\u00ae\u1000-\u109f\u2000-\U0003ffff])(?<![\ufe00-\ufe0f])[\ufe00-\ufe0f]"
    r"|(?<=[\u3400-\U0003ffff])(?<![\ufe00-\ufe0f])[\U000e0100-\U000e01ef](?![\U000e0100-\U000e01ef])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180f])"
    rf"|[{_INVISIBLE}]"
)
_HARMLESS = re.compile(r"[\t\n -;=-Z\\^-~]*")
"""Without any bracket or character that something below is about, as most texts are."""
_NEWLINE = re.compile("\r\n|[\u2028\u2029]")
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_CONTROLS = re.compile(
    f"(?P<kept>{_FLAG})|["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, except tab and newline
    "\ud800-\udfff"  # halves of a surrogate pair, which UTF-8 cannot carry
    "\U000e0000-\U000e007f]"  # tags, with which text can be hidden
)
_BOUNDARY = re.compile(r"[<＜﹤]{3,}")
_TOKEN = re.compile(
    r"<(?=[|｜][^\s<>|｜]{1,64}(?:[|｜]|>))"  # <|im_start|>, <｜User｜>, <|turn>; not the operators <| and <|>
    r"|<(?=[a-z_]{1,32}\|>)"  # <turn|>
    r"|<(?=/?(?:s|sop|bos|eos|pad|unk|mask|(?:unused|reserved_|extra_id_|SPECIAL_)\d+|BOS_TOKEN|EOS_TOKEN)>)"
    r"|<(?=(?:start|end)_(?:of_)?[a-z_]{1,32}>)"  # Gemma: turns, images, function calls
    r"|<(?=/?(?:think|thinking|thought|reasoning|scratchpad|scratch_pad|reflection)>)"
    r"|<(?=/?(?:seed|minimax|antml):[a-z_]{1,32}\b)"
    r"|<(?=/?(?:tools?|tool_calls?|tool_response|tool_result|function_calls?|function_results?|invoke)\b)"
    r"|<(?=(?:function|parameter)=)|<(?=/(?:function|parameter)>)"
    r"|<(?=fim_[a-z]{1,16}>)"
    r"|<(?=/?trajector(?:y|ies)\b)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|gMASK)\])"
    r"|\[(?=\|/?[a-z_]{1,32}\|\])"  # [|assistant|]
    r"|\[(?=e~\[)|\](?=~!?b[\[\]])",  # MiniMax
    re.IGNORECASE,
)
_TOKEN_IN_CAPITALS = re.compile(
    r"\[(?=/?(?:IMG|IMG_BREAK|IMG_END|ARGS|CALL_ID|PREFIX|MIDDLE|SUFFIX|AUDIO|BEGIN_AUDIO|TRANSCRIBE"
    r"|MODEL_SETTINGS|BOS|EOS|EOT|PAD|UNK)\])"
)
"""Mistral's and Kimi's; in small letters these words are common in usage texts."""


def neutral(text: str) -> str:
    """The text as a judge may safely read it."""
    if _HARMLESS.fullmatch(text):
        return text
    text = _NEWLINE.sub("\n", visible(text))
    text = _CONTROLS.sub(lambda match: match["kept"] or _escape(match[0]), text)
    text = _BOUNDARY.sub(lambda match: "‹" * len(match[0]), text)
    return _TOKEN_IN_CAPITALS.sub(_look_alike, _TOKEN.sub(_look_alike, text))


def neutral_line(text: str) -> str:
    """The same for what stands inside a boundary line."""
    return neutral(text).replace("\n", " ").replace(">>>", "›››")


def visible(text: str) -> str:
    """The text without what cannot be seen."""
    if text.isascii():
        return text
    return _HIDDEN.sub(lambda match: match["kept"] or "", text)


def hidden_spans(text: str) -> list[tuple[int, int]]:
    """Where the text holds what `neutral` removes because nobody can see it."""
    return [match.span() for match in _HIDDEN.finditer(text) if not match["kept"]]


def hidden_characters(text: str) -> int:
    """How many characters that are."""
    return len(hidden_spans(text))


def _look_alike(match: re.Match[str]) -> str:
    return {"<": "‹", "[": "⟦", "]": "⟧"}[match[0]]


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
