"""Several judges, one score."""

import logging

import pytest

from fakes import KeywordJudge, group_of
from groundrule.data import Score
from groundrule.errors import ConfigError, JudgeError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Ruler, apply_scores
from groundrule.rewards.jury import Juror, Jury

ANSWERS = ["alpha", "bravo", "charlie", "delta"]


class Fixed:
    """A scorer that gives what it is told and counts how often it was asked."""

    def __init__(self, *values: float | None):
        self.values, self.asked = values, 0

    async def score(self, group):
        self.asked += 1
        return [Score.none("no idea") if v is None else Score(value=v, cost=0.0) for v in self.values]


class Broken:
    async def score(self, group):
        raise JudgeError("the judge is down")


async def values_of(*jurors, **more):
    scores = await Jury(jurors, **more).score(group_of(*ANSWERS))
    return [None if s.value is None else round(s.value, 4) for s in scores], scores


async def test_scores_are_the_weighted_mean_of_the_scoring_jurors():
    values, _ = await values_of(
        Juror("a", Fixed(0.8, 0.4, 0.2, 0.0), weight=3.0), Juror("b", Fixed(0.4, 0.8, 0.2, 0.0))
    )
    assert values == [0.7, 0.5, 0.2, 0.0]


async def test_a_holdout_juror_is_logged_and_never_counts():
    values, scores = await values_of(
        Juror("a", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("other", Fixed(0.0, 0.3, 0.6, 0.9), role="holdout")
    )
    assert values == [0.9, 0.6, 0.3, 0.0]
    assert scores[0].parts == {"jury/a": 0.9, "jury/other": 0.0}
    assert scores.metrics["judge/holdout/other"] == -1.0


async def test_a_tiebreak_juror_is_asked_only_where_the_others_disagree():
    calm, busy = Fixed(0.5, 0.5, 0.5, 0.4), Fixed(0.9, 0.6, 0.3, 0.0)
    agreeing = [Juror("a", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("b", Fixed(0.8, 0.6, 0.3, 0.1))]
    opposed = [Juror("a", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("b", Fixed(0.0, 0.3, 0.6, 0.9))]
    await values_of(*agreeing, Juror("t", calm, role="tiebreak"))
    values, _ = await values_of(*opposed, Juror("t", busy, role="tiebreak"))
    assert (calm.asked, busy.asked) == (0, 1)
    assert values == [0.6, 0.5, 0.4, 0.3]


async def test_a_reserve_juror_stands_in_for_one_that_fails(caplog):
    spare, unused = Fixed(0.2, 0.4, 0.6, 0.8), Fixed(1.0, 1.0, 1.0, 1.0)
    with caplog.at_level(logging.WARNING):
        values, _ = await values_of(
            Juror("a", Broken()), Juror("s", spare, role="reserve"), Juror("u", unused, role="reserve")
        )
    assert values == [0.2, 0.4, 0.6, 0.8]
    assert unused.asked == 0
    assert "juror a: the judge is down" in caplog.text


async def test_without_any_usable_juror_members_have_the_reasons():
    _, scores = await values_of(Juror("a", Broken()), Juror("b", Fixed(None, None, None, None)))
    assert [s.value for s in scores] == [None] * 4
    assert scores[0].reason == "no juror gave a score: a: JudgeError: the judge is down; b: no idea"


async def test_a_member_that_one_juror_left_out_is_scored_by_the_others():
    values, _ = await values_of(Juror("a", Fixed(0.8, None, 0.2, 0.0)), Juror("b", Fixed(0.4, 0.6, 0.2, 0.0)))
    assert values == [0.6, 0.6, 0.2, 0.0]


async def test_a_juror_that_is_harsher_throughout_does_not_lower_the_reliability():
    _, scores = await values_of(Juror("a", Fixed(0.9, 0.6, 0.4, 0.2)), Juror("b", Fixed(0.8, 0.5, 0.3, 0.1)))
    assert scores.metrics["judge_reliability"] == pytest.approx(1.0)
    assert scores.metrics["judge/agreement"] < 1.0


async def test_alignment_stretches_a_juror_that_uses_little_of_the_scale():
    jury = Jury([Juror("wide", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("narrow", Fixed(0.42, 0.44, 0.46, 0.48))])
    group = group_of(*ANSWERS)
    seen = [apply_scores(group, await jury.score(group), name="ruler") for _ in range(40)]
    aligned = jury.aligned_on(seen)
    assert aligned.scales["narrow"] > 3 > 1 > aligned.scales["wide"]
    before, after = await jury.score(group), await aligned.score(group)
    assert before[0].value - before[3].value > after[0].value - after[3].value


async def test_alignment_goes_on_from_what_was_seen_before():
    jury = Jury([Juror("wide", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("narrow", Fixed(0.42, 0.44, 0.46, 0.48))])
    group = group_of(*ANSWERS)
    seen = [apply_scores(group, await jury.score(group), name="ruler") for _ in range(6)]
    step_by_step = jury.aligned_on(seen[:4]).aligned_on(seen[4:])
    assert step_by_step == jury.aligned_on(seen)
    assert step_by_step.scales == jury.aligned_on(seen).scales != jury.aligned_on(seen[4:]).scales


async def test_few_groups_hardly_move_the_alignment():
    jury = Jury([Juror("wide", Fixed(0.9, 0.6, 0.3, 0.0)), Juror("narrow", Fixed(0.42, 0.44, 0.46, 0.48))])
    group = group_of(*ANSWERS)
    aligned = jury.aligned_on([apply_scores(group, await jury.score(group), name="ruler")])
    assert 1.0 < aligned.scales["narrow"] < 1.15


@pytest.mark.parametrize(
    ("jurors", "said"),
    [
        ([Juror("a", Broken(), role="holdout")], "no juror has the role 'score'"),
        ([Juror("a", Broken()), Juror("a", Broken())], "two jurors are called 'a'"),
        ([Juror("a", Broken(), weight=0.0)], "weight 0.0"),
    ],
)
def test_a_jury_that_cannot_work_is_refused(jurors, said):
    with pytest.raises(ConfigError, match=said):
        Jury(jurors)


async def test_rulers_with_several_passes_make_a_jury():
    worth = {"alpha": 0.9, "bravo": 0.6, "charlie": 0.3, "delta": 0.1}
    judges = [Juror(n, Ruler(ScriptedClient(KeywordJudge(worth)), passes=2)) for n in ("a", "b")]
    scores = await Jury(judges).score(group_of(*ANSWERS))
    assert [s.value for s in scores] == pytest.approx([0.9, 0.6, 0.3, 0.1])
    assert scores.metrics["judge_reliability"] == 1.0


def test_a_jury_gets_cheaper_by_passes_then_by_jurors():
    client = ScriptedClient([])
    jury = Jury(
        [
            Juror("a", Ruler(client, passes=2), weight=2.0),
            Juror("b", Ruler(client)),
            Juror("h", Ruler(client), role="holdout"),
        ]
    )
    calls = [jury.calls_for(8)]
    while (jury := jury.cheaper()) is not None:
        calls.append(jury.calls_for(8))
    assert calls == [4, 3, 2, 1]
