"""Several scorers, one reward."""

import logging

import pytest

from fakes import KeywordJudge, group_of
from groundrule.data import Score
from groundrule.errors import ConfigError, JudgeError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Ruler
from groundrule.rewards.compose import Composite, Part

FOUR = ["alpha", "bravo", "charlie", "delta"]


class Fixed:
    """Gives each answer what it is told, and counts how many answers it was shown."""

    def __init__(self, **values: float | None):
        self.values, self.shown = values, 0

    async def score(self, group):
        self.shown += len(group)
        found = [self.values[t.messages()[-1]["content"]] for t in group]
        return [
            Score.none("cannot tell") if v is None else Score(value=v, explanation="so", cost=0.0)
            for v in found
        ]


def fixed(*values: float | None) -> Fixed:
    return Fixed(**dict(zip(FOUR, values, strict=True)))


async def scored(how, *parts):
    scores = await Composite(parts, how).score(group_of(*FOUR))
    return [None if s.value is None else round(s.value, 4) for s in scores], scores


async def test_a_sum_weighs_its_parts_and_keeps_each():
    values, scores = await scored(
        "sum", Part("facts", fixed(1, 1, 0, 0), 0.75), Part("form", fixed(0, 1, 0, 1), 0.25)
    )
    assert values == [0.75, 1.0, 0.0, 0.25]
    assert scores[1].parts == {"facts": 1.0, "form": 1.0}


async def test_a_failed_gate_leaves_nothing():
    values, _ = await scored(
        "gated", Part("legal", fixed(1, 0, 1, 1), is_first=True), Part("quality", fixed(0.2, 0.9, 0.5, 0.4))
    )
    assert values == [0.2, 0.0, 0.5, 0.4]


async def test_a_judge_below_a_verifier_never_lifts_a_failure_above_a_pass():
    values, _ = await scored(
        "lexicographic",
        Part("correct", fixed(1, 1, 0, 0), is_first=True),
        Part("judge", fixed(0.1, 0.9, 1.0, 0.0)),
    )
    assert values == [1.02, 1.18, 0.2, 0.0]


async def test_a_judge_below_a_verifier_is_asked_about_level_answers_only():
    judge = fixed(0.1, 0.9, 1.0, 0.0)
    values, scores = await scored(
        "lexicographic", Part("correct", fixed(1, 0.5, 0.5, 0), is_first=True), Part("judge", judge)
    )
    assert judge.shown == 2
    assert values == [1.0, 0.68, 0.7, 0.0]
    assert "judge" not in scores[0].parts


async def test_what_the_judge_cannot_order_keeps_its_level():
    values, _ = await scored(
        "lexicographic",
        Part("correct", fixed(1, 1, 0, 0), is_first=True),
        Part("judge", fixed(0.1, None, 1.0, 0.0)),
    )
    assert values == [1.0, 1.0, 0.2, 0.0]


async def test_where_the_verifier_tells_all_apart_the_judge_costs_nothing():
    judge = fixed(0, 0, 0, 0)
    values, _ = await scored(
        "lexicographic", Part("correct", fixed(1, 0.6, 0.3, 0), is_first=True), Part("judge", judge)
    )
    assert (values, judge.shown) == ([1.0, 0.6, 0.3, 0.0], 0)


async def test_close_levels_stay_apart_whatever_the_judge_says():
    values, _ = await scored(
        "lexicographic",
        Part("correct", fixed(0.51, 0.51, 0.5, 0.5), is_first=True),
        Part("judge", fixed(0, 1, 1, 0)),
    )
    assert values == [0.51, 0.515, 0.505, 0.5]


async def test_normalised_parts_count_alike_whatever_their_scale():
    values, _ = await scored("normalised", Part("a", fixed(1, 1, 0, 0)), Part("b", fixed(0, 0.01, 0.01, 0)))
    assert values == [0.0, 2.0, 0.0, -2.0]


@pytest.mark.parametrize("how", ["sum", "normalised"])
async def test_a_member_that_one_part_cannot_score_has_no_score(how):
    values, scores = await scored(how, Part("a", fixed(1, None, 0, 0)), Part("b", fixed(0, 1, 1, 0)))
    assert values[1] is None
    assert scores[1].reason == "a: cannot tell"
    assert scores[1].parts == {"b": 1.0}


class Down:
    async def score(self, group):
        raise JudgeError("down")


async def test_a_part_that_fails_leaves_its_reason():
    _, scores = await scored("sum", Part("a", fixed(1, 1, 0, 0)), Part("judge", Down()))
    assert [s.reason for s in scores] == ["judge: JudgeError: down"] * 4


async def test_the_share_of_each_part_in_the_differences_is_logged(caplog):
    with caplog.at_level(logging.WARNING):
        _, scores = await scored(
            "sum", Part("truth", fixed(1, 0, 1, 0), 0.1), Part("form", fixed(1, 1, 0, 0), 0.9, is_cheap=True)
        )
    assert scores.metrics["judge/share/form"] == pytest.approx(0.81 / 0.82)
    assert scores.metrics["judge/share/truth"] == pytest.approx(0.01 / 0.82)
    assert "form makes 99% of the differences" in caplog.text


async def test_a_ruler_can_be_a_part():
    worth = dict(zip(FOUR, (0.9, 0.6, 0.3, 0.1), strict=True))
    judge = Ruler(ScriptedClient(KeywordJudge(worth)))
    values, scores = await scored(
        "lexicographic", Part("correct", fixed(0, 0, 1, 1), is_first=True), Part("ruler", judge)
    )
    assert values == [0.18, 0.12, 1.06, 1.02]
    assert scores.metrics["judge/calls"] == 1.0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([Part("a", fixed(1, 1, 1, 1)), Part("a", fixed(1, 1, 1, 1))], "two parts are called 'a'"),
        ([Part("a", fixed(1, 1, 1, 1))], "needs parts with is_first=True"),
    ],
)
def test_a_composition_that_cannot_work_is_refused(parts, said):
    with pytest.raises(ConfigError, match=said):
        Composite(parts)
