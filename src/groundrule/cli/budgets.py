"""Options of every verb that may cost something: hard limits of the whole work, interrupted or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from groundrule.llm.cost import Budget

_NAMES = ("calls", "tokens", "usd")


def with_budget(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--budget-calls`, `--budget-tokens` and `--budget-usd`; `budget_of` takes them out of the options."""
    for option in (
        click.option(
            "--budget-usd", type=click.FloatRange(min=0, min_open=True), help="The most US dollars."
        ),
        click.option(
            "--budget-tokens", type=click.IntRange(min=1), help="The most tokens, sent and received."
        ),
        click.option(
            "--budget-calls", type=click.IntRange(min=1), help="The most calls, interrupted or not."
        ),
    ):
        command = option(command)
    return command


def budget_of(options: dict[str, Any]) -> Budget:
    """The limits that were given."""
    from groundrule.llm.cost import Budget

    return Budget(**{name: options.pop(f"budget_{name}") for name in _NAMES})
