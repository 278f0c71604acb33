"""Answers that look back at what they said."""

from __future__ import annotations

import pytest

from groundrule.rewards.self_check import checks_itself


@pytest.mark.parametrize(
    "answer",
    [
        "17 * 3 = 41. Wait, 17 * 3 is 51.",
        "So x = 4. Let me check: 2 * 4 = 8.",
        "Let's double-check the sum.",
        "Hold on: the second root is negative.",
        "To verify, put x = 2 into the equation.",
        "Actually, that is the area and not the perimeter.",
        "Let me re-calculate that.",
        "That was a mistake; the right sign is plus.",
        "I’ll check this once more.",
    ],
)
def test_an_answer_that_looks_back_checks_itself(answer):
    assert checks_itself(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is \\boxed{4}.",
        "Please wait for the parcel.",
        "Add 3 to both sides, then divide by 2.",
        "Check-in is at 14:00.",
        "The cheque is in the post.",
        "",
    ],
)
def test_a_plain_answer_does_not(answer):
    assert not checks_itself(answer)
