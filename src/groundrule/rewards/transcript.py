"""Write a group down for a judge: the spec, what the attempts share once, then each attempt in its own block.

Every boundary is a line `<<<CODE NAME>>>` where CODE is made from the seed and the content it encloses.
No text can hold a code that depends on that text, and three brackets in a row never survive in text, so
nothing an agent or a tool writes can close its block or open another. A section ends where the next
boundary stands; only further conversations and the whole are closed by a line of their own. The text that
directly follows a trajectory's number is the agent's: every line less is paid for with each group.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.messages import Tools, text_of
from groundrule.rewards.attempt import (
    Attempt,
    Turn,
    evidence_keys,
    shared_len,
    shared_system_len,
    turn_key,
)
from groundrule.rewards.elision import Shortened, first_text, is_elided
from groundrule.rewards.page import Page, name_of, quoted

_ROLES = {"assistant": "AGENT", "user": "USER", "system": "SYSTEM", "developer": "SYSTEM"}
_CUTS = {
    "length": "CUT OFF: this reply reached its length limit",
    "content_filter": "CUT OFF: a content filter stopped this reply",
}
_CODE_LETTERS = 4
_LEAST_OPENING = 200
"""Characters; to show less than that once is not worth the boundary lines."""
_LAST_WORD = 80
"""A shared opening is cut back to the end of a line or word if one ends within so many characters."""


@dataclass(frozen=True)
class Transcript:
    """The judge's reading matter: text, or text and image parts."""

    content: str | list[dict[str, Any]]
    code: str
    """What marks the true boundaries of this transcript."""
    prefix_len: int
    """How many opening messages were shown once for all."""
    opening: str = ""
    """The text shown once with which the first differing message of all attempts begins."""


def render(
    attempts: Sequence[Attempt],
    *,
    seed: int = 0,
    show_images: bool = False,
    names: Sequence[str] | None = None,
    given: int | None = None,
) -> Transcript:
    """The attempts as evidence in the order given, numbered from 1 (#1, #2, ...) unless they have names.

    `given` is how many opening turns are shown once; None: all that the attempts share. A single attempt shares
    everything with itself, so there it has to be said.
    """
    system_len = shared_system_len(attempts)
    prefix_len = max(shared_len(attempts) if given is None else given, system_len)
    opening = shared_opening(attempts, prefix_len)
    page = Page(code=boundary_code(attempts, seed), show_images=show_images)
    page.mark("SPEC")
    page.text(_spec(attempts, system_len))
    same_tools = _have_same_tools(attempts)
    if same_tools and attempts:
        _write_tools(page, attempts[0].tools)
    if prefix_len > system_len or opening:
        page.mark("SHARED")
        _write_turns(page, attempts[0].turns[system_len:prefix_len])
    if opening:
        page.mark(
            f"{_heading(attempts[0].turns[prefix_len])}: so the next message of all trajectories begins"
        )
        page.text(opening)
    headings = names or [f"#{number}" for number in range(1, len(attempts) + 1)]
    for heading, attempt in zip(headings, attempts, strict=True):
        page.mark(heading)
        if not same_tools:
            _write_tools(page, attempt.tools)
        _write_histories(page, attempt)
        is_nested = bool(attempt.histories) or not same_tools
        _write_own_turns(page, attempt.turns[prefix_len:], opening, is_nested=is_nested)
    page.mark("END")
    return Transcript(page.content(), page.code, prefix_len, opening)


def _have_same_tools(attempts: Sequence[Attempt]) -> bool:
    different = [a.tools for a in attempts if a.tools is not attempts[0].tools]
    return all(turn_key(tools) == turn_key(attempts[0].tools) for tools in different)


def shared_opening(attempts: Sequence[Attempt], prefix_len: int) -> str:
    """What the first differing messages of all attempts have in common at their beginning.

    It ends with a line or a word where one is near, never inside a combined character. "" where it is
    short, or where the messages are not of one kind.
    """
    firsts = [attempt.turns[prefix_len] for attempt in attempts if len(attempt.turns) > prefix_len]
    texts = [text for turn in firsts if (text := first_text(turn["content"])) is not None]
    alike = len({_heading(turn) for turn in firsts}) == 1 and not any(
        turn.get("reasoning") for turn in firsts
    )
    if len(attempts) < 2 or len(texts) < len(attempts) or not alike:
        return ""
    shared = _common_beginning(texts)
    opening = shared[: _end_of_word(shared, [text[len(shared) :] for text in texts])]
    return opening if len(opening) >= _LEAST_OPENING else ""


def boundary_code(attempts: Sequence[Attempt], seed: int) -> str:
    """Four letters that no text here contains; letters cost a judge's tokenizer half of what hex digits do.

    The shared system prompt does not enter, so that another system prompt changes the spec section of a
    prompt and nothing else.
    """
    whole = "".join(attempt.key for attempt in attempts).casefold()
    evidence = evidence_keys(attempts)
    for draw in range(1_000):
        number, code = derive("boundary", seed, evidence, draw), ""
        for _ in range(_CODE_LETTERS):
            number, letter = divmod(number, 26)
            code += chr(ord("a") + letter)
        if code not in whole:
            return code
    raise AssertionError("unreachable: a thousand derived codes all occur in one text")


def rendered_turns(turns: Sequence[Turn]) -> str:
    """Turns as they stand in a transcript, for measuring their length."""
    page = Page(code="x" * _CODE_LETTERS)
    _write_turns(page, turns)
    return str(page.content())


