"""From a system prompt to its demands: asked of a judge once, and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from groundrule.data.messages import Message
from groundrule.data.protocols import ChatClient, ChatReply
from groundrule.errors import ConfigError, JudgeReplyError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.ask import ask
from groundrule.rewards.checklist.criteria import Checklist, fault_of, hash_of
from groundrule.rewards.judges import Fallback, Judge, judge_chain
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt_files import prompt_text, prompt_version

T = TypeVar("T")


async def extract_checklist(
    spec: str,
    judge_model: JudgeLike = "openai/o3",
    extra_litellm_params: Mapping[str, Any] | None = None,
    *,
    client: ChatClient | None = None,
    cache: ReplyCache | bool | None = None,
    fallback: Fallback = None,
) -> Checklist:
    """The demands of a system prompt, as a judge reads them: look at them before you train on them.

    Raises `ConfigError` for an empty spec or a judge that is no chat model, `JudgeError` when the judge gives
    no usable list.
    """
    judges = reading_judges(
        judge_model, extra_litellm_params, client=client, fallback=fallback, to="make a checklist"
    )
    return await list_demands(spec, judges, cache=cache)


def reading_judges(
    judge_model: JudgeLike,
    extra_litellm_params: Mapping[str, Any] | None,
    *,
    client: ChatClient | None = None,
    fallback: Fallback = None,
    to: str,
) -> list[Judge]:
    """The chat models among the judges that are named; raises `ConfigError` where there are none to do it."""
    chain = judge_chain(judge_model, extra_litellm_params, client=client, fallback=fallback)
    judges = [judge for judge in chain if isinstance(judge, Judge)]
    if not judges:
        raise ConfigError(f"{judge_model!r} does not read instructions; name a chat model to {to}")
    return judges


async def list_demands(
    spec: str, judges: Sequence[Judge], *, cache: ReplyCache | bool | None = None
) -> Checklist:
    """The same with judges that are ready to be asked."""
    if not spec.strip():
        raise ConfigError("the system prompt is empty, so there are no demands to list")
    return await extracted(
        neutral(spec),
        judges,
        lambda reply: read_checklist(reply, spec),
        kind="checklist",
        prompt="checklist_extract.md",
        cache=cache,
    )


async def extracted(
    text: str,
    judges: Sequence[Judge],
    read: Callable[[ChatReply], T],
    *,
    kind: str,
    prompt: str,
    cache: ReplyCache | bool | None = None,
) -> T:
    """What a judge makes of a text, which is already harmless, by one of the library's prompts."""
    messages: list[Message] = [
        {"role": "system", "content": prompt_text(prompt)},
        {"role": "user", "content": text},
    ]
    reading = await ask(
        judges,
        lambda judge: messages,
        read,
        purpose=f"judge/{kind}",
        cache=cache,
        key_parts={"kind": kind, "prompt": prompt_version(prompt)},
    )
    return reading.value


def read_checklist(reply: ChatReply, spec: str) -> Checklist:
    """The checklist in a reply; raises `JudgeReplyError`."""
    data = reply_object(reply, "criteria")
    try:
        return Checklist.model_validate({"criteria": data["criteria"], "spec_sha256": hash_of(spec)})
    except ValidationError as error:
        raise JudgeReplyError("wrong_type", fault_of(error)) from error
