"""Rubrics: the file and its hashes, what a judge makes, and what the rules find weak."""

from __future__ import annotations

import pytest

from fakes import prompt_of
from groundrule.data import Scenario
from groundrule.errors import ConfigError, DataError, JudgeReplyError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Rubric, compile_rubric, lint_rubric
from groundrule.rewards.checklist.criteria import hash_of
from groundrule.rewards.universal.rubric import RubricCriterion

FILE = """\
[[criteria]]
id = "term"
text = "names four weeks as the term"
essential = true

[[criteria]]
id = "brief"
text = "has at most 30 characters"
kind = "programmatic"
check = "regex"
reference = "(?s).{1,30}"
weight = 0.5
"""


def rubric_of(*texts: str, **more) -> Rubric:
    rows = [{"id": f"c{n}", "text": text, **more} for n, text in enumerate(texts, start=1)]
    return Rubric(criteria=[RubricCriterion(**row) for row in rows])


def rules(*texts: str, **more) -> list[str]:
    """The rules that complain, apart from that about essentials."""
    return [f.rule for f in lint_rubric(rubric_of(*texts, **more)) if f.rule != "essential"]


def test_a_saved_rubric_is_read_as_it_was(tmp_path):
    rubric = Rubric.parse(FILE)
    rubric.save(tmp_path / "r.toml")
    assert Rubric.load(tmp_path / "r.toml") == rubric


def test_a_file_that_was_changed_after_it_was_frozen_is_refused(tmp_path):
    path = tmp_path / "r.toml"
    Rubric.parse(FILE).save(path)
    path.write_text(path.read_text().replace("four weeks", "five weeks"))
    with pytest.raises(DataError, match="was changed after it was frozen"):
        Rubric.load(path)
    assert Rubric.load(path, is_edited=True).criteria[0].text == "names five weeks as the term"


def test_a_comment_does_not_thaw_a_file(tmp_path):
    path = tmp_path / "r.toml"
    Rubric.parse(FILE).save(path)
    path.write_text("# mine\n" + path.read_text())
    assert len(Rubric.load(path).criteria) == 2


def test_the_hash_covers_the_criteria_and_the_spec():
    rubric = Rubric.parse(FILE)
    other = rubric.model_copy(update={"spec_sha256": hash_of("another prompt")})
    assert rubric.content_sha256 != other.content_sha256
    assert rubric.content_sha256 == rubric.model_copy(update={"scenario": "told"}).content_sha256


def test_a_rubric_fits_the_spec_that_it_was_made_from():
    rubric = Rubric.parse(FILE).model_copy(update={"spec_sha256": hash_of("Be brief.")})
    assert (rubric.fits("Be brief."), rubric.fits("Be long.")) == (True, False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("essential = true", "esential = true"),
            "line 4, column esential: unknown key; did you mean 'essential'",
        ),
        (('id = "brief"', 'id = "term"'), "line 7.*already the id of criterion 1"),
        (("weight = 0.5", "weight = 0"), "line 12, column weight"),
        (('check = "regex"\n', ""), "a check belongs to"),
        (('"(?s).{1,30}"', '"(?s"'), "no regular expression"),
        (("essential = true", "essential = true\npitfall = true"), "essential or a pitfall, not both"),
    ],
)
def test_a_fault_in_the_file_is_named_with_its_line(change, said):
    with pytest.raises(DataError, match=said):
        Rubric.parse(FILE.replace(*change))


def test_a_rubric_needs_something_that_can_be_gained():
    with pytest.raises(DataError, match="nothing can be gained"):
        Rubric.parse('[[criteria]]\nid = "x"\ntext = "threatens the reader"\npitfall = true\n')


def test_a_file_without_criteria_says_what_to_add():
    with pytest.raises(DataError, match=r"add a \[\[criteria\]\] table"):
        Rubric.parse("")


MADE = {
    "criteria": [
        {
            "id": "c1",
            "text": "names four weeks as the term",
            "kind": "evidence",
            "weight": 2,
            "essential": True,
        },
        {"id": "c2", "text": "threatens a fine", "pitfall": True},
    ]
}


