"""Loaded models of this process by name, so that a judge shares the weights of the policy it watches."""

from __future__ import annotations

import threading

from groundrule.models.load import LanguageModel, best_device, load_model

_lock = threading.Lock()
_models: dict[tuple[str, str], list[LanguageModel]] = {}
_trained: list[LanguageModel] = []
"""Handed out for training: each belongs to one learner."""


def for_judging(name: str, device: str | None = None) -> LanguageModel:
    """Any loaded instance (its adapter is switched off while judging), else a new one."""
    with _lock:
        found = _models.setdefault((name, device or best_device()), [])
        if not found:
            found.append(load_model(name, device=device))
        return found[0]


def for_training(name: str, device: str | None = None, *, shared: bool = True) -> LanguageModel:
    """An instance of its own for a learner: one that only judges used so far, else a new one.

    Not `shared`: always a new one, which no judge is given.
    """
    if not shared:
        return load_model(name, device=device)
    with _lock:
        found = _models.setdefault((name, device or best_device()), [])
        free = next((m for m in found if m not in _trained), None)
        if free is None:
            free = load_model(name, device=device)
            found.append(free)
        _trained.append(free)
        return free


def release(model: LanguageModel) -> None:
    """Forget an instance, so that its memory can be freed."""
    with _lock:
        for instances in _models.values():
            if model in instances:
                instances.remove(model)
        if model in _trained:
            _trained.remove(model)
