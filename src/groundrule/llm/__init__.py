"""Talking to any chat model: clients, provider names, a reply cache, a cost ledger and a budget."""

from groundrule.llm.cache import ReplyCache, cache_key
from groundrule.llm.cost import Budget, Ledger, Price, Total, current_ledger, use_ledger
from groundrule.llm.openai_client import OpenAIClient
from groundrule.llm.providers import resolve_client
from groundrule.llm.registry import register_prefix
from groundrule.llm.retry import Retry
from groundrule.llm.scripted import ScriptedClient

__all__ = [
    "Budget",
    "Ledger",
    "OpenAIClient",
    "Price",
    "ReplyCache",
    "Retry",
    "ScriptedClient",
    "Total",
    "cache_key",
    "current_ledger",
    "register_prefix",
    "resolve_client",
    "use_ledger",
]
