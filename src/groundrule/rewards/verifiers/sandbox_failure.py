"""The sandbox itself failed: a fault of the machine, which says nothing about the candidate."""

from __future__ import annotations

from groundrule.errors import GroundRuleError


class SandboxFailure(GroundRuleError):
    """A sandbox could not be started or held. `verify_code` makes "no score" of it, never 0."""
