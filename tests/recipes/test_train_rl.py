"""The main path from configuration to run folder, with the tiny model and a scripted scorer."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from groundrule.data import Score, Trajectory
from groundrule.data.messages import text_of
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, GatherError, LlmError, RunError, TrainingError
from groundrule.llm import ScriptedClient
from groundrule.recipes.doctor import examine
from groundrule.recipes.train_rl import train_rl
from groundrule.rewards import Ruler
from groundrule.rollouts.answer import AnswerOnce


class ByChecksum:
    """A score that follows from the answer's bytes and nothing else."""

    async def score(self, group):
        answers = [text_of(t.messages()[-1]["content"]).encode("utf-8", "replace") for t in group]
        return [Score(value=zlib.crc32(answer) % 11 / 10, explanation="checksum") for answer in answers]


def train(config, *, scorer=None, **more) -> list[str]:
    """Run to the end; what was reported."""
    lines: list[str] = []
    asyncio.run(train_rl(config, scorer=scorer or ByChecksum(), report=lines.append, **more))
    return lines


def adapter(folder: Path, step: int) -> bytes:
    return (folder / "checkpoints" / f"step-{step:06d}" / "adapter_model.safetensors").read_bytes()


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def metrics_lines(folder: Path) -> list[bytes]:
    return (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def three_steps(tiny_trainings, tmp_path_factory) -> Path:
    """The folder of an uninterrupted run of three steps. Read it only."""
    folder = tmp_path_factory.mktemp("three") / "run"
    train(tiny_trainings(folder))
    return folder


def test_a_training_leaves_a_complete_run_folder(three_steps):
    assert sorted(files_of(three_steps)) == [
        ".lock",
        *(
            f"checkpoints/step-00000{step}/{name}"
            for step in (1, 2, 3)
            for name in (
                "adapter_config.json",
                "adapter_model.safetensors",
                "manifest.json",
                "optimizer.safetensors",
                "trainer.json",
            )
        ),
        "config.json",
        "evaluations/step-000000.json",
        "evaluations/step-000003.json",
        "metrics.jsonl",
        "state.json",
        "trajectories/step-000001.jsonl",
        "trajectories/step-000002.jsonl",
        "trajectories/step-000003.jsonl",
    ]


def test_every_step_updates_the_adapter(three_steps):
    assert len({adapter(three_steps, step) for step in (1, 2, 3)}) == 3


def test_steps_count_from_one_in_metrics_and_state(three_steps):
    steps = [json.loads(line)["step"] for line in metrics_lines(three_steps)]
    assert (steps, json.loads((three_steps / "state.json").read_text())["step"]) == ([1, 2, 3], 3)


def test_the_groups_of_a_step_are_kept_with_scores_and_sampled_tokens(three_steps):
    groups = Run.open(three_steps, read_only=True).groups(1)
    kept = [(len(g), all(t.messages_and_choices[-1].token_ids for t in g)) for g in groups]
    assert kept == [(3, True), (3, True)]


def test_a_member_keeps_the_scorers_word(three_steps):
    member = Run.open(three_steps, read_only=True).groups(1)[0].trajectories[0]
    assert (member.reward, member.logs) == (member.metrics["ruler_score"], ["RULER explanation: checksum"])


def test_the_first_step_is_on_policy(three_steps):
    assert json.loads(metrics_lines(three_steps)[0])["policy/ratio_max_error"] < 1e-4


def test_one_seed_gives_the_same_bytes_twice(tiny_training, three_steps, tmp_path):
    train(tiny_training(tmp_path / "run"))
    assert adapter(tmp_path / "run", 3) == adapter(three_steps, 3)


def test_another_seed_gives_other_bytes(tiny_training, three_steps, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1, seed=1))
    assert adapter(tmp_path / "run", 1) != adapter(three_steps, 1)


def test_a_run_in_two_parts_ends_with_the_bytes_of_a_run_in_one(tiny_training, three_steps, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1))
    train(tiny_training(tmp_path / "run"))
    assert adapter(tmp_path / "run", 3) == adapter(three_steps, 3)


def test_the_optimizer_goes_on_where_it_was(tiny_training, three_steps, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1))
    train(tiny_training(tmp_path / "run", steps=2))
    name = "checkpoints/step-000002/optimizer.safetensors"
    assert (tmp_path / "run" / name).read_bytes() == (three_steps / name).read_bytes()


def test_resuming_does_not_touch_what_is_complete(tiny_training, tmp_path):
    folder = tmp_path / "run"
    train(tiny_training(folder, steps=1))
    before = {n: b for n, b in files_of(folder).items() if "step-000001" in n or "step-000000" in n}
    line = metrics_lines(folder)[0]
    train(tiny_training(folder))
    after = files_of(folder)
    assert ({n: after[n] for n in before}, metrics_lines(folder)[0]) == (before, line)


def test_a_finished_run_is_not_trained_further(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1))
    before = files_of(tmp_path / "run")
    assert (train(tiny_training(tmp_path / "run", steps=1)), files_of(tmp_path / "run")) == ([], before)


