"""The names that programs import, and that those written for ART find under `import groundrule as art`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import groundrule as art

ART_NAMES = [
    "LocalBackend",
    "Model",
    "TrainConfig",
    "TrainableModel",
    "Trajectory",
    "TrajectoryGroup",
    "gather_trajectories",
    "gather_trajectory_groups",
    "retry",
]


def test_the_public_names_are_these():
    assert art.__all__ == [
        "History",
        "LocalBackend",
        "MessagesAndChoices",
        "Model",
        "Scenario",
        "Score",
        "Tools",
        "TrainConfig",
        "TrainableModel",
        "Trajectory",
        "TrajectoryGroup",
        "gather_trajectories",
        "gather_trajectory_groups",
        "retry",
        "train_rl",
    ]


@pytest.mark.parametrize("name", art.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(art, name) is not None


def test_every_public_name_has_exactly_one_home():
    assert sorted(art._HOMES) == sorted(art.__all__)


def test_type_checkers_see_every_public_name():
    text = Path(art.__file__).read_text("utf-8")
    block = text.split("if TYPE_CHECKING:")[1].split("__version__")[0]
    imported = re.findall(r"import (.+)", block)
    assert sorted(name.strip() for line in imported for name in line.split(",")) == sorted(art.__all__)


@pytest.mark.parametrize("name", ART_NAMES)
def test_programs_written_for_art_find(name):
    assert name in art.__all__


def test_a_star_import_brings_exactly_the_public_names():
    namespace = {}
    exec("from groundrule import *", namespace)
    del namespace["__builtins__"]
    assert sorted(namespace) == sorted(art.__all__)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'trajectoris'"):
        _ = art.trajectoris


def test_dir_lists_names_that_were_not_used_yet():
    assert set(art.__all__) <= set(dir(art))


@pytest.mark.parametrize(
    "name",
    [
        "ruler",
        "ruler_score_group",
        "parse_judge_reply",
        "JudgeReplyError",
        "Ruler",
        "UniversalVerifier",
        "hunt",
    ],
)
def test_rewards_offers(name):
    import groundrule.rewards

    assert name in groundrule.rewards.__all__
    assert getattr(groundrule.rewards, name) is not None


def test_type_checkers_see_the_names_of_rewards_that_are_imported_when_used():
    import groundrule.rewards
    from groundrule.rewards import universal

    assert set(groundrule.rewards._WHEN_USED) <= set(universal.__all__) & set(groundrule.rewards.__all__)


def test_an_unknown_name_of_rewards_is_an_attribute_error():
    import groundrule.rewards

    with pytest.raises(AttributeError, match="'Rulr'"):
        _ = groundrule.rewards.Rulr


def test_the_scripted_client_is_public():
    import groundrule.llm

    assert "ScriptedClient" in groundrule.llm.__all__
