"""Read a judge's reply: one score per trajectory, matched by id, or an error that says what is wrong.

The wire format is `{"scores": [{"trajectory_id": "1", "explanation": "...", "score": 0.0 to 1.0}, ...]}`.
Beside it these spellings are taken, because none of them can be misread: ids as integers, scores as
strings that are plain decimal numbers ("0.9", not "9e-1", "85%" or "8/10"), a bare list of the score
objects, text and code fences around the JSON, and the slips that `lenient_json` mends. Nothing is padded,
dropped, clamped or rescaled: a reply that leaves any doubt raises `JudgeReplyError`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError, ReplyErrorKind
from groundrule.rewards import lenient_json
from groundrule.rewards.replies import INVISIBLE, Answer, read_answer

_CUT_OFF = {"length", "max_tokens", "model_length"}
_REFUSED = {"content_filter", "refusal", "safety"}
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_NON_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_VERDICT_START = re.compile(r"""\{\s*["']?scores\b""")
_VERDICT_KEY = re.compile(r"""["']?\b(?:scores|trajectory_id)["']?\s*:""")


class TrajectoryScore(BaseModel):
    """What the judge says about one trajectory."""

    trajectory_id: str
    explanation: str = ""
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)


def parse_judge_reply(reply: str, n: int, finish_reason: str = "stop") -> list[TrajectoryScore]:
    """The scores of trajectories "1" to "n", in id order; raises `JudgeReplyError` with a `kind`.

    A reply that was cut at its length limit is `truncated`, however complete it looks. Thinking is
    removed first. Several complete verdicts must agree; a later one that is not complete, or differs,
    makes the reply `ambiguous`.
    """
    _check_finished(finish_reason)
    answer = read_answer(reply)
    if not answer.text:
        raise JudgeReplyError(
            "empty", "the reply holds only thinking" if answer.thinking else "the reply is empty"
        )
    return _settled(_verdicts(answer), n, answer)


def parse_chat_reply(reply: ChatReply, n: int) -> list[TrajectoryScore]:
    """`parse_judge_reply` for a whole reply: its refusal and finish reason count too.

    Reasoning is not an answer, with one exception: some servers file the whole answer under reasoning, so
    reasoning that is nothing but a verdict counts where the content is empty.
    """
    return parse_judge_reply(_answer_of(reply), n)


def reply_object(reply: ChatReply, key: str) -> dict[str, Any]:
    """The one JSON object with `key` in a reply, under the same rules as verdicts; raises `JudgeReplyError`.

    Two such objects must be equal, or the reply is `ambiguous`.
    """
    answer = read_answer(_answer_of(reply))
    found: list[dict[str, Any]] = []
    for candidate in answer.candidates:
        try:
            value = lenient_json.loads(candidate)
        except lenient_json.Repeated as error:
            raise JudgeReplyError("ambiguous", f"{error}: {candidate[:80]!r}") from error
        except ValueError as error:
            raise JudgeReplyError("invalid_json", f"{error}: {candidate[:80]!r}") from error
        if isinstance(value, dict) and key in value:
            found.append(value)
    if not found or answer.unclosed:
        raise JudgeReplyError("invalid_json", f"no complete object with {key!r} in {answer.text[:80]!r}")
    if any(value != found[0] for value in found):
        raise JudgeReplyError("ambiguous", f"{len(found)} objects with {key!r} disagree")
    return found[0]


def reply_text(reply: ChatReply, *, may_be_cut: bool = False) -> str:
    """What a reply says, without its thinking; raises `JudgeReplyError` for one that is cut, refused or empty."""
    if may_be_cut and (reply.finish_reason or "").lower() in _CUT_OFF:
        reply = replace(reply, finish_reason="stop")
    text = read_answer(_answer_of(reply)).text
    if not text:
        raise JudgeReplyError("empty", "the reply holds only thinking")
    return text


def _answer_of(reply: ChatReply) -> str:
    """The text that holds the answer; raises for a reply that was cut, refused or is empty."""
    _check_finished(reply.finish_reason)
    content, refusal = _content_of(reply)
    if refusal or (reply.finish_reason or "").lower() in _REFUSED:
        raise JudgeReplyError("refusal", (refusal or f"finish reason {reply.finish_reason}")[:200])
    if _bare(content):
        return content
    reasoning = _bare(reply.reasoning or "")
    if read_answer(reasoning).candidates == [reasoning]:
        return reasoning
    raise JudgeReplyError("empty", "the reply has no content" + (", only reasoning" if reasoning else ""))


def _content_of(reply: ChatReply) -> tuple[str, str]:
    content: Any = reply.content
    refusal = reply.refusal or ""
    if isinstance(content, list):
        refusals = [str(part.get("refusal") or "") for part in content if isinstance(part, Mapping)]
        refusal = refusal or "".join(refusals)
    return text_of(content), refusal


def _bare(text: str) -> str:
    return text.strip(INVISIBLE + " \t\r\n")


