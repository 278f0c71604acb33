"""`groundrule learn-prompt` and `groundrule prompt`: from a file to a prompt, and its history."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundrule.prompt_learning.simulated import SPEC
from groundrule.recipes.prompt_learning.history import read_history
from prompt_worlds import write_tasks


@pytest.fixture
def config(tmp_path, judge_named):
    """Three rounds in the simulated world, by names."""
    judge_named("world", "prompt_worlds:named")
    path = tmp_path / "learn.toml"
    path.write_text(
        f"""
        [scenarios]
        source = "{write_tasks(tmp_path / "tasks.jsonl")}"
        [policy]
        model = "world/agent"
        [judge]
        model = "world/judge"
        [reflection]
        model = "world/writer"
        [learn]
        rounds = 3
        edits = 2
        final = 8
        [run]
        name = "simulated"
        """
    )
    return path


def test_learning_ends_with_a_prompt_and_says_where_its_history_is(groundrule, config, tmp_path):
    done = groundrule("learn-prompt", config)

    assert done.code == 0
    assert "round 3/3: reward 0." in done.out
    assert "final test: " in done.out
    assert "prompt: runs/prompts/simulated/prompt.txt" in done.out
    assert (tmp_path / "runs/prompts/simulated/prompt.txt").read_text().startswith(SPEC)


def test_the_history_is_listed_shown_compared_and_gone_back_in(groundrule, config):
    groundrule("learn-prompt", config)
    run = "runs/prompts/simulated"

    head = read_history(Path(run)).pool.head.number
    listed = groundrule("prompt", "log", run)
    shown = groundrule("prompt", "show", run)
    compared = groundrule("prompt", "diff", run, 0, 1)
    back = groundrule("prompt", "rollback", run, 0)

    assert head > 1
    assert f"*{head}" in listed.out
    assert "Lessons from earlier work:" in shown.out
    assert "better on" in shown.err
    assert "+1. " in compared.out
    assert f"version {head + 1} is version 0 again, with 0 lessons" in back.out
    assert groundrule("prompt", "show", run, "--version", head + 1).out == SPEC + "\n"


def test_a_lesson_is_traced_to_groups_and_words_of_the_judge(groundrule, config):
    groundrule("learn-prompt", config)
    run = "runs/prompts/simulated"
    known = groundrule("prompt", "show", run, "--lesson", "L99")

    assert known.code == 2
    assert "known: L" in known.err
    lesson = known.err.rpartition("known: ")[2].split(",")[0].split()[0]
    traced = groundrule("prompt", "show", run, "--lesson", lesson)

    assert traced.code == 0
    assert "test: +0." in traced.out
    assert "r1g" in traced.out or "r2g" in traced.out
    assert "judge: " in traced.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("log", "nowhere"), "nowhere is not a run folder"),
        (("diff", "runs/prompts/simulated", 0, 9), "there is no version 9"),
    ],
)
def test_what_is_not_there_is_said_without_a_traceback(groundrule, config, arguments, said):
    groundrule("learn-prompt", config)

    done = groundrule("prompt", *arguments)

    assert done.code == 2
    assert said in done.err


def test_the_current_version_cannot_be_gone_back_to(groundrule, config):
    groundrule("learn-prompt", config)
    run = "runs/prompts/simulated"

    done = groundrule("prompt", "rollback", run, read_history(Path(run)).pool.head.number)

    assert done.code == 2
    assert "is the current one already" in done.err


def test_a_run_of_another_kind_has_no_versions(groundrule, tmp_path):
    from groundrule.data.runs import Run

    with Run.create(tmp_path / "other", {}) as run:
        run.record_step(1, [], {})

    done = groundrule("prompt", "log", "other")

    assert done.code == 2
    assert "holds no versions of a prompt; name a run of groundrule learn-prompt" in done.err
