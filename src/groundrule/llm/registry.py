"""The one late-bound table: a name's prefix -> "module:factory", imported on first use.

Higher layers fill it, so that a judge can be called "local/likelihood" without `rewards` knowing about
models. A factory is called with the rest of the name and the extra parameters, and gives a chat client or
a scorer.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from groundrule.errors import ConfigError

_TARGETS: dict[str, str] = {
    "constitution": "groundrule.rewards.constitution.judge:constitution_judge",
    "human": "groundrule.rewards.human:human_judge",
    "local": "groundrule.inference.local_client:local_judge",
    "local/reward-model": "groundrule.models.reward_judge:reward_model_judge",
    "universal": "groundrule.rewards.universal.verifier:universal_judge",
}
"""The library's own entries; names only, so that nothing is imported before it is used."""


def register_prefix(prefix: str, target: str) -> None:
    """Let names that begin with `prefix/` be made by `target`, a "module:factory"."""
    module, separator, factory = target.partition(":")
    if not (prefix and module and separator and factory) or prefix.endswith("/"):
        raise ConfigError(f"register_prefix({prefix!r}, {target!r}): expected a prefix and 'module:factory'")
    _TARGETS[prefix] = target


def registered_prefixes() -> list[str]:
    """The prefixes known so far."""
    return sorted(_TARGETS)


def is_registered(name: str) -> bool:
    """True when some registered prefix covers this name."""
    return _prefix_of(name) is not None


def make(name: str, extra_params: Mapping[str, Any] | None = None) -> Any:
    """What the factory of the longest fitting prefix makes of the rest of the name."""
    prefix = _prefix_of(name)
    if prefix is None:
        raise ConfigError(f"no prefix of {name!r} is registered; registered are {registered_prefixes()}")
    module, _, attribute = _TARGETS[prefix].partition(":")
    try:
        factory = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ConfigError(
            f"{name!r} needs {module}, which cannot be imported ({error}); install what it needs, "
            "for local models: pip install 'groundrule[train]'"
        ) from error
    return factory(name[len(prefix) :].removeprefix("/"), dict(extra_params or {}))


def _prefix_of(name: str) -> str | None:
    fitting = [prefix for prefix in _TARGETS if name == prefix or name.startswith(prefix + "/")]
    return max(fitting, key=len, default=None)
