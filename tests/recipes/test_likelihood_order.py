"""The order in which the offline judge puts the four answers, with the embedded model."""

from __future__ import annotations

import pytest

from article import four_answers, order_of
from groundrule.rewards import ruler_score_group


@pytest.mark.embedded
async def test_the_likelihood_judge_puts_faithful_answers_first_and_short_ones_before_long_ones():
    judged = await ruler_score_group(four_answers("strict"), "local/likelihood")
    assert order_of(judged) == ["concise", "verbose", "hallucinated", "ignoring"]
