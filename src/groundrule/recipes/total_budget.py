"""Work within a budget that counts over interruptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groundrule.errors import BudgetError
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.recipes.config import TotalBudget


@contextmanager
def within(budget: TotalBudget, costs: Path, *, work: str) -> Iterator[Ledger]:
    """Every call inside the block goes into the file `costs` and counts, with what stands there already.

    `work` names what the budget is of, in the `BudgetError` that says how to go on.
    """
    limits = Budget(usd=budget.usd, tokens=budget.tokens, calls=budget.calls)
    with use_ledger(Ledger.reopened(costs, budget=limits)) as ledger:
        try:
            yield ledger
        except BudgetError as error:
            raise BudgetError(
                f"the budget of the {work} is used up ({ledger}); raise [budget] and start the same command again: it "
                "goes on from here"
            ) from error
