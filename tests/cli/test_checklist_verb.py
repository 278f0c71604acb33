"""`groundrule checklist`."""

from __future__ import annotations

import pytest

from groundrule.rewards import Checklist


@pytest.fixture(autouse=True)
def judges(judge_named):
    judge_named("lists", "named_judges:lister")
    judge_named("broken", "named_judges:down")
    judge_named("long", "named_judges:longest")


@pytest.fixture
def prompt(tmp_path):
    path = tmp_path / "prompt.txt"
    path.write_text("Answer from the passage. Never promise anything.")
    return path


def test_the_demands_are_shown_and_kept(groundrule, prompt, tmp_path):
    out = tmp_path / "list.toml"
    result = groundrule("checklist", prompt, "--judge", "lists/any", "--out", out)
    assert result.code == 0
    assert result.out.splitlines()[0] == "c1 [avoid, weight 2, veto] promises nothing"
    assert [c.id for c in Checklist.load(out).criteria] == ["c1"]


@pytest.mark.parametrize(
    ("judge", "code", "said"),
    [("broken/any", 1, "the judge is down"), ("long/any", 2, "does not read instructions")],
)
def test_a_judge_that_cannot_list_is_named(groundrule, prompt, judge, code, said):
    result = groundrule("checklist", prompt, "--judge", judge)
    assert result.code == code
    assert said in result.err


def test_a_missing_file_is_wrong_input(groundrule, tmp_path):
    result = groundrule("checklist", tmp_path / "none.txt", "--judge", "lists/any")
    assert result.code == 2
    assert "none.txt" in result.err
