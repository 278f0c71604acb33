"""Run folders: a step is complete or has not happened, whatever moment the process ends at."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, RunError

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")

CONFIG = {"train": {"steps": 4, "learning_rate": 1e-4}, "judge": {"model": "local/likelihood"}}


def changed(**train: Any) -> dict[str, Any]:
    return {**CONFIG, "train": {**CONFIG["train"], **train}}  # type: ignore[dict-item]


def group(reward: float) -> TrajectoryGroup:
    return TrajectoryGroup([Trajectory(reward=reward)], scenario_id="faq-1")


def do_step(run: Run) -> None:
    """What a trainer does for one step: the checkpoint is renamed into place, then the step recorded."""
    step = run.next_step
    draft = run.folder / "checkpoints" / f"step-{step:06d}.tmp"
    draft.mkdir(parents=True)
    (draft / "adapter.bin").write_text(f"weights {step}")
    draft.rename(run.checkpoint_folder(step))
    run.record_step(step, [group(step / 10)], {"reward/mean": step / 10}, state={"cursor": step})


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the folder but the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def run_of(folder: Path, steps: int) -> Run:
    run = Run.create(folder, CONFIG)
    for _ in range(steps):
        do_step(run)
    return run


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(RunError) as caught:
        action()
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "faq" / "first"


class CrashAt:
    """An audit hook that ends the process, without any clean-up, at the nth change of a file in a folder."""

    EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.left = str(folder), count

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Removing a folder names what is in it relative to an open handle.
        if event in self.EVENTS and str(arguments[0]).startswith((self.folder, "adapter")):
            self.left -= 1
            if self.left < 0:
                os._exit(9)


def crashes(folder: Path, count: int, work: Callable[[], None]) -> bool:
    """Do the work in a process of its own that ends at its nth change; False if it got through."""
    child = os.fork()
    if child == 0:
        sys.addaudithook(CrashAt(folder, count))
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def crash_points(tmp_path: Path, whole: Path, work: Callable[[Path], None]) -> Iterator[Path]:
    """A copy of the folder for every moment at which the work can be cut off."""
    for count in range(1000):
        copy = tmp_path / f"crash-{count}"
        shutil.copytree(whole, copy)
        if not crashes(copy, count, lambda copy=copy: work(copy)):  # type: ignore[misc]
            assert count > 5
            return
        yield copy
    raise AssertionError("the work never got through")


def next_step_of(folder: Path) -> None:
    do_step(Run.open(folder))


def test_a_new_run_is_before_its_first_step(folder: Path) -> None:
    with Run.create(folder, CONFIG) as run:
        assert (run.step, run.next_step, run.config) == (0, 1, CONFIG)


def test_recorded_steps_are_there_when_the_run_is_opened_again(folder: Path) -> None:
    run_of(folder, 2).close()
    with Run.open(folder) as run:
        assert (run.step, run.state, run.metrics()) == (
            2,
            {"cursor": 2},
            [{"step": 1, "reward/mean": 0.1}, {"step": 2, "reward/mean": 0.2}],
        )


def test_the_groups_of_a_step_are_kept(folder: Path) -> None:
    with run_of(folder, 2) as run:
        assert run.groups(2) == [group(0.2)]


def test_the_files_are_plain_and_stand_where_they_are_documented(folder: Path) -> None:
    with run_of(folder, 1) as run:
        run.write_evaluation(1, "", {"step": 1})
        assert sorted(contents(folder)) == [
            "checkpoints/step-000001/adapter.bin",
            "config.json",
            "evaluations/step-000001.json",
            "metrics.jsonl",
            "state.json",
            "trajectories/step-000001.jsonl",
        ]


def test_a_metrics_line_begins_with_its_step(folder: Path) -> None:
    with run_of(folder, 1) as run:
        assert run.metrics_path.read_text() == '{"step":1,"reward/mean":0.1}\n'


def test_a_step_can_only_follow_the_last_one(folder: Path) -> None:
    with run_of(folder, 1) as run:
        assert "step 3 cannot be recorded; the next one is 2" in refusal(lambda: run.record_step(3, [], {}))


@pytest.mark.parametrize("value", [float("nan"), "0.5"])
def test_a_metric_that_is_no_number_is_refused_by_name(folder: Path, value: Any) -> None:
    with Run.create(folder, CONFIG) as run, pytest.raises(ValueError, match="metric 'reward/mean' is"):
        run.record_step(1, [], {"reward/mean": value})


def test_an_unknown_metric_stays_unknown(folder: Path) -> None:
    with Run.create(folder, CONFIG) as run:
        run.record_step(1, [], {"judge/cost_usd": None})
        assert run.metrics() == [{"step": 1, "judge/cost_usd": None}]


def test_a_step_that_failed_to_be_recorded_can_be_tried_again(folder: Path) -> None:
    with Run.create(folder, CONFIG) as run:
        run.metrics_path.write_text('{"step":1,"reward/mean":0.9}\n')
        do_step(run)
        assert run.metrics() == [{"step": 1, "reward/mean": 0.1}]


def test_after_a_crash_at_any_moment_the_finished_steps_are_untouched(tmp_path: Path, folder: Path) -> None:
    run_of(folder, 2).close()
    before = contents(folder)
    for crashed in crash_points(tmp_path, folder, next_step_of):
        with Run.open(crashed) as run:
            if run.step == 2:
                assert contents(crashed) == before


def test_after_a_crash_at_any_moment_the_run_ends_as_an_uninterrupted_one(
    tmp_path: Path, folder: Path
) -> None:
    run_of(folder, 2).close()
    run_of(tmp_path / "uninterrupted", 3).close()
    for crashed in crash_points(tmp_path, folder, next_step_of):
        with Run.open(crashed) as run:
            if run.step == 2:
                do_step(run)
        assert contents(crashed) == contents(tmp_path / "uninterrupted")


def test_a_crash_while_a_crash_is_mended_is_mended_too(tmp_path: Path, folder: Path) -> None:
    run_of(folder, 2).close()
    before = contents(folder)
    (folder / "trajectories" / ".step-000003.jsonl.77.ab.tmp").write_text("{")
    (folder / "trajectories" / "step-000003.jsonl").write_text("{}\n")
    (folder / "checkpoints" / "step-000003").mkdir()
    (folder / "checkpoints" / "step-000003" / "adapter.bin").write_text("half")
    (folder / "checkpoints" / "step-000004.tmp").mkdir()
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"step":3,"reward/mean":0.3}\n{"step":4')
    for crashed in crash_points(tmp_path, folder, lambda copy: Run.open(copy).close()):
        Run.open(crashed).close()
        assert contents(crashed) == before


def test_a_crash_while_checkpoints_are_pruned_leaves_only_whole_ones(tmp_path: Path, folder: Path) -> None:
    run_of(folder, 5).close()
    for crashed in crash_points(tmp_path, folder, lambda copy: print(Run.open(copy).prune_checkpoints())):
        with Run.open(crashed) as run:
            assert all((run.checkpoint_folder(s) / "adapter.bin").exists() for s in run.checkpoint_steps())


def test_a_crash_while_a_run_is_created_can_be_created_again(tmp_path: Path) -> None:
    for crashed in crash_points(tmp_path, tmp_path_with_nothing(tmp_path), create):
        with Run.open_or_create(crashed, CONFIG) as run:
            assert (run.step, run.config) == (0, CONFIG)


def tmp_path_with_nothing(tmp_path: Path) -> Path:
    empty = tmp_path / "empty"
    empty.mkdir()
    return empty


def create(folder: Path) -> None:
    Run.open_or_create(folder, CONFIG)


def test_costs_of_later_steps_are_cut_and_the_others_keep_their_bytes(folder: Path) -> None:
    run_of(folder, 1).close()
    kept = '{"cost_usd": 0.1 , "step": 1}\n{"cost_usd":0.2}\n'
    (folder / "costs.jsonl").write_text(kept + '{"cost_usd":0.3,"step":2}\n')
    Run.open(folder).close()
    assert (folder / "costs.jsonl").read_text() == kept


def test_evaluations_of_later_steps_are_removed(folder: Path) -> None:
    run_of(folder, 1).close()
    (folder / "evaluations").mkdir()
    (folder / "evaluations" / "step-000002.json").write_text("{}")
    with Run.open(folder) as run:
        assert not run.evaluation_path(2).exists()


def test_evaluations_come_in_the_order_of_their_steps(folder: Path) -> None:
    with run_of(folder, 2) as run:
        for step in (2, 0):
            run.write_evaluation(step, "", {"step": step})
        run.write_evaluation(1, "train", {"step": 1})
        assert run.evaluations() == [{"step": 0}, {"step": 2}]


def test_an_evaluation_of_a_step_that_is_not_done_is_refused(folder: Path) -> None:
    with run_of(folder, 1) as run:
        assert "step 2 cannot be evaluated" in refusal(lambda: run.write_evaluation(2, "", {}))


def test_checkpoints_are_found_by_number_and_drafts_are_not(folder: Path) -> None:
    with run_of(folder, 2) as run:
        run.step = 2_000_000
        for name in (
            "step-000009",
            "step-000010",
            "step-000100",
            "step-1000000",
            "step-final.tmp",
            "step-000011.old",
        ):
            (folder / "checkpoints" / name).mkdir()
        assert run.checkpoint_steps() == [1, 2, 9, 10, 100, 1000000]


def test_the_last_three_checkpoints_and_the_best_are_kept(folder: Path) -> None:
    with run_of(folder, 6) as run:
        assert (run.prune_checkpoints(best=2), run.checkpoint_steps()) == ([1, 3], [2, 4, 5, 6])


def test_without_a_best_step_the_last_three_checkpoints_are_kept(folder: Path) -> None:
    with run_of(folder, 5) as run:
        run.prune_checkpoints()
        assert run.checkpoint_steps() == [3, 4, 5]


def test_keeping_no_checkpoint_is_refused(folder: Path) -> None:
    with run_of(folder, 1) as run, pytest.raises(ConfigError, match="keep_last=0"):
        run.prune_checkpoints(keep_last=0)


def test_a_folder_in_use_is_refused_with_its_name_and_owner(folder: Path) -> None:
    with Run.create(folder, CONFIG):
        message = refusal(lambda: Run.open(folder))
    assert message.startswith(f"{folder} is in use by process {os.getpid()};")


def test_a_closed_run_can_be_opened_again(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    Run.open(folder).close()


def test_a_run_that_could_not_be_opened_is_not_locked(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    whole = (folder / "state.json").read_text()
    (folder / "state.json").write_text("{")
    refusal(lambda: Run.open(folder))
    (folder / "state.json").write_text(whole)
    Run.open(folder).close()


def test_a_run_in_use_can_be_read(folder: Path) -> None:
    with run_of(folder, 2):
        assert Run.open(folder, read_only=True).step == 2


def test_a_reader_sees_complete_steps_only_and_changes_nothing(folder: Path) -> None:
    run_of(folder, 1).close()
    with (folder / "metrics.jsonl").open("a") as stream:
        stream.write('{"step":2,"reward/mean":0.3}\n')
    before = contents(folder)
    assert len(Run.open(folder, read_only=True).metrics()) == 1
    assert contents(folder) == before


def test_a_reader_cannot_write(folder: Path) -> None:
    run_of(folder, 1).close()
    run = Run.open(folder, read_only=True)
    assert "opened read-only" in refusal(lambda: run.record_step(2, [], {}))


def test_a_closed_run_cannot_write(folder: Path) -> None:
    run = run_of(folder, 1)
    run.close()
    assert "is closed" in refusal(lambda: run.record_step(2, [], {}))


def test_resuming_goes_on_at_the_last_step(folder: Path) -> None:
    run_of(folder, 2).close()
    with Run.open_or_create(folder, CONFIG) as run:
        assert run.next_step == 3


def test_another_configuration_is_refused_with_the_differing_keys(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    message = refusal(lambda: Run.open_or_create(folder, {**changed(learning_rate=0.001), "seed": 1}))
    assert (
        "another configuration: train.learning_rate was 0.0001 and is 0.001; seed was None and is 1. "
        "Resuming needs the same configuration" in message
    )


def test_more_steps_are_a_continuation(folder: Path) -> None:
    run_of(folder, 1).close()
    Run.open_or_create(folder, changed(steps=8)).close()
    assert json.loads((folder / "config.json").read_text())["train"]["steps"] == 8


def test_fewer_steps_are_another_configuration(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    assert "train.steps was 4 and is 3" in refusal(lambda: Run.open_or_create(folder, changed(steps=3)))


def test_creating_over_a_run_with_another_configuration_names_the_keys(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    assert "train.learning_rate was" in refusal(lambda: Run.create(folder, changed(learning_rate=0.5)))


def test_creating_over_the_same_run_says_how_to_resume(folder: Path) -> None:
    Run.create(folder, CONFIG).close()
    assert "resume it with Run.open_or_create" in refusal(lambda: Run.create(folder, CONFIG))


def test_a_configuration_that_json_cannot_hold_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        Run.create(folder, {"path": folder})


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    assert refusal(lambda: Run.open(tmp_path)) == f"{tmp_path} is not a run folder: it has no state.json"


def test_parts_of_a_run_without_its_state_are_not_written_over(folder: Path) -> None:
    run_of(folder, 1).close()
    (folder / "state.json").unlink()
    assert "parts of a run but no state.json" in refusal(lambda: Run.open_or_create(folder, CONFIG))


def test_a_cut_state_file_is_named_with_the_way_back(folder: Path) -> None:
    run_of(folder, 2).close()
    (folder / "state.json").write_text('{"version": 1, "st')
    message = refusal(lambda: Run.open(folder))
    assert "state.json is damaged" in message and '"step": 2' in message


@pytest.mark.parametrize(
    "text", ["[]", "5", '{"version": 1, "step": "2"}', '{"version": 1, "step": -1}', "", "\xff"]
)
def test_a_state_file_without_a_step_is_refused(folder: Path, text: str) -> None:
    run_of(folder, 1).close()
    (folder / "state.json").write_text(text, encoding="latin-1")
    assert "state.json" in refusal(lambda: Run.open(folder))


def test_a_state_of_another_version_is_refused(folder: Path) -> None:
    run_of(folder, 1).close()
    (folder / "state.json").write_text('{"version": 2, "step": 1}')
    assert "has version 2; this program reads version 1" in refusal(lambda: Run.open(folder))


def test_a_damaged_configuration_is_named(folder: Path) -> None:
    run_of(folder, 1).close()
    (folder / "config.json").write_text("{")
    assert "config.json is damaged" in refusal(lambda: Run.open(folder))