async def test_a_judge_makes_a_rubric_of_spec_and_task_once():
    judge = ScriptedClient([MADE])
    task = Scenario(id="loan", question="How long may I keep a book?", reference="four weeks")
    rubric = await compile_rubric("Answer briefly.", judge, scenario=task)
    asked = prompt_of(judge.requests[0])
    assert "Answer briefly." in asked
    assert "REFERENCE:\nfour weeks" in asked
    assert (rubric.spec_sha256, rubric.scenario) == (
        hash_of("Answer briefly."),
        "How long may I keep a book?",
    )
    assert [(c.id, c.essential, c.pitfall) for c in rubric.criteria] == [
        ("c1", True, False),
        ("c2", False, True),
    ]


async def test_a_check_that_a_judge_may_not_choose_is_refused():
    bad = {"criteria": [{"id": "c1", "text": "is safe", "kind": "programmatic", "check": "evil.py:run"}]}
    with pytest.raises(JudgeReplyError, match="it may be exact or regex"):
        await compile_rubric("Answer briefly.", ScriptedClient([bad, bad]))


async def test_without_spec_and_task_there_is_nothing_to_make():
    with pytest.raises(ConfigError, match="nothing to make"):
        await compile_rubric("  ", ScriptedClient([]))


GOOD = (
    "names four weeks as the longest term",
    "says that the desk takes returned books",
    "gives a price between 3 and 5 crowns",
    "says that members pay nothing",
)


def test_atomic_criteria_pass():
    assert rules(*GOOD) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("names the drug and gives the dose in milligrams", "and gives"),
        ("names the day and the place", "and the"),
        ("states the rule, but also cites section 4", "but also"),
        ("quotes section 4. Names the fee in crowns", "Names"),
        ("lists three risks; ends with a warning", "; ends"),
        ("states the price as well as the discount", "as well as the"),
    ],
)
def test_two_demands_in_one_criterion_are_compound(text, at):
    [found] = [f for f in lint_rubric(rubric_of(text)) if f.rule == "compound"]
    assert at in found.message


@pytest.mark.parametrize(
    "text",
    [
        "gives a price between 3 and 5 crowns",
        "says 'salt and the pepper' word for word",
        "names salt and pepper as the spices",
        "names red or blue as the colour",
    ],
)
def test_one_demand_with_an_and_is_not(text):
    assert "compound" not in rules(text)


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("names four weeks as the longest term", "says that the longest term is four weeks", True),
        ("tells the reader to bring the book back", "warns the reader to bring the book back", True),
        ("names four weeks as the longest term", "says that the desk takes returned books", False),
    ],
)
def test_criteria_that_one_sentence_meets_overlap(one, other, found):
    findings = [f for f in lint_rubric(rubric_of(one, other)) if f.rule == "overlap"]
    assert [f.criteria for f in findings] == ([("c1", "c2")] if found else [])


def test_a_demand_and_its_pitfall_may_be_alike():
    right = RubricCriterion(id="right", text="gives the dose as 5 milligrams")
    wrong = RubricCriterion(id="wrong", text="gives the dose as 50 milligrams", pitfall=True)
    assert [f.rule for f in lint_rubric(Rubric(criteria=[right, wrong]))] == ["essential"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("is clear for a lay reader", "vague"),
        ("uses an appropriate tone throughout", "vague"),
        ("understands the worry of the reader", "unobservable"),
        ("discusses the side effects", "presence_only"),
        ("does not blame the reader", "absence"),
        ("is short", "length"),
        (" ".join(["very"] * 31), "length"),
    ],
)
def test_a_weak_criterion_is_named_by_its_rule(text, rule):
    assert rules(text) == [rule]


def test_a_vague_word_with_something_to_see_passes():
    assert rules("says clearly that the visit is free") == []


def test_a_mention_passes_beside_a_pitfall_for_what_would_be_wrong():
    mention = RubricCriterion(id="a", text="mentions the side effects of the drug")
    wrong = RubricCriterion(id="b", text="denies side effects of the drug", pitfall=True)
    assert [f.rule for f in lint_rubric(Rubric(criteria=[mention, wrong]))] == ["essential"]


def test_absence_is_a_judgement():
    assert rules("does not blame the reader", kind="judgement") == []


def test_too_many_criteria_are_reported():
    marks = [f"states number {n}{n}{n} of item {'abcdefghijklmnop'[n - 1] * 3}" for n in range(1, 17)]
    assert "count" in rules(*marks)


def test_a_finding_says_where_and_what():
    [found] = [f for f in lint_rubric(rubric_of("is short")) if f.rule == "length"]
    assert str(found) == "c1: length: has 2 words; 3 to 30 can be decided at a glance"
