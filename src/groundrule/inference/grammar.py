"""Grammars at work: which tokens of a model may come next, by llguidance.

A grammar ends an answer: when it is complete only the model's end tokens remain. Control tokens other than these never
come up in a constrained answer.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel

_KEPT = 64
"""Compiled grammars that are kept: agents send the same tools with every request."""


class Grammars:
    """The grammars of one tokenizer, compiled once each. May be used from several threads."""

    def __init__(self, tokenizer: Any, end_ids: frozenset[int], vocabulary: int) -> None:
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._vocabulary = vocabulary
        """How many logits there are: more than tokens where the output layer was padded."""
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, lark: str) -> Callable[[], GrammarConstraint]:
        """What begins an answer by this grammar; raises `ConfigError` when the grammar cannot be used."""
        with self._lock:
            start = self._compiled.pop(lark, None) or self._compile(lark)
            self._compiled[lark] = start
            if len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        return lambda: GrammarConstraint(start.deep_copy(), self._vocabulary, self._end_ids)

    def _compile(self, lark: str) -> Any:
        from llguidance import LLMatcher, LLParserLimits

        limits = LLParserLimits(verbose_errors=False)
        matcher = LLMatcher(self._tokens, LLMatcher.grammar_from_lark(lark), log_level=0, limits=limits)
        if matcher.is_error():
            raise ConfigError(_first_lines(matcher.get_error()))
        return matcher

    @cached_property
    def _tokens(self) -> Any:
        """The tokenizer as llguidance reads it; takes up to a second for a large vocabulary."""
        from llguidance import LLTokenizer

        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ConfigError("this model has no fast tokenizer, which grammars need")
        size = max(self._vocabulary, backend.get_vocab_size(with_added_tokens=True))
        return LLTokenizer(backend.to_str(), n_vocab=size, eos_token=sorted(self._end_ids))


def grammars_of(model: LanguageModel) -> Grammars:
    """The grammars of a model, kept as long as the model is."""
    if model not in _of_models:
        vocabulary = int(model.head.weight.shape[0])
        _of_models[model] = Grammars(model.tokenizer, model.eos_ids, vocabulary)
    return _of_models[model]


_of_models: weakref.WeakKeyDictionary[LanguageModel, Grammars] = weakref.WeakKeyDictionary()


class GrammarConstraint:
    """One answer's way through its grammar; implements `Constraint`.

    A grammar that becomes too large on the way ends the answer, with the reason in `fault`: other answers of the same
    batch go on.
    """

    def __init__(self, matcher: Any, vocabulary: int, end_ids: frozenset[int]) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._end_ids = end_ids

    @property
    def fault(self) -> str | None:
        """Why the answer was ended before its grammar was."""
        return _first_lines(self._matcher.get_error()) if self._matcher.is_error() else None

    def allowed(self) -> torch.Tensor:
        """(vocabulary,) True where a token may come."""
        mask = bytearray(self._matcher.compute_bitmask())
        allowed = torch.zeros(self._vocabulary, dtype=torch.bool)
        if self._matcher.is_error():
            allowed[list(self._end_ids)] = True
            return allowed
        bits = torch.frombuffer(mask, dtype=torch.uint8)[:, None] >> _BIT_PLACES & 1  # (bytes, 8)
        known = bits.bool().reshape(-1)[: self._vocabulary]
        allowed[: len(known)] = known
        return allowed

    def take(self, token: int) -> None:
        """This token came."""
        self._matcher.consume_token(token)


_BIT_PLACES = torch.arange(8, dtype=torch.uint8)
_PLACE = re.compile(r"^at \d+\(\d+\): ")


def _first_lines(text: str) -> str:
    """What is wrong, without the excerpt of the grammar that follows."""
    return _PLACE.sub("", " ".join(text.split("\n   1 |")[0].split()))[:300]
