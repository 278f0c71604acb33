"""A prompt is learned in a run folder: rounds, tests, a final test; interrupted, resumed, edited by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from groundrule._util.digest import digest
from groundrule.data.runs import Run
from groundrule.errors import BudgetError, ConfigError, DataError, JudgeError, LlmError, RunError
from groundrule.llm import ScriptedClient
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.simulated import SPEC, SimulatedAgent, SimulatedJudge
from groundrule.recipes.config_file import checked_config
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.history import difference, go_back, read_history
from groundrule.recipes.prompt_learning.run import learn_prompt
from groundrule.rewards.judges import Judge
from prompt_worlds import WORLD, reflector, write_tasks

ROUNDS = 4


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tasks(tmp_path_factory.mktemp("tasks") / "tasks.jsonl")


def configured(tasks: Path, folder: Path, **sections: dict[str, Any]) -> PromptConfig:
    learn = {"rounds": ROUNDS, "final": 8, "edits": 2, **sections.pop("learn", {})}
    data = {
        "scenarios": {"source": str(tasks)},
        "policy": {"model": "openai/simulated"},
        "learn": learn,
        "run": {"folder": str(folder)},
        **sections,
    }
    return checked_config(PromptConfig, data)


def learned(config: PromptConfig, **more: Any) -> list[str]:
    """Learn, and give what was reported."""
    lines: list[str] = []
    parts = {
        "rollout": SimulatedAgent(WORLD),
        "scorer": SimulatedJudge(WORLD),
        "reflector": reflector(),
        **more,
    }
    asyncio.run(learn_prompt(config, report=lines.append, **parts))
    return lines


@pytest.fixture(scope="module")
def whole(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run of four rounds. Read it only."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, learned(configured(tasks, folder))


def test_the_prompt_file_is_the_spec_with_lessons_that_really_help(whole):
    folder, _ = whole

    text = (folder / "prompt.txt").read_text()
    lessons = read_history(folder).pool.head.playbook.lessons

    assert text.startswith(SPEC + "\n\nLessons from earlier work:\n1. ")
    assert lessons
    assert {lesson.text for lesson in lessons} <= set(WORLD.best_lessons)


def test_every_accepted_lesson_names_the_groups_and_explanations_that_caused_it(whole):
    folder, _ = whole
    versions = read_history(folder).pool.versions[1:]

    with Run.open(folder, read_only=True) as run:
        for version in versions:
            members = {g.scenario_id for g in run.groups(version.round)}
            assert version.evidence
            assert {one["scenario_id"] for one in version.evidence} <= members | {
                g.scenario_id for step in range(1, version.round) for g in run.groups(step)
            }
            assert all(one["worst_explanation"] for one in version.evidence)


def test_every_trajectory_names_its_prompt_and_no_group_to_learn_from_mixes_two(whole):
    folder, _ = whole
    with Run.open(folder, read_only=True) as run:
        groups = [group for step in run.trajectory_steps() for group in run.groups(step)]

    for group in groups:
        for member in group:
            assert member.metadata["prompt"] == digest(member.messages()[0]["content"])
    first = groups[:8]
    assert {m.metadata["prompt"] for g in first for m in g} == {digest(SPEC)}


def test_old_and_new_prompt_stand_in_the_same_judged_groups(whole):
    folder, _ = whole
    record = json.loads((folder / "rounds" / "step-000001.json").read_text())
    with Run.open(folder, read_only=True) as run:
        tested = run.groups(1)[8:]

    assert record["tested"]
    assert len(tested) == max(one["looks"][-1]["scenarios"] for one in record["tested"])
    assert {len({m.metadata["prompt"] for m in group}) for group in tested} <= {2, 3}


def test_the_final_test_uses_scenarios_that_no_round_saw(whole):
    folder, lines = whole
    with Run.open(folder, read_only=True) as run:
        seen = {g.scenario_id for step in run.trajectory_steps() for g in run.groups(step)}
        record = run.evaluations("final")[0]

    held_back = {task.id for task in WORLD.tasks[-8:]}
    assert seen.isdisjoint(held_back)
    assert record["scenarios"] == 8
    assert record["difference"]["value"] > 0
    assert lines[-1].startswith("final test: +0.")


def test_a_run_that_is_killed_in_a_round_ends_where_an_uninterrupted_one_does(whole, tasks, tmp_path):
    uninterrupted, _ = whole
    config = configured(tasks, tmp_path / "killed")

    class Dying(SimulatedAgent):
        async def __call__(self, policy, scenario):
            if self.answers == 150:
                raise KeyboardInterrupt
            return await super().__call__(policy, scenario)

    with pytest.raises(KeyboardInterrupt):
        learned(config, rollout=Dying(WORLD))
    learned(config)

    with Run.open(tmp_path / "killed", read_only=True) as run:
        assert [line["step"] for line in run.metrics()] == [1, 2, 3, 4]
    assert (tmp_path / "killed" / "prompt.txt").read_bytes() == (uninterrupted / "prompt.txt").read_bytes()
    assert (tmp_path / "killed" / "state.json").read_bytes() == (uninterrupted / "state.json").read_bytes()


def test_a_finished_run_does_nothing_when_it_is_started_again(whole, tasks):
    folder, _ = whole
    before = (folder / "state.json").read_bytes()

    agent = SimulatedAgent(WORLD)
    learned(configured(tasks, folder), rollout=agent)

    assert agent.answers == 0
    assert (folder / "state.json").read_bytes() == before


def test_more_rounds_go_on_from_the_last_one(tasks, tmp_path):
    folder = tmp_path / "run"
    learned(configured(tasks, folder, learn={"rounds": 1}))
    learned(configured(tasks, folder, learn={"rounds": 2}))

    with Run.open(folder, read_only=True) as run:
        assert [line["step"] for line in run.metrics()] == [1, 2]


def test_a_lesson_written_by_hand_becomes_a_version(tasks, tmp_path):
    folder = tmp_path / "run"
    learned(configured(tasks, folder, learn={"rounds": 1}))
    path = folder / "prompt.txt"
    path.write_text(f"{SPEC}\n\nLessons from earlier work:\n1. Thank the customer once.\n")

    lines = learned(configured(tasks, folder, learn={"rounds": 2}))

    versions = read_history(folder).pool.versions
    by_hand = next(version for version in versions if version.how == "hand")
    assert [lesson.text for lesson in by_hand.playbook.lessons] == ["Thank the customer once."]
    assert lines[0].startswith(f"{path} was edited by hand: that is version")


def test_a_spec_changed_by_hand_is_refused(tasks, tmp_path):
    folder = tmp_path / "run"
    learned(configured(tasks, folder, learn={"rounds": 1}))
    (folder / "prompt.txt").write_text("Anything goes.\n")

    with pytest.raises(DataError, match="is not the system prompt that answers are judged by"):
        learned(configured(tasks, folder, learn={"rounds": 2}))


def test_another_spec_in_the_scenarios_is_refused(whole, tasks):
    folder, _ = whole

    with pytest.raises(RunError, match=r"policy\.system"):
        learned(configured(tasks, folder, policy={"model": "openai/simulated", "system": "Be rude."}))


def test_a_version_can_be_gone_back_to(tasks, tmp_path):
    folder = tmp_path / "run"
    learned(configured(tasks, folder, learn={"rounds": 3}))
    assert read_history(folder).pool.head.number > 0

    made = go_back(folder, 0)

    assert (folder / "prompt.txt").read_text() == SPEC + "\n"
    assert read_history(folder).pool.head.number == made.number
    assert list(difference(read_history(folder), 0, made.number)) == []


def test_no_lesson_leads_to_no_final_comparison(tasks, tmp_path):
    silent = Reflector([Judge(ScriptedClient(lambda request: {"edits": []}), "silent")])
    config = configured(tasks, tmp_path / "run", learn={"rounds": 1})

    lines = learned(config, reflector=silent)

    assert lines[-1] == "final test: no lesson was accepted, so the prompt is the one that it began with"


def test_a_reflection_model_that_writes_nonsense_is_quoted_and_the_run_goes_on(tasks, tmp_path):
    broken = Reflector([Judge(ScriptedClient(lambda request: "I would rather not."), "broken")])

    lines = learned(configured(tasks, tmp_path / "run", learn={"rounds": 2}), reflector=broken)

    assert [line.partition(" (")[0] for line in lines if "nothing usable" in line] == [
        "round 1: the reflection model wrote nothing usable",
        "round 2: the reflection model wrote nothing usable",
    ]
    assert "I would rather not" in lines[0]
    assert (tmp_path / "run" / "prompt.txt").read_text().rstrip() == SPEC


def test_a_round_without_a_usable_reflection_says_so_in_its_record(tasks, tmp_path):
    judges = [Judge(ScriptedClient(lambda request: "I would rather not."), name) for name in ("one", "two")]

    learned(configured(tasks, tmp_path / "run", learn={"rounds": 1}), reflector=Reflector(judges))

    record = json.loads((tmp_path / "run" / "rounds" / "step-000001.json").read_text())
    with Run.open(tmp_path / "run", read_only=True) as run:
        [metrics] = run.metrics()
    assert "two: " in record["unreadable"]
    assert metrics["prompt/unreadable"] == 1.0


def test_a_reflection_model_that_cannot_be_reached_stops_the_run(tasks, tmp_path):
    def down(request):
        raise LlmError("no route")

    with pytest.raises(JudgeError, match="no route"):
        learned(
            configured(tasks, tmp_path / "run", learn={"rounds": 1}),
            reflector=Reflector([Judge(ScriptedClient(down), "down")]),
        )

    with Run.open(tmp_path / "run", read_only=True) as run:
        assert run.step == 0


def test_a_budget_that_is_used_up_says_how_to_go_on(tasks, tmp_path, judge_named):
    judge_named("world", "prompt_worlds:named")
    names = {"policy": {"model": "world/agent"}, "judge": {"model": "world/judge"}}
    config = configured(
        tasks, tmp_path / "run", reflection={"model": "world/writer"}, budget={"calls": 40}, **names
    )

    with pytest.raises(BudgetError, match=r"raise \[budget\] and start the same command again"):
        asyncio.run(learn_prompt(config, report=lambda line: None))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"learn": {"final": 36}}, r"learn\.final keeps 36"),
        ({"learn": {"looks": [8, 8]}}, "looks are"),
        ({"learn": {"turns": []}}, r"learn\.turns is empty"),
        ({"learn": {"turns": ["weights"]}}, "needs a local model"),
        ({"learn": {"round": 3}}, "did you mean 'rounds'"),
    ],
)
def test_a_wrong_setting_is_named(tasks, tmp_path, changes, said):
    with pytest.raises(ConfigError, match=said):
        learned(configured(tasks, tmp_path / "run", **changes))


def test_scenarios_of_two_system_prompts_are_refused(tmp_path):
    rows = [
        {"id": f"s{n}", "system": f"Be {n}.", "question": "?", "split": split}
        for n, split in enumerate(["train", "held-out", "held-out"])
    ]
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(ConfigError, match="3 different system prompts"):
        learned(configured(path, tmp_path / "run", learn={"final": 1}))
