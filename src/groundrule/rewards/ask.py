"""Ask a judge until its reply can be read: cache, re-asks with what was wrong, then the next judge.

Used by every scorer that talks to a chat model. What each attempt cost is in the ledger in any case; only
replies that were read without an error enter the cache.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from groundrule.data.messages import Message, text_of
from groundrule.data.protocols import ChatReply, ChatRequest, Usage
from groundrule.data.score import total_cost
from groundrule.errors import BudgetError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm.cache import ReplyCache, cache_key
from groundrule.llm.cost import current_ledger
from groundrule.llm.metered import call_of
from groundrule.rewards.judges import Judge
from groundrule.rewards.replies import answer_text

T = TypeVar("T")
logger = logging.getLogger(__name__)

_HOPELESS = {"refusal", "prompt_truncated"}
"""Asking the same judge again would not change these."""

_RUNS = re.compile(r"(.)\1{3,}", re.DOTALL)
_SMALLEST_CONTEXT = 1_500
_FEWEST_REPLY_TOKENS = 32
_SHOWN_AGAIN = 4_000


@dataclass(frozen=True)
class Reading(Generic[T]):
    """A reply that could be read, and what it took."""

    value: T
    reply: ChatReply
    cost_usd: float | None


async def ask(
    judges: Sequence[Judge],
    messages: Callable[[Judge], list[Message]],
    read: Callable[[ChatReply], T],
    *,
    purpose: str,
    cache: ReplyCache | bool | None = None,
    key_parts: Mapping[str, Any] | None = None,
    max_reasks: int = 1,
) -> Reading[T]:
    """The first readable answer. `read` raises `JudgeReplyError` for one that is not.

    With a single judge its own error is raised; with several, a `JudgeError` that names each.
    """
    failures: list[tuple[Judge, JudgeError | LlmError]] = []
    for judge in judges:
        try:
            kept_in = judge.cache(cache)
            return await _ask_cached(
                judge, messages(judge), read, purpose, kept_in, key_parts or {}, max_reasks
            )
        except BudgetError:
            raise
        except (JudgeError, LlmError) as error:
            logger.warning("judge %s: %s", judge.model, error)
            failures.append((judge, error))
    if len(failures) == 1 and isinstance(failures[0][1], JudgeError):
        raise failures[0][1]
    reasons = "; then ".join(f"{judge.model}: {error}" for judge, error in failures)
    raise JudgeError(f"no judge gave scores: {reasons}") from failures[-1][1]


async def _ask_cached(
    judge: Judge,
    messages: list[Message],
    read: Callable[[ChatReply], T],
    purpose: str,
    cache: ReplyCache | None,
    key_parts: Mapping[str, Any],
    max_reasks: int,
) -> Reading[T]:
    if cache is None:
        return await _ask_until_read(judge, messages, read, purpose, max_reasks)
    key = cache_key(
        **key_parts, endpoint=judge.endpoint, model=judge.model, params=dict(judge.params), messages=messages
    )
    async with cache.flight(key):
        if (stored := cache.get(key)) is not None:
            reply = _kept_reply(stored)
            try:
                answer = Reading(read(reply), reply, 0.0)
            except JudgeReplyError:
                pass  # Written by another version of the reader; ask again.
            else:
                current_ledger().record(call_of(judge.model, purpose, reply))
                return answer
        fresh = await _ask_until_read(judge, messages, read, purpose, max_reasks)
        kept = {**vars(fresh.reply), "usage": vars(fresh.reply.usage)}
        cache.put(key, {name: value for name, value in kept.items() if name not in ("cost_usd", "cached")})
        return fresh


async def _ask_until_read(
    judge: Judge, messages: list[Message], read: Callable[[ChatReply], T], purpose: str, max_reasks: int
) -> Reading[T]:
    conversation = list(messages)
    costs: list[float | None] = []
    for attempt in range(max_reasks + 1):
        request = ChatRequest(
            model=judge.model, messages=tuple(conversation), params=dict(judge.params), purpose=purpose
        )
        reply = await judge.client.complete(request)
        costs.append(reply.cost_usd)
        try:
            check_prompt_arrived(conversation, reply, judge.context_tokens)
            return Reading(read(reply), reply, total_cost(costs))
        except JudgeReplyError as error:
            if attempt == max_reasks or error.kind in _HOPELESS:
                raise
            logger.info("judge %s: %s; asking again", judge.model, error)
            conversation = [*messages, *_objection(reply, error)]
    raise AssertionError("unreachable")


def _kept_reply(stored: Mapping[str, Any]) -> ChatReply:
    """The reply as it was; JSON has lists where it has tuples."""
    tokens = stored.get("top_logprobs") or ()
    fields = {
        **stored,
        "usage": Usage(**stored["usage"]),
        "top_logprobs": tuple(tuple((text, p) for text, p in likeliest) for likeliest in tokens),
    }
    return ChatReply(**fields, cost_usd=0.0, cached=True)


def _objection(reply: ChatReply, error: JudgeReplyError) -> list[Message]:
    """Show the judge its reply and what was wrong with it."""
    said = answer_text(text_of(reply.content))[:_SHOWN_AGAIN]
    shorter = " Keep the explanations short." if error.kind == "truncated" else ""
    objection: Message = {
        "role": "user",
        "content": f"That reply could not be used: {str(error)[:500]}. Answer again with the complete JSON "
        f"object in the format of your instructions, and nothing else.{shorter}",
    }
    return [{"role": "assistant", "content": said}, objection] if said else [objection]


def check_prompt_arrived(messages: Sequence[Message], reply: ChatReply, context: int | None = None) -> None:
    """Refuse a reply to a prompt that the server cut.

    It was cut where the server counted far fewer tokens than were sent, or as many as fill the whole `context`
    with no room for a reply. Prompts that fit any server's default context are not checked. What slips
    through: a cut of less than half where the context is not known, and servers that count nothing.
    """
    counted = reply.usage.prompt_tokens
    if counted is None or _most_tokens(_all_text(messages)) < _SMALLEST_CONTEXT:
        return
    sent = estimated_tokens(messages)
    if sent < _SMALLEST_CONTEXT:
        return
    if context is not None and counted >= context - _FEWEST_REPLY_TOKENS:
        raise JudgeReplyError(
            "prompt_truncated",
            f"the prompt fills the context of {context} tokens, so its beginning was probably cut; raise the "
            "server's context length (num_ctx, --max-model-len) and say so with context_tokens, or judge fewer or "
            "shorter trajectories",
        )
    counted += reply.usage.cached_tokens or 0  # Some endpoints leave cached tokens out of the count.
    if counted < sent / 2:
        raise JudgeReplyError(
            "prompt_truncated",
            f"the server counted {counted} prompt tokens where about {sent} were sent, so it cut the prompt; "
            "raise its context length (num_ctx, --max-model-len), or judge fewer or shorter trajectories",
        )


def estimated_tokens(messages: Sequence[Message]) -> int:
    """A cautious guess without a tokenizer: 4 ASCII characters a token, other characters 0.6 tokens each."""
    return _most_tokens(_RUNS.sub(r"\1\1\1\1", _all_text(messages)))


def _all_text(messages: Sequence[Message]) -> str:
    return "".join(text_of(message.get("content")) for message in messages)


def _most_tokens(text: str) -> int:
    """The same guess for a text in which runs of one character are not shortened."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return int(ascii_count / 4 + (len(text) - ascii_count) * 0.6)
