"""The report: one page from the files of a run, with everything that happened and nothing from outside."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fake_run import CONFIG, fake_run, sampled

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.runs import Run
from groundrule.errors import RunError
from groundrule.viewer import write_report

USER = {"role": "user", "content": "Open?"}
VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Checks that every element is closed, and gathers headings and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.headings: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    return parser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(fake_run(tmp_path_factory.mktemp("run"))).read_text("utf-8")


def page_of(
    folder: Path, *groups: TrajectoryGroup, config: dict[str, Any] | None = None, **evaluation: Any
) -> str:
    """The report of a run of one step."""
    with Run.create(folder, config or {}) as run:
        run.record_step(1, groups, {})
        if evaluation:
            run.write_evaluation(0, "", {"step": 0, "answers": evaluation["before"]})
            run.write_evaluation(1, "", {"step": 1, "answers": evaluation["after"]})
    return write_report(folder).read_text("utf-8")


def said(text: str, reward: float = 0.0, **more: Any) -> Trajectory:
    return Trajectory(messages_and_choices=[USER, sampled(text)], reward=reward, **more)


def answers(*scores: float | None, **more: Any) -> list[dict[str, Any]]:
    return [
        {"scenario_id": str(i), "question": f"Question {i}?", "answer": f"Answer {i}", "score": score, **more}
        for i, score in enumerate(scores)
    ]


def table_row(page: str, name: str) -> list[str]:
    """The cells of the row that begins with this name."""
    found = re.search(rf"<tr><th[^>]*>{re.escape(name)}</th>(.*?)</tr>", page)
    assert found is not None
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td>(.*?)</td>", found[1])]


def notices(page: str) -> str:
    found = re.search(r'<ul class="notices">(.*?)</ul>', page)
    return "" if found is None else re.sub(r"<[^>]+>", "", found[1])


def test_the_page_is_well_formed(page: str) -> None:
    assert outline(page).open == []


def test_the_page_has_its_sections_in_reading_order(page: str) -> None:
    assert outline(page).headings == [
        "Result",
        "What to know",
        "Curves",
        "Before and after",
        "Every step",
        "Cost",
        "Configuration",
    ]


def test_the_page_loads_nothing_and_runs_nothing(page: str) -> None:
    parsed = outline(page)
    assert parsed.links == [] and not {"script", "link", "img", "iframe"} & set(parsed.seen)
    assert not re.search(r"url\(|@import|https?://", page)


def test_the_page_adapts_to_dark_screens_and_to_phones(page: str) -> None:
    assert "prefers-color-scheme: dark" in page and "max-width: 40rem" in page and 'name="viewport"' in page


def test_the_header_names_project_model_judge_and_steps(page: str) -> None:
    header = re.sub(r"<[^>]+>", " ", page.split("<header>")[1].split("</header>")[0])
    assert all(text in header for text in ("support / first", "smollm2-135m", "local/likelihood", "12 of 12"))


def test_four_charts_are_drawn(page: str) -> None:
    assert page.count("<figure") == 4


def test_every_answer_of_every_step_is_there(page: str) -> None:
    assert page.count('<div class="reward">') == 192


def test_a_page_made_twice_is_the_same_page(tmp_path: Path) -> None:
    folder = fake_run(tmp_path, steps=1)
    assert write_report(folder).read_bytes() == write_report(folder).read_bytes()


def test_keys_are_hidden(page: str) -> None:
    assert "sk-never-shown" not in page and CONFIG["judge"]["api_key"] == "sk-never-shown"


def test_a_run_in_use_can_be_reported(tmp_path: Path) -> None:
    with Run.create(tmp_path, {}) as run:
        run.record_step(1, [TrajectoryGroup([said("Yes.", 1.0), said("No.", 0.5)])], {})
        assert "Yes." in write_report(tmp_path).read_text("utf-8")


def test_a_run_before_its_first_step_has_a_page(tmp_path: Path) -> None:
    Run.create(tmp_path, {}).close()
    assert "No step is recorded yet." in write_report(tmp_path).read_text("utf-8")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is not a run folder"):
        write_report(tmp_path)


def test_answers_are_ranked_by_reward_and_unscored_ones_come_last(tmp_path: Path) -> None:
    group = TrajectoryGroup(
        [said("worse", 0.2), said("none", 0.9, unscored="judge was down"), said("better", 0.8)]
    )
    shown = re.findall(r'<p class="text">(worse|none|better)</p>', page_of(tmp_path, group))
    assert shown == ["better", "worse", "none"]


def test_an_unscored_answer_shows_the_reason_and_no_number(tmp_path: Path) -> None:
    page = page_of(tmp_path, TrajectoryGroup([said("Yes.", 0.0, unscored="judge was down")]))
    assert '<span class="score none">no score</span>' in page and "judge was down" in page


def test_the_judges_explanation_stands_with_the_answer(tmp_path: Path) -> None:
    page = page_of(tmp_path, TrajectoryGroup([said("Yes.", logs=["RULER explanation: too\nshort", "seen"])]))
    assert '<p class="why">too\nshort</p>' in page


def test_text_of_agents_and_users_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'&"
    member = said(evil, logs=[f"RULER explanation: {evil}"], metadata={})
    group = TrajectoryGroup([member, ValueError(evil)], scenario_id=evil, metadata={"question": evil})
    before = answers(0.5, explanation=evil, context=evil, kind=evil)
    page = page_of(tmp_path, group, config={"run": {"name": evil}}, before=before, after=before)
    assert "<script" not in page and outline(page).open == []


def test_half_a_surrogate_pair_does_not_stop_the_page(tmp_path: Path) -> None:
    assert "a?b" in page_of(tmp_path, TrajectoryGroup([said("a\ud835b")]))


def test_the_prompt_of_a_group_is_shown_once(tmp_path: Path) -> None:
    system = {"role": "system", "content": "Be brief."}
    members = [Trajectory(messages_and_choices=[system, USER, sampled(t)]) for t in ("Yes.", "No.", "Maybe.")]
    assert page_of(tmp_path, TrajectoryGroup(members)).count("Be brief.") == 1


def test_a_group_is_titled_by_its_question(tmp_path: Path) -> None:
    user = {
        "role": "user",
        "content": "[Retrieved context]: Who knows? Nobody.\n\nQuestion: Tell me the hours",
    }
    group = TrajectoryGroup([Trajectory(messages_and_choices=[user, sampled("9 to 5.")])])
    assert "<h4>Tell me the hours</h4>" in page_of(tmp_path, group)


def test_tool_calls_and_their_results_are_readable(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "hours", "arguments": '{"day": "Monday"}'}}
    asking = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "9 to 5"}
    member = Trajectory(messages_and_choices=[USER, asking, result, sampled("Until five.")])
    page = page_of(tmp_path, TrajectoryGroup([member]))
    assert '<code>hours({"day": "Monday"})</code>' in page and "9 to 5" in page


def test_the_table_shows_before_after_and_change(tmp_path: Path) -> None:
    before, after = answers(0.2, 0.4, 0.2, 0.4, 0.3), answers(0.5, 0.7, 0.5, 0.7, 0.6)
    assert table_row(page_of(tmp_path, before=before, after=after), "Score") == [
        "0.30",
        "0.60",
        "+0.30",
        "+0.30 to +0.30",
    ]


def test_the_result_is_said_in_one_sentence(page: str) -> None:
    sentence = re.sub(r"<[^>]+>", "", page.split('<p class="headline">')[1].split("</p>")[0])
    assert sentence.startswith("On 48 held-out questions the mean score rose from 0.39 to 0.7")


def test_a_change_within_the_noise_is_said_to_be_unclear(tmp_path: Path) -> None:
    page = page_of(tmp_path, before=answers(0, 1, 0, 1, 0), after=answers(1, 0, 0, 1, 1))
    assert "That interval includes zero: no clear change." in page


def test_few_questions_give_no_interval(tmp_path: Path) -> None:
    row = table_row(page_of(tmp_path, before=answers(0.2, 0.4), after=answers(0.5, 0.7)), "Score")
    assert row == ["0.30", "0.60", "+0.30", "–"]


def test_an_answer_without_a_score_is_left_out_of_both_ends(tmp_path: Path) -> None:
    row = table_row(page_of(tmp_path, before=answers(0.2, 0.4), after=answers(0.5, None)), "Score")
    assert row[:2] == ["0.20", "0.50"]


def test_declining_counts_apart_where_the_passage_lacks_the_answer(tmp_path: Path) -> None:
    before = answers(0.5, kind="absent", checks={"abstains": False})
    after = answers(0.5, kind="absent", checks={"abstains": True})
    row = table_row(
        page_of(tmp_path, before=before, after=after),
        "Says that it can't find it, where the passage lacks it",
    )
    assert row[:3] == ["0.00", "1.00", "+1.00"]


def test_tied_groups_are_explained(tmp_path: Path) -> None:
    tied = TrajectoryGroup([said("Yes.", 0.5), said("No.", 0.5)])
    useful = TrajectoryGroup([said("Yes.", 0.5), said("No.", 0.4)])
    assert "1 of 2 groups (50%) taught nothing: all their answers got the same reward." in notices(
        page_of(tmp_path, tied, useful)
    )


def test_cut_answers_are_counted(tmp_path: Path) -> None:
    cut = Trajectory(messages_and_choices=[USER, sampled("Ye", finish_reason="length")])
    assert "1 of 2 answers (50%) ended at the token limit." in notices(
        page_of(tmp_path, TrajectoryGroup([cut, said("Yes.", 1.0)]))
    )


def test_failed_rollouts_are_counted_by_cause(tmp_path: Path) -> None:
    group = TrajectoryGroup([said("Yes."), ValueError("boom"), ValueError("boom"), KeyError("k")])
    assert "3 rollouts failed: ValueError: boom (2×); KeyError: 'k' (1×)." in notices(
        page_of(tmp_path, group)
    )


def test_a_run_without_evaluations_says_what_that_means(tmp_path: Path) -> None:
    assert "There is no evaluation before and after." in notices(page_of(tmp_path))


def test_growing_recitation_is_pointed_out(tmp_path: Path) -> None:
    before, after = answers(0.5, checks={"copied": 0.2}), answers(0.9, checks={"copied": 0.9})
    assert "Answers copy more: the longest copied piece went from 0.20 to 0.90 of an answer." in notices(
        page_of(tmp_path, before=before, after=after)
    )


def test_costs_are_added_up_and_unknown_prices_stay_unknown(tmp_path: Path) -> None:
    Run.create(tmp_path, {}).close()
    line = '{"purpose":"judge","prompt_tokens":10,"completion_tokens":5,"cached":false,"cost_usd":%s}\n'
    (tmp_path / "costs.jsonl").write_text(line % "0.5" + line % "null")
    assert table_row(write_report(tmp_path).read_text("utf-8"), "judge") == [
        "2",
        "0",
        "20",
        "10",
        "$0.5000 + 1 of unknown price",
    ]


def test_the_effect_of_other_system_prompts_is_shown_when_it_was_measured(tmp_path: Path) -> None:
    with Run.create(tmp_path, {}) as run:
        specs = [{"name": "as trained", "system": "Be brief.", "mean": 0.5}]
        run.write_evaluation(0, "", {"step": 0, "spec_effect": {"specs": specs}})
    assert table_row(write_report(tmp_path).read_text("utf-8"), "as trained")[0] == "0.50"
