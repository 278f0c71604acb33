"""The layouts in which other tools keep preference pairs, brought into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundrule.data.answers import answer_messages, conversation_of, shown
from groundrule.data.messages import Message, canonical, key_of
from groundrule.data.preferences import PreferencePair
from groundrule.errors import DataError

SIDES = ("chosen", "rejected")


def pair_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a `PreferencePair`, from a record with at least `chosen` and `rejected`."""
    said = {side: record[side] for side in SIDES}
    prompt, answers = _split(said) if "prompt" not in record else _strip(record["prompt"], said)
    known = {
        k: v for k, v in record.items() if k in PreferencePair.model_fields and k not in ("prompt", *SIDES)
    }
    sides = {side: _answer(side, answers[side], record) for side in SIDES}
    return {**known, "prompt": prompt, **sides, "metadata": _metadata(record)}


def shared_len(conversations: Sequence[Sequence[Message]]) -> int:
    """With how many messages all of them begin."""
    keys = [[key_of([canonical(m)]) for m in messages] for messages in conversations]
    count = 0
    while all(len(k) > count for k in keys) and len({k[count] for k in keys}) == 1:
        count += 1
    return count


def _split(said: Mapping[str, Any]) -> tuple[list[Message], dict[str, list[Message]]]:
    """Two whole conversations: what they begin with in common, and the rest of each."""
    for side in SIDES:
        if not isinstance(said[side], list):
            raise DataError(
                f"there is no 'prompt', and {shown(said[side])} does not hold one; add 'prompt', or make "
                "'chosen' and 'rejected' lists of messages that begin with it",
                column=side,
            )
    whole = {side: _conversation(side, said[side]) for side in SIDES}
    count = shared_len(list(whole.values()))
    rest = {side: messages[count:] for side, messages in whole.items()}
    if not rest["chosen"] and not rest["rejected"]:
        raise DataError("the rejected conversation is the chosen one; leave the pair out", column="rejected")
    for side in SIDES:
        if not rest[side]:
            raise DataError(
                f"the conversation ends after message {count}, where the other one goes on, and so has no answer "
                "of its own; give the prompt as 'prompt'",
                column=side,
            )
        if rest[side][0]["role"] != "assistant":
            raise DataError(
                f"the prompt of 'chosen' is not that of 'rejected': they part at message {count + 1} "
                f"({shown(rest[side][0])}), which is not the agent's; compare answers to one prompt, or give what "
                "both answer as 'prompt'",
                column=side,
            )
    if count == 0:
        raise DataError(
            "the conversations begin with the answer; give the prompt as 'prompt'", column="chosen"
        )
    return whole["chosen"][:count], rest


def _strip(given: Any, said: Mapping[str, Any]) -> tuple[list[Message], dict[str, Any]]:
    """The prompt, and the answers without it where they repeat it."""
    prompt = _in_column("prompt", conversation_of, given)
    answers: dict[str, Any] = {}
    for side in SIDES:
        if not isinstance(said[side], list):
            answers[side] = said[side]
            continue
        messages = _conversation(side, said[side])
        repeats = shared_len([prompt, messages]) == len(prompt)
        if not repeats and messages[0]["role"] != "assistant":
            raise DataError(
                f"begins with another conversation than 'prompt' ({shown(messages[0])}); write the answer alone, "
                "or leave 'prompt' out and what both sides begin with is taken",
                column=side,
            )
        answers[side] = messages[len(prompt) :] if repeats else messages
    return prompt, answers


def _conversation(side: str, value: Any) -> list[Message]:
    if value == []:
        raise DataError("the answer is empty; write its text, or leave the pair out", column=side)
    return _in_column(side, conversation_of, value)


def _answer(side: str, said: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    name = record.get(f"{side}_id")
    return {"messages": _in_column(side, answer_messages, said), **({} if name is None else {"id": name})}


def _in_column(column: str, check: Any, value: Any) -> list[Message]:
    try:
        messages: list[Message] = check(value)
    except DataError as error:
        raise DataError(error.message, column=column) from error
    return messages


def _metadata(record: Mapping[str, Any]) -> Any:
    """The record's own metadata and every column that has no meaning here."""
    own = record.get("metadata", {})
    known = (*PreferencePair.model_fields, "chosen_id", "rejected_id")
    more = {name: value for name, value in record.items() if name not in known}
    if not isinstance(own, Mapping) or not more:
        return own
    if twice := [name for name in more if name in own]:
        raise DataError("is also a key of 'metadata'; rename one of them", column=twice[0])
    return {**own, **more}