def test_a_run_that_was_moved_can_be_resumed(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "here", steps=1))
    (tmp_path / "here").rename(tmp_path / "there")
    train(tiny_training(tmp_path / "there", steps=2))
    assert Run.open(tmp_path / "there", read_only=True).step == 2


def test_resuming_with_another_setting_is_refused_and_names_it(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1))
    with pytest.raises(RunError, match=r"train\.learning_rate was 0\.01 and is 0\.02"):
        train(tiny_training(tmp_path / "run", train={"learning_rate": 0.02}))


def test_an_evaluation_that_a_crash_prevented_is_made_up_for(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", steps=1)
    train(config)
    lost = tmp_path / "run" / "evaluations" / "step-000001.json"
    before = lost.read_bytes()
    lost.unlink()
    train(config)
    assert lost.read_bytes() == before


def test_evaluations_come_before_after_and_when_due(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=3, run={"evaluate_every": 2}))
    assert [e["step"] for e in Run.open(tmp_path / "run", read_only=True).evaluations()] == [0, 2, 3]


def test_evaluating_does_not_change_what_is_learned(tiny_training, three_steps, tmp_path):
    train(tiny_training(tmp_path / "run", steps=2, scenarios={"held_out_limit": 0}))
    assert adapter(tmp_path / "run", 2) == adapter(three_steps, 2)


def test_only_the_last_checkpoints_and_the_best_are_kept(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=5, run={"keep_checkpoints": 2}))
    run = Run.open(tmp_path / "run", read_only=True)
    assert run.checkpoint_steps() == sorted({run.best_step("reward/mean"), 4, 5})


def test_a_step_without_signal_advances_and_leaves_the_adapter_as_it_was(tiny_training, tmp_path):
    class AllEqual:
        async def score(self, group):
            return [Score(value=0.5) for _ in group]

    train(tiny_training(tmp_path / "run", steps=2), scorer=AllEqual())
    assert adapter(tmp_path / "run", 1) == adapter(tmp_path / "run", 2)


def test_a_step_without_signal_is_reported_as_such(tiny_training, tmp_path):
    class AllEqual:
        async def score(self, group):
            return [Score(value=0.5) for _ in group]

    config = tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0})
    [line] = train(config, scorer=AllEqual())
    assert line.startswith("step 1/1: no signal, nothing learned (`groundrule doctor` says why)")


def down(request):
    return LlmError("the judge is down")


def test_a_failing_judge_leaves_members_unscored(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1), scorer=Ruler(ScriptedClient(down)))
    groups = Run.open(tmp_path / "run", read_only=True).groups(1)
    assert {t.unscored for g in groups for t in g} == {
        "JudgeError: no judge gave scores: ScriptedClient: the judge is down"
    }


def test_a_failing_judge_does_not_stop_the_run(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=2), scorer=Ruler(ScriptedClient(down)))
    assert Run.open(tmp_path / "run", read_only=True).step == 2


def test_a_scorer_that_breaks_leaves_members_unscored(tiny_training, tmp_path):
    class Broken:
        async def score(self, group):
            raise KeyError("facts")

    train(tiny_training(tmp_path / "run", steps=1), scorer=Broken())
    groups = Run.open(tmp_path / "run", read_only=True).groups(1)
    assert [t.unscored for g in groups for t in g] == ["KeyError: 'facts'"] * 6


def test_a_judge_that_cannot_be_had_stops_the_run_before_it_begins(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", judge={"model": "opnai/o3"})
    with pytest.raises(ConfigError, match=r"did you mean openai/o3\?"):
        asyncio.run(train_rl(config, report=lambda line: None))
    assert not (tmp_path / "run").exists()


def test_a_scorer_with_a_wrong_setting_stops_the_run(tiny_training, tmp_path):
    class Wrong:
        async def score(self, group):
            raise ConfigError("no such rubric")

    with pytest.raises(ConfigError, match="no such rubric"):
        train(tiny_training(tmp_path / "run", scenarios={"held_out_limit": 0}), scorer=Wrong())


def rollout_with(change):
    """An agent that answers like the default one and then does `change(trajectory, number)`."""
    numbers = iter(range(1000))

    async def rollout(policy, scenario):
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=policy.base_url, api_key=policy.api_key, max_retries=0) as client:
            trajectory = await AnswerOnce(client, max_tokens=6)(policy, scenario)
        return change(trajectory, next(numbers))

    return rollout


def as_it_is(trajectory, number):
    return trajectory


def test_an_agent_with_a_client_of_its_own_gives_the_same_bytes_twice(tiny_training, tmp_path):
    for name in ("a", "b"):
        train(tiny_training(tmp_path / name, steps=2), rollout=rollout_with(as_it_is))
    assert adapter(tmp_path / "a", 2) == adapter(tmp_path / "b", 2)


def test_requests_that_do_not_say_which_attempt_they_belong_to_are_answered(tiny_training, tmp_path):
    async def rollout(policy, scenario):
        return await agent(replace(policy, api_key=policy.api_key.partition(".")[0]), scenario)

    agent = rollout_with(as_it_is)
    config = tiny_training(tmp_path / "run", steps=1, train={"rollout_timeout_s": 30})
    train(config, rollout=rollout)
    assert Run.open(tmp_path / "run", read_only=True).step == 1


