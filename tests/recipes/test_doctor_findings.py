"""What `examine` says about a run: one cause at a time."""

from __future__ import annotations

import pytest

from groundrule.data import TrajectoryGroup
from groundrule.data.records import write_groups
from groundrule.data.runs import Run
from groundrule.errors import RunError
from groundrule.recipes.doctor import examine
from made_up_runs import CONFIG, attempt, group_with, healthy_run, made_up_run


def faults(folder) -> list[str]:
    return [finding.text for finding in examine(folder) if finding.is_fault]


def test_a_healthy_run_has_no_fault(tmp_path):
    assert faults(healthy_run(tmp_path)) == []


def test_a_healthy_run_is_described(tmp_path):
    assert [finding.text for finding in examine(healthy_run(tmp_path))] == [
        "no rollout failed (4 attempts)",
        "every trajectory was scored (4)",
        "0 of 2 groups are ties; mean spread within groups 0.200",
        "all 4 scored trajectories carry their sampled tokens",
        "0% of the answers were cut at policy.max_tokens",
        "2 different adapters in 2 kept checkpoints",
        "mean reward 0.400 in the first 1 steps, 0.500 in the last",
    ]


def test_ties_are_the_cause_when_most_groups_have_equal_rewards(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.5, 0.5)], [group_with(0.7, 0.7)]])
    [fault] = faults(run)
    assert fault.startswith("2 of 2 groups are ties: their members got equal rewards and teach nothing.")


def test_half_the_groups_tied_is_no_fault(tmp_path):
    assert faults(made_up_run(tmp_path, [[group_with(0.5, 0.5)], [group_with(0.1, 0.7)]])) == []


def test_missing_logprobs_are_counted(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.2, 0.6, logprobs=False)], [group_with(0.2, 0.6)]])
    [fault] = faults(run)
    assert fault.startswith("2 of 4 scored trajectories carry no sampled tokens with logprobs")


def test_truncation_is_the_cause_when_most_answers_are_cut(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.2, 0.6, finish_reason="length")]] * 2)
    assert faults(run) == [
        "100% of the answers were cut at policy.max_tokens; raise it, or ask for shorter answers in the system prompt"
    ]


def test_when_all_rollouts_failed_the_most_frequent_cause_is_named(tmp_path):
    failed = [TrajectoryGroup([TimeoutError("no result after 30 s"), TimeoutError("no result after 30 s")])]
    [fault] = faults(made_up_run(tmp_path, [failed, failed]))
    assert fault == (
        "4 of 4 rollouts failed; most often (4x) TimeoutError: no result after 30 s. "
        "Run one rollout by hand and mend that first"
    )


def test_an_adapter_that_never_moved_is_noticed(tmp_path):
    steps = [[group_with(0.2, 0.6)], [group_with(0.3, 0.7)]]
    run = made_up_run(tmp_path, steps, adapters=[b"same", b"same"])
    assert faults(run) == ["the adapter is the same in all 2 kept checkpoints: no update moved it"]


def test_one_checkpoint_says_nothing_about_movement(tmp_path):
    assert faults(made_up_run(tmp_path, [[group_with(0.2, 0.6)]])) == []


def test_unscored_members_are_counted_with_the_most_frequent_reason(tmp_path):
    groups = [TrajectoryGroup([attempt(unscored="the judge is down"), attempt(0.2), attempt(0.6)])]
    assert faults(made_up_run(tmp_path, [groups, groups])) == [
        "2 of 6 trajectories have no score; most often (2x): the judge is down. They are left out of training"
    ]


def test_a_run_without_any_score_has_that_as_its_only_fault(tmp_path):
    groups = [TrajectoryGroup([attempt(unscored="the judge is down")] * 2)]
    assert faults(made_up_run(tmp_path, [groups, groups])) == [
        "4 of 4 trajectories have no score; most often (4x): the judge is down. They are left out of training"
    ]


def test_groups_with_one_scored_member_cannot_be_compared(tmp_path):
    assert faults(made_up_run(tmp_path, [[group_with(0.2)], [group_with(0.6)]])) == [
        "no group has two scored members, so nothing can be compared; raise train.group_size"
    ]


def test_a_reward_that_fell_is_a_fault(tmp_path):
    run = made_up_run(tmp_path, [[group_with(0.2, 0.6)]] * 2, means=[0.6, 0.4])
    [fault] = faults(run)
    assert fault.startswith("mean reward 0.600 in the first 1 steps, 0.400 in the last: it fell")


def test_a_reward_that_wavers_is_none(tmp_path):
    assert faults(made_up_run(tmp_path, [[group_with(0.2, 0.6)]] * 2, means=[0.5, 0.49])) == []


def test_a_run_before_its_first_step_is_to_be_started_again(tmp_path):
    Run.create(tmp_path / "run", CONFIG).close()
    assert faults(tmp_path / "run") == [
        f"{tmp_path / 'run'}: no step is complete; start it again with the same command"
    ]


def test_a_run_whose_groups_were_all_dropped_is_no_good_news(tmp_path):
    assert faults(made_up_run(tmp_path, [[], []])) == [
        "none of the 2 steps has a single trajectory: every rollout failed and its group was dropped. "
        "Run one rollout by hand and mend that first"
    ]


def test_what_stopped_the_run_in_its_first_step_is_named(tmp_path):
    with Run.create(tmp_path / "run", CONFIG) as run:
        write_groups(run.failed_path, [TrajectoryGroup([ValueError("no key"), ValueError("no key")])])
    assert faults(tmp_path / "run") == [
        f"{tmp_path / 'run'}: no step is complete; start it again with the same command",
        "2 of 2 rollouts failed; most often (2x) ValueError: no key. Run one rollout by hand and mend that first",
    ]


def test_examining_changes_nothing_in_the_folder(tmp_path):
    run = healthy_run(tmp_path / "run")
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    examine(run)
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(RunError, match=r"is not a run folder: it has no state\.json"):
        examine(tmp_path)
