"""Length, cut answers and self-checks of a step's answers."""

from __future__ import annotations

from openai.types.chat.chat_completion import Choice

from groundrule.data import History, Trajectory, TrajectoryGroup
from groundrule.recipes.answer_metrics import answer_metrics


def choice(text: str, tokens: int, *, reason: str = "stop", thinking: str | None = None) -> Choice:
    message = {"role": "assistant", "content": text, "reasoning_content": thinking}
    made = {"index": 0, "finish_reason": reason, "message": message, "token_ids": list(range(tokens))}
    return Choice.model_validate(made)


def measured(*members: Trajectory) -> dict[str, float | None]:
    return answer_metrics([TrajectoryGroup(members)])


def said(*turns: Choice) -> Trajectory:
    return Trajectory(messages_and_choices=[{"role": "user", "content": "?"}, *turns])


def test_tokens_are_those_of_all_turns_of_an_attempt():
    assert measured(said(choice("a", 3), choice("b", 4)), said(choice("c", 1)))["answers/tokens"] == 4.0


def test_an_attempt_is_cut_when_its_last_turn_is():
    cut = measured(
        said(choice("a", 1, reason="length")), said(choice("a", 1, reason="length"), choice("b", 1))
    )
    assert cut["answers/truncated"] == 0.5


def test_an_attempt_that_checks_itself_in_its_thinking_counts():
    found = measured(said(choice("4", 1, thinking="3? Wait, no.")), said(choice("4", 1)))
    assert found["answers/self_check"] == 0.5


def test_turns_of_further_histories_count():
    member = said(choice("a", 1))
    member.additional_histories = [History(messages_and_choices=[choice("b", 5)])]
    assert measured(member)["answers/tokens"] == 6.0


def test_attempts_that_sampled_nothing_are_left_out():
    written = Trajectory(messages_and_choices=[{"role": "assistant", "content": "Wait, no."}])
    assert measured(written) == {}
    assert measured(written, said(choice("a", 2)))["answers/self_check"] == 0.0
