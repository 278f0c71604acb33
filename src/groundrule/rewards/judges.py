"""From what a user names as a judge to something that can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundrule.data.protocols import ChatClient, Scorer
from groundrule.llm import params as model_params
from groundrule.llm.cache import ReplyCache, default_cache
from groundrule.llm.context import context_of
from groundrule.llm.providers import JudgeLike, named_client, request_params, resolve
from groundrule.rewards.prompt import RESPONSE_FORMAT, exact_format

Fallback = JudgeLike | Sequence[JudgeLike] | None
"""Who is asked when a judge gives nothing usable: nobody, one, or several in turn."""

_NAMED_ENDPOINTS = ("http://", "https://", "litellm:")


@dataclass(frozen=True)
class Judge:
    """A chat model to ask, ready to be called."""

    client: ChatClient
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    stated_context: int | None = None
    """The model's context in tokens, from whoever knows it better than the table of families."""

    @property
    def endpoint(self) -> str:
        """What tells one endpoint from another in a cache key."""
        return str(getattr(self.client, "base_url", "") or "")

    @property
    def takes_images(self) -> bool:
        """What the client says of itself, or else what is known of the model's family."""
        told = getattr(self.client, "takes_images", None)
        return model_params.takes_images(self.model) if told is None else bool(told)

    @property
    def context_tokens(self) -> int | None:
        """What prompt and reply may take together; None where nothing is known of the model."""
        told = self.stated_context or getattr(self.client, "context_tokens", None)
        return told or context_of(self.model, self.params, endpoint=self.endpoint)

    def for_members(self, count: int) -> Judge:
        """The judge of so many trajectories: told their exact number, where its replies keep to any schema."""
        keeps = getattr(self.client, "keeps_schemas", False)
        if not keeps or self.params.get("response_format") != RESPONSE_FORMAT:
            return self
        return replace(self, params={**self.params, "response_format": exact_format(count)})

    def cache(self, wanted: ReplyCache | bool | None) -> ReplyCache | None:
        """Where this judge's replies are kept.

        None means: in the default cache, if the judge was called by name. A function or a client of the
        user's own has no identity to tell its replies apart by, unless the user says so.
        """
        if isinstance(wanted, ReplyCache):
            return wanted
        by_name = self.endpoint.startswith(_NAMED_ENDPOINTS)
        return default_cache() if wanted or (wanted is None and by_name) else None


def judge_chain(
    judge: JudgeLike,
    extra_params: Mapping[str, Any] | None,
    *,
    client: ChatClient | None = None,
    fallback: Fallback = None,
    defaults: Mapping[str, Any] | None = None,
) -> list[Judge | Scorer]:
    """The judge and its fallbacks, in the order in which they are asked.

    `defaults` are request parameters that `extra_params` overrides; None there takes one out. Address and
    key in `extra_params` are for the first judge only.
    """
    params = {**(defaults or {}), **request_params(extra_params)}
    params = {name: value for name, value in params.items() if value is not None}
    further: list[JudgeLike] = []
    if isinstance(fallback, Sequence) and not isinstance(fallback, str):
        further.extend(fallback)
    elif fallback is not None:
        further.append(fallback)
    if client is not None:
        first: Judge | Scorer = Judge(*named_client(client, judge if isinstance(judge, str) else ""), params)
    else:
        first = _judge(judge, extra_params, params)
    return [first, *(_judge(name, request_params(extra_params), params) for name in further)]


def _judge(judge: JudgeLike, extra: Mapping[str, Any] | None, params: Mapping[str, Any]) -> Judge | Scorer:
    found = resolve(judge, extra)
    return Judge(*found, params) if isinstance(found, tuple) else found
