"""A person's session: what is asked, saved, taken back, and asked again."""

from __future__ import annotations

import pytest

from fakes import group_of
from groundrule.data.preference_records import append_ranking, read_rankings, write_rankings
from groundrule.data.records import write_groups
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, DataError
from groundrule.ranking.session import Session
from groundrule.ranking.tasks import read_source
from preferences import ranking

GROUPS = [group_of("Yes.", "No.", "Perhaps."), group_of("Never.", "Ever."), group_of("Soon.", "Late.")]


@pytest.fixture
def file(tmp_path):
    write_groups(tmp_path / "groups.jsonl", GROUPS)
    return tmp_path / "groups.jsonl"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.jsonl"


def start(file, out, annotator="ann", mode="order", seed=None):
    return Session(read_source(file).asked, out, annotator=annotator, mode=mode, seed=seed)


def texts(task):
    return [answer.text for answer in task.answers]


def judge(session):
    """Puts the answers into the order in which they are shown."""
    task = session.current()
    session.judge(task.key, [[i] for i in range(len(task.answers))])
    return task


def test_a_stopped_session_goes_on_with_what_is_not_done_in_the_same_order(file, out):
    with start(file, out, seed=5) as session:
        before = [texts(task) for task in session.tasks]
        judge(session)
    with start(file, out) as session:
        assert session.seed == 5
        assert [texts(task) for task in session.tasks] == before
        assert texts(session.current()) == before[1]
        assert (session.done, len(session.tasks)) == (1, 3)


def test_what_one_annotator_has_done_another_is_asked(file, out):
    with start(file, out) as session:
        judge(session)
    with start(file, out, annotator="bob") as session:
        assert session.done == 0


def test_people_and_seeds_see_answers_in_different_orders(tmp_path, out):
    write_groups(tmp_path / "wide.jsonl", [group_of(*"abcdefgh")])
    orders = set()
    for annotator, seed in [("ann", 0), ("ann", 1), ("bob", 0)]:
        with start(tmp_path / "wide.jsonl", out, annotator=annotator, seed=seed) as session:
            orders.add(tuple(texts(session.current())))
    assert len(orders) == 3


def test_another_seed_than_the_file_s_is_refused(file, out):
    with start(file, out, seed=5) as session:
        judge(session)
    with pytest.raises(ConfigError, match=r"--seed is 6, but 'ann' began .* with seed 5"):
        start(file, out, seed=6)
    start(file, out, seed=5).close()


def test_the_file_keeps_answers_as_shown_without_scores_and_with_the_seed(tmp_path, out):
    scored = ranking("good", "bad").model_copy(update={"annotator": "judge", "source": "ruler"})
    scored = scored.model_copy(
        update={"answers": [a.model_copy(update={"score": 0.9 - i}) for i, a in enumerate(scored.answers)]}
    )
    write_rankings(tmp_path / "judged.jsonl", [scored])
    with start(tmp_path / "judged.jsonl", out, seed=3) as session:
        shown = texts(judge(session))
    [said] = read_rankings(out)
    assert [a.text for a in said.answers] == shown
    assert [a.score for a in said.answers] == [None, None]
    assert said.metadata == {"rank": {"mode": "order", "seed": 3}}
    assert (said.annotator, said.source) == ("ann", "human")


def test_skipped_tasks_come_again_at_the_end_and_after_a_restart(file, out):
    with start(file, out) as session:
        first = session.current()
        session.skip(first.key)
        judge(session)
        judge(session)
        assert session.current() == first and session.skipped == 1
    with start(file, out) as session:
        assert session.current() == first
        judge(session)
        assert session.current() is None and session.skipped == 0


def test_undo_takes_the_last_line_back_and_shows_its_task_again(file, out):
    with start(file, out) as session:
        first, second = judge(session), judge(session)
        assert session.undo() and session.current() == second
        assert len(read_rankings(out)) == 1
        assert session.undo() and session.current() == first
        assert out.read_bytes() == b""
        assert not session.undo() and not session.can_undo


def test_undo_follows_skips_and_judgements_in_their_order(file, out):
    with start(file, out) as session:
        first = session.current()
        session.skip(first.key)
        second = judge(session)
        judge(session)
        judge(session)
        assert session.undo() and session.current() == first
        assert session.undo() and session.undo() and session.current() == second
        assert session.undo() and session.current() == first and session.done == 0
        assert not session.undo()


def test_undo_reaches_back_into_an_earlier_session(file, out):
    with start(file, out) as session:
        first = judge(session)
    with start(file, out) as session:
        assert session.can_undo and session.undo()
        assert session.current() == first


def test_undo_leaves_other_people_s_lines_and_other_files_lines_alone(file, out):
    append_ranking(out, ranking("good", "bad", annotator="ann"))
    with start(file, out, annotator="bob") as session:
        judge(session)
    with start(file, out) as session:
        assert not session.can_undo and not session.undo()
    assert len(read_rankings(out)) == 2


def test_two_sessions_do_not_share_a_file(file, out):
    with start(file, out), pytest.raises(DataError, match="another `groundrule rank` writes to it"):
        start(file, out, annotator="bob")
    start(file, out, annotator="bob").close()


def test_a_session_without_a_judgement_leaves_no_file(file, out):
    start(file, out).close()
    assert not out.exists()


def test_comparing_asks_for_every_two_answers_once(file, out):
    with start(file, out, mode="compare") as session:
        assert len(session.tasks) == 3 + 1 + 1
        assert len({frozenset(texts(task)) for task in session.tasks}) == 5
        while session.current():
            judge(session)
    assert [len(r.answers) for r in read_rankings(out)] == [2] * 5


def test_what_was_put_into_order_need_not_be_compared(file, out):
    with start(file, out) as session:
        judge(session)
    with start(file, out, mode="compare") as session:
        assert session.done == 3


def test_a_cut_last_line_of_the_file_is_put_aside_and_nothing_is_lost(file, out):
    with start(file, out) as session:
        judge(session)
    with out.open("ab") as stream:
        stream.write(b'{"prompt": [{"role"')
    with start(file, out) as session:
        judge(session)
        assert session.undo()
    assert len(read_rankings(out)) == 1


def test_a_run_folder_is_asked_about_unscored_answers_too(tmp_path, out):
    group = group_of("Yes.", "No.")
    group.trajectories[0].unscored = "the judge failed"
    with Run.create(tmp_path / "run", {}) as run:
        run.record_step(1, [group, GROUPS[0]], {})
    with start(tmp_path / "run", out) as session:
        assert [len(task.answers) for task in session.tasks] == [2, 3]


def test_a_file_with_nothing_to_compare_says_what_was_left_out(tmp_path):
    write_groups(tmp_path / "same.jsonl", [group_of("Yes.", "Yes."), group_of("No.")])
    with pytest.raises(
        DataError, match=r"no two different answers .* 2 groups with fewer than two different"
    ):
        read_source(tmp_path / "same.jsonl")


def test_a_file_of_groups_as_the_output_is_refused_and_stays_as_it_is(file):
    before = file.read_bytes()
    with pytest.raises(DataError, match="group of trajectories, not a preference"):
        start(file, file)
    assert file.read_bytes() == before