def _spec(attempts: Sequence[Attempt], system_len: int) -> str:
    if system_len:
        return "\n\n".join(text_of(turn["content"]) for turn in attempts[0].turns[:system_len])
    if any(attempt.system for attempt in attempts):
        return (
            "(The trajectories were given different system prompts. Each block below opens with its own "
            "SYSTEM message: grade that trajectory by it.)"
        )
    return "(The agent had no system prompt. Grade by what the user asked for.)"


def _write_tools(page: Page, tools: Tools | None) -> None:
    if tools:
        page.mark("TOOLS")
        for tool in tools:
            page.text(json.dumps(tool.get("function", tool), ensure_ascii=False))


def _write_histories(page: Page, attempt: Attempt) -> None:
    for index, history in enumerate(attempt.histories, start=1):
        page.mark(f"FURTHER CONVERSATION {index}")
        _write_turns(page, history)
        page.mark(f"END FURTHER CONVERSATION {index}")


def _write_own_turns(page: Page, turns: Sequence[Turn], opening: str, *, is_nested: bool) -> None:
    """The turns of one attempt, the first without the opening that was shown before."""
    if turns and not opening and not is_nested and _is_plain_speech(turns[0]):
        _write_body(page, turns[0])
        turns = turns[1:]
        _write_turns(page, turns)
        return
    if opening:
        first = {**turns[0], "content": _without(opening, turns[0]["content"])}
        page.mark(f"{_heading(first)} continued")
        _write_body(page, first)
        turns = turns[1:]
        if not (turns or first["content"] or first["calls"] or first.get("refusal")):
            page.mark("ENDS HERE: nothing follows the shared beginning")
    elif not turns:
        page.mark("ENDS HERE: nothing follows the shared beginning")
    _write_turns(page, turns)


def _is_plain_speech(turn: Turn) -> bool:
    """An agent's text, with nothing before it that would need a line of its own."""
    bare = turn["role"] == "assistant" and isinstance(turn["content"], str) and turn["content"]
    return bool(bare) and not (turn.get("name") or turn.get("reasoning") or is_elided(turn))


def _write_turns(page: Page, turns: Sequence[Turn]) -> None:
    for turn in turns:
        if is_elided(turn):
            page.elision(turn["content"])
            continue
        said = turn["content"] or turn.get("refusal") or turn.get("reasoning")
        if said or turn.get("name") or not turn["calls"]:
            page.mark(_heading(turn))
        _write_body(page, turn)
        if not (said or turn["calls"]):
            page.mark("EMPTY: no text")


def _write_body(page: Page, turn: Turn) -> None:
    if turn.get("reasoning"):
        page.mark("REASONING, not shown to the user")
        page.text(turn["reasoning"])
        page.mark("END REASONING")
    _write_content(page, turn["content"])
    if turn.get("refusal"):
        page.mark("REFUSED")
        page.text(turn["refusal"])
    for call in turn["calls"]:
        arguments = call["arguments"]
        is_text = isinstance(arguments, str) and arguments
        page.mark(
            f"CALL {name_of(call['name'])}#{call['number']}{', with no JSON object' if is_text else ''}"
        )
        page.text(arguments_text(arguments))
    if turn.get("cut"):
        page.mark(_CUTS[turn["cut"]])


def arguments_text(arguments: Any) -> str | Shortened:
    """The arguments of a call as they are shown; "" where there are none."""
    if isinstance(arguments, str | Shortened):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _write_content(page: Page, content: Any) -> None:
    if isinstance(content, str | Shortened):
        page.text(content)
        return
    for part in content if isinstance(content, list) else [content] if content else []:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("image_url", "input_image"):
            page.image(part)
        elif text := text_of([part]):
            page.text(text)
        elif kind != "refusal":
            page.file(part)


def _heading(turn: Turn) -> str:
    if turn["role"] == "tool":
        return f"RESULT {name_of(turn['name'])}#{turn['answers'] or '?'}"
    # An unknown role is quoted: as a bare word it could name a section of ours.
    role = _ROLES.get(turn["role"]) or f"ROLE {quoted(turn['role'])}"
    return f"{role} {quoted(turn['name'])}" if turn.get("name") else role


def _without(opening: str, content: Any) -> Any:
    if isinstance(content, Shortened):
        return replace(content, head=content.head[len(opening) :])
    return content[len(opening) :]


def _common_beginning(texts: Sequence[str]) -> str:
    # What the first and the last in order share, all between them share too.
    first, last = min(texts), max(texts)
    pairs = zip(first, last, strict=False)
    return first[: next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))]


def _end_of_word(shared: str, rests: Sequence[str]) -> int:
    """Where to cut a shared text that goes on differently."""
    if all(not rest or rest[0].isspace() for rest in rests):
        return len(shared)
    for end in (shared.rfind("\n") + 1, max(shared.rfind(" "), shared.rfind("\n")) + 1):
        if len(shared) - end <= _LAST_WORD:
            return end
    end = len(shared)
    following = [rest[0] for rest in rests if rest]
    while end and (_joins(shared[end - 1 : end], before=False) or any(_joins(c) for c in following)):
        end -= 1
        following = [shared[end]]
    return end


def _joins(character: str, *, before: bool = True) -> bool:
    """True for what belongs to the character before it; with `before=False` for what joins two."""
    category = unicodedata.category(character)
    return category == "Cf" or (before and category in ("Mn", "Mc", "Me", "Sk"))