def told_something_else(trajectory, number):
    opening = {"role": "system", "content": f"Be brief. It is {number} o'clock."}
    return trajectory.model_copy(
        update={"messages_and_choices": [opening, *trajectory.messages_and_choices[1:]]}
    )


def test_different_system_prompts_inside_a_group_stop_the_run(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", scenarios={"held_out_limit": 0})
    with pytest.raises(TrainingError, match=r"the system prompt of trajectory 1 \(.*\) is not that of"):
        train(config, rollout=rollout_with(told_something_else))


def reminded_later(trajectory, number):
    later = {"role": "system", "content": f"{number} messages so far."}
    return trajectory.model_copy(update={"messages_and_choices": [*trajectory.messages_and_choices, later]})


def test_system_messages_in_mid_conversation_may_differ(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0})
    train(config, rollout=rollout_with(reminded_later))
    assert Run.open(tmp_path / "run", read_only=True).step == 1


def every_third_fails(trajectory, number):
    if number % 3 == 0:
        raise TimeoutError("the tool did not answer")
    return trajectory


def test_failed_rollouts_are_kept_as_exceptions(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0})
    train(config, rollout=rollout_with(every_third_fails))
    groups = Run.open(tmp_path / "run", read_only=True).groups(1)
    failures = [str(e) for g in groups for e in g.exceptions]
    assert (sum(map(len, groups)), failures) == (4, ["TimeoutError: the tool did not answer"] * 2)


def always_fails(trajectory, number):
    raise TimeoutError("the tool did not answer")


def test_too_many_failed_rollouts_stop_the_run_with_their_cause(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", scenarios={"held_out_limit": 0})
    with pytest.raises(GatherError, match="the tool did not answer"):
        train(config, rollout=rollout_with(always_fails))


def test_failed_rollouts_that_stopped_the_run_are_kept_for_the_doctor(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", scenarios={"held_out_limit": 0})
    with pytest.raises(GatherError):
        train(config, rollout=rollout_with(always_fails))
    assert [f.text for f in examine(tmp_path / "run") if "rollouts failed" in f.text] == [
        "6 of 6 rollouts failed; most often (6x) TimeoutError: the tool did not answer. "
        "Run one rollout by hand and mend that first"
    ]


def test_a_step_that_works_at_the_second_try_forgets_the_first(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0})
    with pytest.raises(GatherError):
        train(config, rollout=rollout_with(always_fails))
    train(config, rollout=rollout_with(as_it_is))
    assert [p.name for p in (tmp_path / "run" / "trajectories").iterdir()] == ["step-000001.jsonl"]


def fails_at_first(trajectory, number):
    if number == 0:
        raise TimeoutError("the tool did not answer")
    return trajectory


def test_an_evaluation_survives_a_failed_rollout_and_says_so(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1), rollout=rollout_with(fails_at_first))
    answers = Run.open(tmp_path / "run", read_only=True).evaluations()[0]["answers"]
    failed = [a for a in answers if a["score"] is None]
    assert [(a["answer"], a["checks"], a["explanation"]) for a in failed] == [
        ("", {}, "the attempt failed: TimeoutError: the tool did not answer")
    ]


def test_an_agent_without_sampled_tokens_is_refused_with_the_remedy(tiny_training, tmp_path):
    async def rollout(policy, scenario):
        numbers.append(0)
        answer = {"role": "assistant", "content": "x" * len(numbers)}
        return Trajectory(messages_and_choices=[*scenario.messages(), answer])

    numbers = []
    config = tiny_training(tmp_path / "run", scenarios={"held_out_limit": 0})
    with pytest.raises(TrainingError, match=r"ask the model through model\.openai_client\(\)"):
        train(config, rollout=rollout)


def test_scenarios_without_a_system_prompt_are_refused(tiny_training, scenario_file, tmp_path):
    scenario_file.write_text('{"id": "a", "question": "Refunds?"}\n')
    with pytest.raises(ConfigError, match=r"scenario 'a' .* has no system prompt"):
        train(tiny_training(tmp_path / "run"))


def test_a_system_prompt_of_the_configuration_replaces_the_scenarios_own(tiny_training, tmp_path):
    train(tiny_training(tmp_path / "run", steps=1, policy={"system": "Rhyme."}))
    first = Run.open(tmp_path / "run", read_only=True).groups(1)[0].trajectories[0]
    assert first.messages()[0] == {"role": "system", "content": "Rhyme."}


def test_what_judging_cost_is_kept_with_the_run(tiny_training, tmp_path):
    def judge(request):
        scores = [{"trajectory_id": str(i), "explanation": "", "score": i / 10} for i in range(1, 4)]
        return {"scores": scores}

    train(
        tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0}),
        scorer=Ruler(ScriptedClient(judge)),
    )
    assert [call["purpose"] for call in Run.open(tmp_path / "run", read_only=True).costs()] == [
        "judge/ruler"
    ] * 2
