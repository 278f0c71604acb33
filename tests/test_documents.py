"""What README.md and CONTRIBUTING.md say must be so."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest

from groundrule.cli.main import VERBS
from groundrule.recipes.config import parse_config

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FOLDERS = sorted(p.parent.name for p in (ROOT / "src" / "groundrule").glob("*/__init__.py"))


def blocks(text: str, language: str) -> list[str]:
    """The fenced code of that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", blocks(README, "toml"))
def test_every_configuration_in_the_readme_is_one(block):
    assert parse_config(tomllib.loads(block)).train.steps >= 1


@pytest.mark.parametrize("block", blocks(README, "python"))
def test_every_program_in_the_readme_is_python(block):
    assert ast.parse(block).body


@pytest.mark.embedded
def test_the_first_program_in_the_readme_runs_and_puts_the_faithful_answer_first():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(blocks(README, "python")[0], {})
    scores = [float(line.split()[0]) for line in said.getvalue().splitlines()]
    assert scores[0] == max(scores)


@pytest.mark.parametrize("verb", VERBS)
def test_the_readme_lists_the_verb(verb):
    assert re.search(rf"^groundrule {verb}\b", README, re.MULTILINE)


@pytest.mark.parametrize("folder", FOLDERS)
def test_contributing_has_the_folder_in_its_layout(folder):
    assert f" {folder}/" in CONTRIBUTING


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/dependencies.md", "docs/serving.md"]
)
def test_every_local_link_leads_to_a_file(name):
    text = (ROOT / name).read_text("utf-8")
    targets = [t.partition("#")[0] for t in re.findall(r"\]\(([^)]+)\)", text) if "://" not in t]
    assert [t for t in targets if t and not (ROOT / name).parent.joinpath(t).exists()] == []


@pytest.mark.parametrize("table", ["ADVANTAGES", "_TARGETS", "PROVIDERS", "BACKENDS", "VERBS"])
def test_the_tables_that_contributing_names_exist(table):
    [path] = re.findall(rf"`{table}` in `([^`]+)`", CONTRIBUTING)
    assert re.search(
        rf"^{table}\b.* = ", (ROOT / "src" / "groundrule" / path).read_text("utf-8"), re.MULTILINE
    )
