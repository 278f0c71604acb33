"""What an installation brings: few distributions, all pinned for our own set-up, and every data file."""

from __future__ import annotations

import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CORE = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
WE_INSTALL = ["fast", "train", "verify", "dev"]
FOR_USERS = ["fast", "train", "verify", "litellm"]


def closure(requirements: list[str]) -> set[str]:
    """Names of all distributions that these requirements bring into this environment."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, extras) in found:
            continue
        found.add((name, extras))
        waiting += [r for r in map(Requirement, metadata.requires(name) or []) if applies(r, extras)]
    return {name for name, _ in found}


def theirs(requirements: list[str]) -> list[str]:
    """Without the references to our own extras."""
    return [r for r in requirements if not r.startswith("groundrule")]


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    """True when the requirement's marker holds here, for the plain distribution or one of its extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def test_the_core_brings_at_most_25_distributions():
    assert len({"groundrule", *closure(CORE)}) <= 25


def test_the_core_brings_no_heavy_distribution():
    assert closure(CORE).isdisjoint({"torch", "transformers", "numpy", "litellm"})


@pytest.mark.parametrize("extra", WE_INSTALL)
def test_every_distribution_that_make_installs_is_pinned(extra):
    assert sorted(closure([*CORE, *theirs(EXTRAS[extra])]) - pinned().keys()) == []


def test_the_core_brings_a_library_that_judges_are_called_through():
    assert closure(CORE) & {"httpx2", "httpx"}


def test_whoever_trains_has_the_faster_library_too():
    assert EXTRAS["fast"] == ["aiohttp>=3.13,<4"]
    assert "groundrule[fast]" in EXTRAS["train"]


def test_every_pinned_version_lies_in_the_range_that_pyproject_gives():
    given = [Requirement(r) for r in theirs([r for name in WE_INSTALL for r in EXTRAS[name]] + CORE)]
    outside = [str(r) for r in given if not r.specifier.contains(pinned()[canonicalize_name(r.name)])]
    assert outside == []


def test_every_dependency_is_justified_in_the_docs():
    text = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    named = [Requirement(r).name for r in CORE + [r for name in FOR_USERS for r in theirs(EXTRAS[name])]]
    assert [name for name in named if f"| {name} |" not in text] == []


DATA_FILES = [
    "py.typed",
    "llm/prices.toml",
    "prompt_learning/prompts/contradiction.md",
    "prompt_learning/prompts/gepa.md",
    "prompt_learning/prompts/reflect.md",
    "prompt_learning/prompts/rewrite.md",
    "rewards/constitution/texts/customer-support.toml",
    "rewards/constitution/texts/helpful-honest-harmless.toml",
    "rewards/prompts/checklist.md",
    "rewards/prompts/checklist_extract.md",
    "rewards/prompts/constitution_choice.md",
    "rewards/prompts/ruler.md",
    "rewards/prompts/universal_criteria.md",
    "rewards/prompts/universal_helpful.md",
    "rewards/prompts/universal_reference.md",
    "rewards/prompts/universal_rubric.md",
    "rewards/prompts/universal_sneaky.md",
    "rewards/prompts/universal_truth.md",
    "rewards/suites/known.jsonl",
    "rollouts/sets/support.jsonl",
    "_util/palette.css",
    "ranking/assets/page.html",
    "ranking/assets/rank.css",
    "ranking/assets/rank.js",
    "viewer/assets/page.html",
    "viewer/assets/report.css",
]


@pytest.mark.parametrize("name", DATA_FILES)
def test_the_package_holds_its_data_file(name):
    assert resources.files("groundrule").joinpath(name).is_file()


def test_no_other_data_file_is_in_the_package():
    package = ROOT / "src" / "groundrule"
    files = [p for p in package.rglob("*") if p.is_file() and p.suffix not in {".py", ".pyc"}]
    assert sorted(p.relative_to(package).as_posix() for p in files) == sorted(DATA_FILES)


def test_the_wheel_is_built_from_the_whole_package_folder():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/groundrule"]}


def test_the_command_is_installed_under_its_name():
    [command] = metadata.entry_points(group="console_scripts", name="groundrule")
    assert command.value == "groundrule.cli.main:main"


def test_the_version_is_the_installed_one():
    import groundrule

    assert groundrule.__version__ == metadata.version("groundrule")
