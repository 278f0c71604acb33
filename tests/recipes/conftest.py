"""Trainings with the tiny model of the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from groundrule.recipes.config import TrainingConfig
from tiny_training import tiny_config, use_tiny_model, write_scenarios


@pytest.fixture(scope="module")
def tiny_base_model() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_model(patch)
        yield


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    """Four scenarios to train on and two held out, short enough for the tiny model."""
    return write_scenarios(tmp_path / "scenarios.jsonl")


@pytest.fixture
def tiny_training(tiny_base_model: None, scenario_file: Path) -> Callable[..., TrainingConfig]:
    """`tiny_training(folder, steps=3, run={...})`: a configuration that trains in a second."""
    return partial(tiny_config, scenario_file)


@pytest.fixture(scope="module")
def tiny_trainings(
    tiny_base_model: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., TrainingConfig]:
    """The same, for runs that several tests look at."""
    return partial(tiny_config, write_scenarios(tmp_path_factory.mktemp("set") / "scenarios.jsonl"))
