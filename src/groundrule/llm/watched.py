"""Work that is worth nothing once a call was refused: half a comparison, a verdict with fewer votes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from groundrule.errors import BudgetError
from groundrule.llm.cost import Ledger, current_ledger, use_ledger


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Raise the `BudgetError` of any call that is refused inside, however the work takes it.

    Scorers and gathers go on where a call fails: they abstain, or do without an attempt.
    """
    watched = _Watched(parent=current_ledger())
    try:
        with use_ledger(watched):
            yield
    except Exception as error:
        if watched.refused in (None, error):
            raise
        raise watched.refused from error
    if watched.refused is not None:
        raise watched.refused


class _Watched(Ledger):
    """Refuses like its parent, and remembers that it did."""

    refused: BudgetError | None = None

    def start(self) -> None:
        try:
            super().start()
        except BudgetError as error:
            self.refused = error
            raise
