"""Loaded models are shared with judges and never between two learners."""

from __future__ import annotations

import pytest

from groundrule.models import pool
from groundrule.models.load import LanguageModel
from tiny import tiny_model


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[LanguageModel]:
    """An empty pool that loads tiny models; what it loaded."""
    found: list[LanguageModel] = []

    def load(name: str, *, device: str | None = None) -> LanguageModel:
        found.append(tiny_model())
        return found[-1]

    monkeypatch.setattr(pool, "load_model", load)
    monkeypatch.setattr(pool, "_models", {})
    monkeypatch.setattr(pool, "_trained", [])
    return found


def test_judges_share_one_model(loaded: list[LanguageModel]) -> None:
    assert pool.for_judging("tiny") is pool.for_judging("tiny")
    assert len(loaded) == 1


def test_a_judge_shares_the_weights_of_the_policy() -> None:
    assert pool.for_judging("tiny") is pool.for_training("tiny") is pool.for_judging("tiny")


def test_two_learners_never_share_a_model_even_before_they_add_their_adapters() -> None:
    assert pool.for_training("tiny") is not pool.for_training("tiny")


def test_models_of_other_names_and_devices_are_apart() -> None:
    assert pool.for_judging("tiny") is not pool.for_judging("tiny", "meta")


def test_a_released_model_is_forgotten() -> None:
    model = pool.for_training("tiny")

    pool.release(model)

    assert pool.for_judging("tiny") is not model
