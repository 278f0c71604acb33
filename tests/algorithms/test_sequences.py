"""What of a trajectory is trained on: the sampled tokens, each once, after the prompt they were drawn from."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat.chat_completion import Choice

from groundrule.algorithms.sequences import is_trainable, sequences_of
from groundrule.data.trajectory import History, Trajectory
from groundrule.models.render import ChatRenderer
from tiny_tokenizers import drift, wrapped

USER = {"role": "user", "content": "q"}


def sampled(prompt: list[int], ids: list[int], text: str = "a", **more: Any) -> Choice:
    """A Choice as the local endpoint returns it; the logprob of token i is -i / 10."""
    fields = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
        "token_ids": ids,
        "prompt_token_ids": prompt,
        "logprobs": {
            "content": [{"token": "x", "logprob": -i / 10, "bytes": None, "top_logprobs": []} for i in ids]
        },
    }
    return Choice.model_validate({**fields, **more})


def trajectory(*items: Any, **more: Any) -> Trajectory:
    return Trajectory(messages_and_choices=list(items), **more)


def test_the_sampled_tokens_are_trained_with_their_logprobs() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([1, 2], [3, 4])))

    assert (sequence.prompt_ids, sequence.ids) == ((1, 2), (3, 4))
    assert (sequence.sampled, sequence.logprobs) == ((True, True), (-0.3, -0.4))


def test_a_turn_that_continues_the_last_makes_one_sequence_in_which_only_sampled_tokens_are_trained() -> None:
    first, second = sampled([1, 2], [3, 4]), sampled([1, 2, 3, 4, 9, 9], [5])

    [sequence] = sequences_of(trajectory(USER, first, USER, second))

    assert (sequence.prompt_ids, sequence.ids) == ((1, 2), (3, 4, 9, 9, 5))
    assert sequence.sampled == (True, True, False, False, True)
    assert sequence.logprobs == (-0.3, -0.4, 0.0, 0.0, -0.5)
    assert sequence.trained == 3


def test_a_turn_whose_prompt_lost_earlier_thinking_is_a_sequence_of_its_own() -> None:
    first, second = sampled([1, 2], [7, 8, 4]), sampled([1, 2, 4, 9], [7, 5])

    sequences = sequences_of(trajectory(USER, first, USER, second))

    assert [(s.prompt_ids, s.ids) for s in sequences] == [((1, 2), (7, 8, 4)), ((1, 2, 4, 9), (7, 5))]
    assert [s.trained for s in sequences] == [3, 2]


def test_an_adjacent_assistant_turn_counts_each_sampled_token_once() -> None:
    part_one, part_two = sampled([1], [5, 2]), sampled([1, 5, 2, 6], [7, 2])

    [sequence] = sequences_of(trajectory(USER, part_one, part_two))

    assert sequence.ids == (5, 2, 6, 7, 2)
    assert sequence.sampled == (True, True, False, True, True)


def test_tool_results_between_sampled_turns_are_not_trained_on() -> None:
    call, result = sampled([1], [3, 2]), {"role": "tool", "tool_call_id": "c1", "content": "18 C, sunny"}

    [sequence] = sequences_of(trajectory(USER, call, result, sampled([1, 3, 2, 40, 41, 42], [5, 2])))

    assert sequence.sampled == (True, True, False, False, False, True, True)
    assert len(sequence.ids) == len(sequence.sampled) == len(sequence.logprobs) == 7


def test_ids_are_never_made_from_text_again() -> None:
    he, l, lo = (drift().token_to_id(piece) for piece in ("he", "l", "lo"))  # noqa: E741

    [sequence] = sequences_of(trajectory(USER, sampled([1], [he, l, lo], text="hello")))

    assert sequence.ids == (he, l, lo)


def test_the_prompt_of_the_rollout_is_kept_when_the_template_prints_another_date_today() -> None:
    dated = ChatRenderer(wrapped(drift(), "dated"))
    then = [*dated.prompt_ids([USER])[:-1], 77]

    [sequence] = sequences_of(trajectory(USER, sampled(then, [5])))

    assert sequence.prompt_ids == tuple(then)


def test_the_leading_space_piece_that_was_not_sampled_does_not_appear() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([4], [2, 3], text="The answer")))

    assert sequence.ids == (2, 3)


def test_an_end_token_that_is_also_the_padding_token_is_trained() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([5, 6], [7, 8, 2])))

    assert sequence.sampled == (True, True, True)


def test_a_second_end_id_is_trained_like_any_sampled_token() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([5], [40, 41, 106])))

    assert (sequence.ids, sequence.trained) == ((40, 41, 106), 3)


def test_a_cut_answer_is_trained_as_it_is_and_gets_no_end_token() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([1], [7, 8, 9], finish_reason="length")))

    assert (sequence.ids, sequence.sampled) == ((7, 8, 9), (True, True, True))


def test_the_newline_after_the_end_marker_stands_between_turns_and_is_not_trained() -> None:
    renderer = ChatRenderer(wrapped(drift(), "chatml"))
    q1, a1, q2 = USER, {"role": "assistant", "content": "a1"}, {"role": "user", "content": "q2"}
    first, second = renderer.prompt_ids([q1]), renderer.prompt_ids([q1, a1, q2])
    answer = [*renderer.text_ids("a1"), 2]

    [sequence] = sequences_of(trajectory(q1, sampled(first, answer), q2, sampled(second, [5, 2])))

    assert [*sequence.prompt_ids, *sequence.ids] == [*second, 5, 2]
    after_end = len(answer)
    assert sequence.ids[after_end] == renderer.text_ids("\n")[0]
    assert not sequence.sampled[after_end]


def test_turns_of_another_temperature_are_not_joined() -> None:
    warm = sampled([1, 3], [4], sampling={"temperature": 0.7})

    sequences = sequences_of(trajectory(USER, sampled([1], [3]), warm))

    assert [s.temperature for s in sequences] == [1.0, 0.7]


def test_greedy_logprobs_are_those_of_temperature_one() -> None:
    [sequence] = sequences_of(trajectory(USER, sampled([1], [3], sampling={"temperature": 0})))

    assert sequence.temperature == 1.0


def test_further_histories_are_trained_too_and_never_joined_to_the_main_one() -> None:
    side = History(messages_and_choices=[USER, sampled([1, 3], [4])])

    sequences = sequences_of(trajectory(USER, sampled([1], [3]), additional_histories=[side]))

    assert [(s.prompt_ids, s.ids) for s in sequences] == [((1,), (3,)), ((1, 3), (4,))]


def test_plain_messages_hold_nothing_sampled() -> None:
    assert sequences_of(trajectory(USER, {"role": "assistant", "content": "Hello world"})) == []


@pytest.mark.parametrize("missing", [{"logprobs": None}, {"token_ids": None}, {"prompt_token_ids": None}])
def test_a_choice_without_ids_or_logprobs_is_context(missing: dict[str, Any]) -> None:
    assert not is_trainable(sampled([1], [3], **missing))


def test_a_choice_with_fewer_logprobs_than_tokens_is_context() -> None:
    one = sampled([1], [3]).logprobs

    assert not is_trainable(sampled([1], [3, 4], logprobs=one))


def test_a_trajectory_from_a_file_trains_the_same_tokens() -> None:
    before = trajectory(USER, sampled([1, 2], [3, 4], sampling={"temperature": 0.7}))

    after = Trajectory.model_validate_json(before.model_dump_json())

    assert sequences_of(after) == sequences_of(before)