def _check_finished(finish_reason: str | None) -> None:
    if (finish_reason or "").lower() in _CUT_OFF:
        raise JudgeReplyError(
            "truncated", f"the reply was cut off (finish reason {finish_reason}); allow the judge more tokens"
        )


def _verdicts(answer: Answer) -> list[Any]:
    """Everything in the answer that is meant as a verdict, parsed."""
    verdicts: list[Any] = []
    for candidate in answer.candidates:
        try:
            value = lenient_json.loads(candidate)
        except ValueError as error:
            if _VERDICT_KEY.search(candidate):
                kind: ReplyErrorKind = (
                    "ambiguous" if isinstance(error, lenient_json.Repeated) else "invalid_json"
                )
                raise JudgeReplyError(kind, f"{error}: {candidate[:80]!r}") from error
            continue
        is_list = isinstance(value, list) and not answer.unclosed
        if isinstance(value, dict) and "scores" in value:
            verdicts.append(value["scores"])
        elif is_list and value and all(isinstance(item, dict) and "trajectory_id" in item for item in value):
            verdicts.append(value)
        elif candidate == _unfenced(answer.text):
            verdicts.append([])  # The whole answer is JSON, and there are no scores in it.
    return verdicts


def _unfenced(text: str) -> str:
    return re.sub(r"^```[A-Za-z0-9]*\s*|\s*```$", "", text)


def _settled(verdicts: list[Any], n: int, answer: Answer) -> list[TrajectoryScore]:
    """The one set of scores that all verdicts agree on."""
    cut = [start for start in answer.unclosed if _VERDICT_START.match(start)]
    if cut or not verdicts:
        what = f"JSON begins and never ends: {cut[0]!r}" if cut else f"no verdict in {answer.text[:80]!r}"
        raise JudgeReplyError("invalid_json", what)
    read: list[list[TrajectoryScore] | JudgeReplyError] = []
    for verdict in verdicts:
        try:
            read.append(_scores(verdict, n))
        except JudgeReplyError as error:
            read.append(error)
    complete = [scores for scores in read if not isinstance(scores, JudgeReplyError)]
    last = read[-1]
    if isinstance(last, JudgeReplyError):
        if complete:
            raise JudgeReplyError(
                "ambiguous", f"a complete verdict is followed by another that is not: {last}"
            )
        raise last
    if any([s.score for s in scores] != [s.score for s in last] for scores in complete):
        raise JudgeReplyError("ambiguous", f"{len(complete)} complete verdicts disagree")
    return last


def _scores(items: Any, n: int) -> list[TrajectoryScore]:
    if not isinstance(items, list):
        raise JudgeReplyError("wrong_type", f"`scores` is {_shown(items)}, not a list")
    by_id: dict[str, Mapping[str, Any]] = {}
    for item in items:
        if not isinstance(item, dict):
            raise JudgeReplyError("wrong_type", f"`scores` holds {_shown(item)}, not an object")
        name = _id(item)
        if name in by_id:
            raise JudgeReplyError("duplicate_ids", f"trajectory {name} is scored twice", detail=[name])
        by_id[name] = item
    expected = [str(number) for number in range(1, n + 1)]
    _check_ids("unknown_ids", [name for name in by_id if name not in expected], n)
    _check_ids("missing_ids", [name for name in expected if name not in by_id], n)
    return [
        TrajectoryScore(
            trajectory_id=name, explanation=_explanation(by_id[name]), score=_score(by_id[name], name)
        )
        for name in expected
    ]


def _check_ids(kind: ReplyErrorKind, ids: list[str], n: int) -> None:
    if ids:
        verb = "unknown" if kind == "unknown_ids" else "not scored"
        raise JudgeReplyError(
            kind, f"trajectory {', '.join(ids[:20])} {verb}; the ids are 1 to {n}", detail=ids
        )


def _id(item: Mapping[str, Any]) -> str:
    value = item.get("trajectory_id")
    if value is None:
        raise JudgeReplyError("missing_ids", f"a score without a trajectory_id: {_shown(item)}")
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise JudgeReplyError("wrong_type", f"trajectory_id is {_shown(value)}, not a string")
    return str(value).strip()


def _score(item: Mapping[str, Any], name: str) -> float:
    value = item.get("score")
    if value is None:
        raise JudgeReplyError("missing_score", f"trajectory {name} has no score", detail=[name])
    if isinstance(value, str):
        text = value.strip()
        if _NON_FINITE.fullmatch(text):
            raise JudgeReplyError("non_finite", f"the score of trajectory {name} is {text!r}", detail=[name])
        if _DECIMAL.fullmatch(text):
            value = float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise JudgeReplyError(
            "wrong_type", f"the score of trajectory {name} is {_shown(value)}", detail=[name]
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise JudgeReplyError("non_finite", f"the score of trajectory {name} is {value}", detail=[name])
    if not 0 <= value <= 1:
        raise JudgeReplyError(
            "out_of_range", f"the score of trajectory {name} is {value}, not 0 to 1", detail=[name]
        )
    return float(value) + 0.0


def _explanation(item: Mapping[str, Any]) -> str:
    value = item.get("explanation")
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]
