"""A ledger that knows whether a call was refused, for work that hides it: a verifier without its calls abstains."""

from __future__ import annotations

from groundrule.errors import BudgetError
from groundrule.llm.cost import Ledger


class WatchedLedger(Ledger):
    """Refuses like its parent, and remembers that it did."""

    refused: BudgetError | None = None

    def start(self) -> None:
        """Take one call out of the budget, or raise `BudgetError`."""
        try:
            super().start()
        except BudgetError as error:
            self.refused = error
            raise
