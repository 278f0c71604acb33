"""What a plain import and `--help` cost, and what they must not bring along."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "peft", "openai", "litellm", "vllm", "ray")

LIGHT_USES = {
    "import groundrule": "import groundrule",
    "a version check": "import groundrule; groundrule.__version__",
    "groups and scenarios": "import groundrule as art; art.Trajectory; art.TrajectoryGroup; art.Scenario",
    "groundrule.rewards": "import groundrule.rewards",
    "groundrule.llm": "from groundrule.llm import ScriptedClient",
    "gathering": "from groundrule import gather_trajectory_groups, gather_trajectories, retry",
    "groundrule --help": (
        "from click.testing import CliRunner; from groundrule.cli.main import cli; "
        "assert CliRunner().invoke(cli, ['--help']).exit_code == 0"
    ),
}


@pytest.mark.parametrize("program", LIGHT_USES.values(), ids=LIGHT_USES.keys())
def test_torch_and_clients_are_not_imported_before_they_are_needed(program):
    report = f"import json, sys; {program}; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    "verb",
    [
        "checklist",
        "constitution",
        "demo",
        "demo-rlvr",
        "doctor",
        "judge-eval",
        "models",
        "reward-bench",
        "rubric",
        "score",
        "serve",
        "train",
        "prefs",
        "rank",
        "sft",
        "verify",
        "view",
    ],
)
def test_the_help_of_a_verb_does_not_import_what_the_verb_needs(verb):
    program = (
        "import json, sys; from click.testing import CliRunner; from groundrule.cli.main import cli; "
        f"assert CliRunner().invoke(cli, [{verb!r}, '--help']).exit_code == 0; "
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_importing_the_library_takes_under_half_a_cpu_second():
    assert least_cpu_seconds([sys.executable, "-c", "import groundrule"]) < 0.5


def test_help_takes_under_one_cpu_second():
    assert least_cpu_seconds([sys.executable, "-m", "groundrule", "--help"]) < 1.0


def least_cpu_seconds(command: list[str]) -> float:
    """User and system time of the child, the least of three: what another process costs does not count."""
    return min(cpu_seconds(command) for _ in range(3))


def cpu_seconds(command: list[str]) -> float:
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user) + (after.children_system - before.children_system)
