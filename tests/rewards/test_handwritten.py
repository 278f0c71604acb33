"""Rewards written by hand: what each criterion counts."""

import pytest

from article import four_answers, order_of
from fakes import group_of
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.rewards import apply_scores
from groundrule.rewards.handwritten import RagReward, RagWeights, ToolReward, rag_parts

CONTEXT = (
    "Books may be returned within 21 days if they are clean. Return postage costs 4 euros; "
    "write to desk@example.com."
)
ASKED = "How long may I return a book?"


def parts(answer: str, **more):
    return rag_parts(answer, ASKED, CONTEXT, **more)


async def test_faithful_answers_stand_above_invented_ones_and_those_above_evasive_ones():
    group = four_answers("strict")
    judged = apply_scores(group, await RagReward().score(group), name="hand")
    assert set(order_of(judged)[:2]) == {"concise", "verbose"}
    assert order_of(judged)[2:] == ["hallucinated", "ignoring"]


async def test_a_stricter_system_prompt_moves_no_hand_written_score():
    lax, strict = [await RagReward().score(four_answers(spec)) for spec in ("lax", "strict")]
    assert [s.value for s in lax] == [s.value for s in strict]


@pytest.mark.parametrize(
    ("answer", "criterion", "value"),
    [
        ("Within 21 days if they are clean.", "uses_context", 1.0),
        ("Ask somebody else entirely.", "uses_context", 0.0),
        ("Within 21 days. We add a voucher of 15 euros.", "no_unsupported_claims", 0.5),
        ("Within 21 days. Write to shop@example.com.", "no_unsupported_claims", 0.5),
        ("Within 21 days. Write to desk@example.com.", "no_unsupported_claims", 1.0),
        ("Within 21 days. Ask Mrs Meyer.", "no_unsupported_claims", 0.5),
        ("Books may be returned within 21 days if they are clean.", "complete", 1.0),
        ("word " * 40, "concise", 1.0),
        ("word " * 80, "concise", 0.5),
        ("word " * 130, "concise", 0.0),
        ("", "concise", 0.0),
    ],
)
def test_a_criterion_counts_what_it_says(answer, criterion, value):
    assert parts(answer)[criterion] == pytest.approx(value)


@pytest.mark.parametrize(
    ("answer", "is_ambiguous", "value"),
    [
        ("The documents give two prices: 4 or 6 euros.", True, 1.0),
        ("It costs 4 euros.", True, 0.0),
        ("It costs 4 euros.", False, 1.0),
        ("It is unclear.", False, 0.0),
        ("It costs 4 euros.", None, 1.0),
    ],
)
def test_saying_that_a_passage_is_ambiguous_pays_where_it_is(answer, is_ambiguous, value):
    assert parts(answer, is_ambiguous=is_ambiguous)["says_ambiguous"] == value


async def test_the_reward_is_the_weighted_mean_of_its_parts():
    group = TrajectoryGroup(
        [
            Trajectory(
                messages_and_choices=[
                    {"role": "user", "content": f"[Retrieved context]: {CONTEXT}\n\nQuestion: {ASKED}"},
                    {"role": "assistant", "content": "Within 30 days."},
                ]
            )
        ]
    )
    (score,) = await RagReward(RagWeights(0.5, 0.5, 0.0, 0.0)).score(group)
    assert score.value == pytest.approx(
        (score.parts["uses_context"] + score.parts["no_unsupported_claims"]) / 2
    )


async def test_without_a_passage_there_is_no_score():
    (score,) = await RagReward().score(group_of("Yes."))
    assert score.value is None
    assert "cannot be told apart" in score.reason


def using(*calls: tuple[str, str]) -> TrajectoryGroup:
    turns = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": str(i), "function": {"name": name, "arguments": arguments}}],
        }
        for i, (name, arguments) in enumerate(calls)
    ]
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=[{"role": "user", "content": "Book it."}, *turns])]
    )


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        ([("find", "{}"), ("book", "{}")], 1.0),
        ([("find", "{}")], (0.4 * 0.5 + 0.2) / 0.6),
        ([("book", "{}")], 0.2 / 0.6),
        ([("find", "{}"), ("find", '{"day": 2}'), ("book", "{}")], (0.4 + 0.1) / 0.6),
        ([("find", "{}"), ("find", "{ }"), ("book", "{}")], (0.4 + 0.05) / 0.6),
        ([], 0.2 / 0.6),
    ],
)
async def test_tool_use_earns_by_progress_and_loses_by_waste(calls, value):
    (score,) = await ToolReward(["find", "book"]).score(using(*calls))
    assert score.value == pytest.approx(value)


async def test_the_final_state_counts_where_it_can_be_looked_at():
    reward = ToolReward(["find"], reached=lambda trajectory: False)
    (score,) = await reward.score(using(("find", "{}")))
    assert score.value == pytest.approx(0.6)
    assert score.parts["final_state"] == 0.0
