"""A scorer that fails leaves reasons, and a wrong setting is not hidden."""

from __future__ import annotations

import pytest

from fakes import group_of
from groundrule.data import Score
from groundrule.errors import ConfigError, JudgeError, LlmError
from groundrule.rewards.scoring import scores_or_reasons


class Raising:
    def __init__(self, error):
        self.error = error

    async def score(self, group):
        raise self.error


@pytest.mark.parametrize("error", [JudgeError("no scores"), LlmError("down"), KeyError("facts")])
async def test_a_scorer_that_breaks_leaves_every_member_with_the_reason(error):
    scores = await scores_or_reasons(Raising(error), group_of("a", "b"))
    assert [(s.value, s.reason) for s in scores] == [(None, f"{type(error).__name__}: {error}")] * 2


async def test_a_scorer_that_forgets_a_member_scores_none():
    class Forgetful:
        async def score(self, group):
            return [Score(value=0.5)]

    scores = await scores_or_reasons(Forgetful(), group_of("a", "b"))
    assert [s.reason for s in scores] == ["Forgetful gave 1 scores for a group of 2 trajectories"] * 2


async def test_a_wrong_setting_is_not_hidden():
    with pytest.raises(ConfigError, match="no such rubric"):
        await scores_or_reasons(Raising(ConfigError("no such rubric")), group_of("a", "b"))
