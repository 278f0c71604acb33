"""The sandbox tiers of this machine, for tests that run in each of them."""

from __future__ import annotations

import functools

import pytest

from groundrule.rewards.verifiers.sandbox import SandboxTier, available_tiers

KINDS = ("bwrap", "user, isolated", "user, plain")


@functools.cache
def _tiers() -> dict[str, SandboxTier]:
    return {kind_of(tier): tier for tier in reversed(available_tiers())}


def kind_of(tier: SandboxTier) -> str:
    return "bwrap" if tier.name == "bwrap" else "user, isolated" if tier.isolated else "user, plain"


def tier_or_skip(kind: str) -> SandboxTier:
    """The tier of this kind; the test is skipped where this machine has none."""
    if kind not in _tiers():
        pytest.skip(f"this machine gives no sandbox of the kind {kind!r}; it gives {sorted(_tiers())}")
    return _tiers()[kind]
