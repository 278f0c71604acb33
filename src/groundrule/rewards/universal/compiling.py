"""From a spec and a task to a rubric: asked of a strong judge once, linted, and then frozen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from groundrule.data.protocols import ChatClient, ChatReply
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError, JudgeReplyError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.checklist.criteria import fault_of, hash_of
from groundrule.rewards.checklist.extract import extracted, reading_judges
from groundrule.rewards.judges import Fallback
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_object
from groundrule.rewards.universal.rubric import Rubric

_FILE = "universal_rubric.md"
_MAY_CHECK = ("exact", "regex")
"""What a judge may choose; a name from its reply must never import a file."""


async def compile_rubric(
    spec: str,
    judge_model: JudgeLike = "openai/o3",
    extra_litellm_params: Mapping[str, Any] | None = None,
    *,
    scenario: Scenario | str | None = None,
    client: ChatClient | None = None,
    cache: ReplyCache | bool | None = None,
    fallback: Fallback = None,
) -> Rubric:
    """The criteria of a spec for one task (or for all, without a scenario): look at them before you train on them.

    A scenario's reference is shown, so that criteria can say what is right; `lint_rubric` says what is weak. Raises
    `ConfigError` where there is neither spec nor scenario and for a judge that is no chat model, `JudgeError` when the
    judge gives no usable list.
    """
    if not spec.strip() and scenario is None:
        raise ConfigError(
            "the spec is empty and there is no scenario, so there is nothing to make a rubric of"
        )
    judges = reading_judges(
        judge_model, extra_litellm_params, client=client, fallback=fallback, to="make a rubric"
    )
    task = scenario.question if isinstance(scenario, Scenario) else scenario
    return await extracted(
        _material(spec, scenario),
        judges,
        lambda reply: read_rubric(reply, spec, task),
        kind="rubric",
        prompt=_FILE,
        cache=cache,
    )


def read_rubric(reply: ChatReply, spec: str, task: str | None = None) -> Rubric:
    """The rubric in a reply; raises `JudgeReplyError`."""
    data = reply_object(reply, "criteria")
    criteria = data["criteria"] if isinstance(data["criteria"], list) else []
    for item in criteria:
        check = item.get("check") if isinstance(item, dict) else None
        if check is not None and check not in _MAY_CHECK:
            raise JudgeReplyError(
                "wrong_type", f"check is {str(check)[:40]!r}; it may be {' or '.join(_MAY_CHECK)}"
            )
    try:
        spec_hash = hash_of(spec) if spec.strip() else None
        return Rubric.model_validate({"criteria": criteria, "spec_sha256": spec_hash, "scenario": task})
    except ValidationError as error:
        raise JudgeReplyError("wrong_type", fault_of(error)) from error


def _material(spec: str, scenario: Scenario | str | None) -> str:
    parts = [("SYSTEM PROMPT", spec)]
    if isinstance(scenario, Scenario):
        parts += [
            ("TASK", scenario.question),
            ("CONTEXT", scenario.context),
            ("REFERENCE", scenario.reference or ""),
        ]
    elif scenario is not None:
        parts.append(("TASK", scenario))
    return "\n\n".join(f"{name}:\n{neutral(text)}" for name, text in parts if text.strip())
