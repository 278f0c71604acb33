"""A rankings file as a scorer of groups."""

from __future__ import annotations

import pytest

from fakes import chat, group_of
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.preference_records import write_rankings
from groundrule.data.preferences import Ranking
from groundrule.errors import ConfigError, DataError
from groundrule.llm.providers import resolve
from groundrule.rewards.human import HumanScorer


def said(*tiers, annotator="ann", question="Refunds?", **more):
    """A ranking of answers to the question that `group_of` asks."""
    tiers = [tier if isinstance(tier, list) else [tier] for tier in tiers]
    return Ranking(
        prompt=chat("", question=question)[:-1],
        answers=[{"id": text, "text": text} for tier in tiers for text in tier],
        order=tiers,
        annotator=annotator,
        **more,
    )


async def values(rankings, *answers):
    return [score.value for score in await HumanScorer(rankings).score(group_of(*answers))]


async def test_places_are_evenly_spaced_from_one_to_zero():
    assert await values([said("a", "b", "c", "d")], "d", "b", "a", "c") == pytest.approx([0, 2 / 3, 1, 1 / 3])


async def test_tied_answers_share_the_mean_of_their_places():
    assert await values([said("a", ["b", "c"], "d")], "a", "b", "c", "d") == [1, 0.5, 0.5, 0]
    assert await values([said(["a", "b"], "c")], "a", "b", "c") == [0.75, 0.75, 0]


async def test_where_all_are_tied_all_are_in_the_middle():
    assert await values([said(["a", "b", "c"])], "a", "b", "c") == [0.5, 0.5, 0.5]


async def test_comparing_every_two_gives_what_the_ranking_gives():
    pairs = [said("a", "b"), said("a", "c"), said("b", "c")]
    assert await values(pairs, "a", "b", "c") == await values([said("a", "b", "c")], "a", "b", "c")


async def test_annotators_count_alike_however_often_they_judged():
    rankings = [said("a", "b"), said("a", "b"), said("b", "a", annotator="bob")]
    assert await values(rankings, "a", "b") == [0.5, 0.5]


async def test_a_doubtful_victory_is_a_smaller_one():
    assert await values([said("a", "b", certainty=0.75)], "a", "b") == [0.75, 0.25]


async def test_an_answer_that_nobody_ranked_has_no_score_and_says_why():
    scorer = HumanScorer([said("a", "b")], name="out.jsonl")
    a, new = await scorer.score(group_of("a", "new"))
    assert (a.value, new.value) == (1.0, None)
    assert new.reason.startswith(
        "nobody ranked this answer in out.jsonl, which has 1 of 2 answers of its group"
    )


async def test_the_same_answer_to_another_prompt_or_with_other_tools_is_another_one():
    scorer = HumanScorer([said("a", "b", question="Parking?")])
    assert [s.value for s in await scorer.score(group_of("a", "b"))] == [None, None]
    with_tools = Trajectory(messages_and_choices=chat("a"), tools=[{"type": "function"}])
    [score] = await HumanScorer([said("a", "b")]).score(TrajectoryGroup([with_tools]))
    assert score.value is None


async def test_the_parts_say_how_many_people_and_how_far_apart():
    rankings = [said("a", "b", "c"), said("b", "a", "c", annotator="bob")]
    first = (await HumanScorer(rankings).score(group_of("a", "b", "c")))[0]
    assert first.value == 0.75
    assert first.parts == {"annotators": 2, "comparisons": 4, "annotator_std": 0.25}
    assert first.explanation == "won 75% of 4 comparisons by 2 people, ties counted half"


async def test_a_file_of_rankings_is_a_judge_by_name(tmp_path):
    write_rankings(tmp_path / "out.jsonl", [said("a", "b")])
    scorer = resolve(f"human/{tmp_path / 'out.jsonl'}")
    assert [s.value for s in await scorer.score(group_of("b", "a"))] == [0, 1]


@pytest.mark.parametrize(
    ("name", "extra", "error", "what"),
    [
        ("human", {}, ConfigError, "write 'human/RANKINGS.jsonl'"),
        ("human/out.jsonl", {"temperature": 1}, ConfigError, "takes no parameters"),
        ("human/nowhere.jsonl", {}, DataError, "nowhere.jsonl: cannot be read"),
    ],
)
def test_a_name_that_cannot_work_says_what_to_write(name, extra, error, what):
    with pytest.raises(error, match=what):
        resolve(name, extra)
