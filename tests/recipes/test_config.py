"""The configuration of a run: what it takes, what it refuses, and the files in this repository."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from groundrule.errors import ConfigError
from groundrule.recipes.config import TrainingConfig, load_config, parse_config
from groundrule.recipes.constitution.config import load_constitutional_config
from groundrule.recipes.prompt_learning.config import load_prompt_config
from groundrule.recipes.rlhf.config import load_rlhf_config
from groundrule.rewards import Rubric

ROOT = Path(__file__).parents[2]
SECTIONS = {
    name: next((kind for kind in get_args(field.annotation) if kind is not type(None)), field.annotation)
    for name, field in TrainingConfig.model_fields.items()
}
RUBRICS = sorted((ROOT / "examples" / "universal").glob("*.toml"))
FIELDS = [(section, name) for section, kind in SECTIONS.items() for name in kind.model_fields]


def configurations() -> list[Path]:
    """Every TOML file here that is not the project's own, part of the package, or a rubric."""
    files = [p for folder in ("benchmarks", "docs", "examples") for p in (ROOT / folder).rglob("*.toml")]
    own = [p for p in ROOT.glob("*.toml") if p.name != "pyproject.toml"]
    return sorted(p for p in [*files, *own] if p not in RUBRICS)


@pytest.mark.parametrize("path", configurations(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_configuration_in_this_repository_can_be_loaded(path):
    chains = {
        "rlhf.toml": load_rlhf_config,
        "constitution.toml": load_constitutional_config,
        "prompt.toml": load_prompt_config,
    }
    load = chains.get(path.name, load_config)
    assert load(path).run.name


@pytest.mark.parametrize("path", RUBRICS, ids=lambda p: p.name)
def test_every_rubric_of_the_examples_is_frozen_as_it_stands(path):
    assert Rubric.load(path).criteria


def test_there_is_a_configuration_to_load():
    assert ROOT / "examples" / "pydoc.toml" in configurations()


def test_the_sections_are_these():
    assert list(SECTIONS) == ["scenarios", "policy", "judge", "train", "ppo", "run"]


@pytest.mark.parametrize(("section", "name"), FIELDS)
def test_every_field_says_what_it_is(section, name):
    assert SECTIONS[section].model_fields[name].description


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_says_what_it_is(section):
    assert SECTIONS[section].__doc__.startswith(f"[{section}]: ")


def test_an_empty_file_is_a_whole_configuration(tmp_path):
    (tmp_path / "a.toml").touch()
    assert load_config(tmp_path / "a.toml") == TrainingConfig()


def test_the_defaults_need_no_key_and_no_network():
    config = TrainingConfig()
    assert (config.scenarios.source, config.policy.base_model, config.judge.model) == (
        "support",
        "smollm2-135m",
        "local/likelihood",
    )


def test_changes_replace_single_values(tmp_path):
    (tmp_path / "a.toml").write_text("[train]\nsteps = 3\ngroup_size = 5\n")
    config = load_config(tmp_path / "a.toml", {"train.steps": 7, "run.seed": 2})
    assert (config.train.steps, config.train.group_size, config.run.seed) == (7, 5, 2)


def test_changes_reach_into_free_form_tables(tmp_path):
    (tmp_path / "a.toml").write_text("[judge]\nparams = { a = 1 }\n")
    assert load_config(tmp_path / "a.toml", {"judge.params.b": 2}).judge.params == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"tain": {}}, "configuration: unknown key 'tain'; did you mean 'train'?"),
        ({"train": {"step": 1}}, "configuration: unknown key 'train.step'; did you mean 'steps'?"),
        ({"policy": {"temperatur": 1}}, "configuration: unknown key 'policy.temperatur'; did you mean 'temperature'?"),
        ({"run": {"sed": 1}}, "configuration: unknown key 'run.sed'; did you mean 'seed'?"),
        ({"zzz": 1}, "configuration: unknown key 'zzz'; known here: scenarios, policy, judge, train, ppo, run"),
        ({"train": {"kl_coef": -1}}, "configuration: train.kl_coef is -1: Input should be greater than or equal to 0"),
        ({"policy": {"top_p": 1.5}}, "configuration: policy.top_p is 1.5: Input should be less than or equal to 1"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(data, said):
    with pytest.raises(ConfigError) as refused:
        parse_config(data)
    assert str(refused.value) == said


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        TrainingConfig().train.steps = 3


def test_the_run_folder_follows_from_project_and_name():
    config = parse_config({"run": {"project": "support", "name": "first"}})
    assert config.folder == Path("runs/support/first")


def test_a_given_run_folder_is_taken():
    assert parse_config({"run": {"folder": "/somewhere"}}).folder == Path("/somewhere")
