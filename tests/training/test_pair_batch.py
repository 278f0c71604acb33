"""Preference pairs as tokens: which of them count, what is shared, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from groundrule.data.answers import Answer
from groundrule.data.messages import Message
from groundrule.data.preferences import PreferencePair, Ranking
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.training.pair_batch import PairBatch, PairSums, pair_tokens
from tiny import ASK, END, tiny_model

YES_OR_NO = PreferencePair(prompt=ASK, chosen="Yes.", rejected="No.")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return tiny_model()


def written(model: LanguageModel, text: str) -> tuple[int, ...]:
    return (*model.renderer.text_ids(text), END)


def rows(*values: list[float]) -> list[torch.Tensor]:
    return [torch.tensor(row) for row in values]


def test_an_answer_is_scored_with_its_end_marker_behind_the_prompt(model: LanguageModel) -> None:
    [found] = pair_tokens([YES_OR_NO], model)

    for [sequence], text in ((found.chosen, "Yes."), (found.rejected, "No.")):
        assert sequence.prompt_ids == tuple(model.renderer.prompt_ids(ASK))
        assert sequence.ids == written(model, text)
        assert all(sequence.sampled)


def test_what_the_agent_said_in_the_prompt_is_not_scored(model: LanguageModel) -> None:
    said: list[Message] = [
        *ASK,
        {"role": "assistant", "content": "Yes, of course."},
        {"role": "user", "content": "Sure?"},
    ]

    [found] = pair_tokens([PreferencePair(prompt=said, chosen="Yes.", rejected="No.")], model)

    [sequence] = found.chosen
    assert sequence.prompt_ids == tuple(model.renderer.prompt_ids(said))
    assert sequence.ids == written(model, "Yes.")


def test_every_turn_of_an_answer_is_scored_and_nothing_between(model: LanguageModel) -> None:
    turns: list[Message] = [
        {"role": "assistant", "content": "Wait."},
        {"role": "user", "content": "And?"},
        {"role": "assistant", "content": "Yes."},
    ]

    [found] = pair_tokens([PreferencePair(prompt=ASK, chosen=turns, rejected="No.")], model)

    [sequence] = found.chosen
    scored = [token for token, counts in zip(sequence.ids, sequence.sampled, strict=True) if counts]
    assert scored == [*written(model, "Wait."), *written(model, "Yes.")]


def test_an_answer_in_several_pairs_passes_through_the_model_once(model: LanguageModel) -> None:
    answers = [Answer(id=name, text=text) for name, text in [("a", "Yes."), ("b", "No."), ("c", "Perhaps.")]]
    ranking = Ranking(prompt=ASK, answers=answers, order=["a", "b", "c"])

    batch = PairBatch(pair_tokens(ranking.pairs(), model))

    # The end markers are predicted, not read.
    assert batch.tree.unique_tokens == len(model.renderer.prompt_ids(ASK)) + 4 + 3 + 8


def test_sums_are_those_of_each_answer(model: LanguageModel) -> None:
    batch = PairBatch(pair_tokens([YES_OR_NO], model))

    found = batch.compare(rows([-1.0] * 5, [-2.0] * 4), rows([-1.5] * 5, [-1.0] * 4))

    assert found.policy.tolist() == [[-5.0, -8.0]]
    assert found.reference.tolist() == [[-7.5, -4.0]]
    assert found.squares.tolist() == [[1.25, 4.0]]
    assert found.tokens.tolist() == [[5.0, 4.0]]
    assert found.certainty.tolist() == [1.0]


def test_an_answer_whose_turns_do_not_continue_each_other_is_summed_over_all_of_them(
    model: LanguageModel,
) -> None:
    [found] = pair_tokens([YES_OR_NO], model)
    batch = PairBatch([type(found)(0, (*found.chosen, *found.rejected), found.rejected, 0.9)])

    sums = batch.compare(rows([-1.0], [-2.0], [-4.0]), rows([0.0], [0.0], [0.0]))

    assert sums.policy.tolist() == [[-3.0, -4.0]]
    assert sums.tokens.tolist() == [[2.0, 1.0]]


def test_parts_are_put_together_in_order(model: LanguageModel) -> None:
    batch = PairBatch(pair_tokens([YES_OR_NO], model))
    parts = [batch.compare(rows([value], [0.0]), rows([0.0], [0.0])) for value in (-1.0, -2.0)]

    assert PairSums.of(parts).policy.tolist() == [[-1.0, 0.0], [-2.0, 0.0]]


def test_no_pairs_are_refused(model: LanguageModel) -> None:
    with pytest.raises(TrainingError, match="there are no preference pairs"):
        pair_tokens([], model)


def test_a_pair_of_which_nothing_can_be_scored_is_refused_by_its_number(model: LanguageModel) -> None:
    silent = Answer.model_construct(id="x", messages=[{"role": "user", "content": "Yes."}])
    broken = YES_OR_NO.model_copy(update={"rejected": silent})

    with pytest.raises(TrainingError, match="pair 1: the rejected answer has no assistant turn"):
        pair_tokens([YES_OR_NO, broken], model)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_log_probability_that_is_not_finite_names_pair_and_side(model: LanguageModel, value: float) -> None:
    batch = PairBatch(pair_tokens([YES_OR_NO], model))

    with pytest.raises(TrainingError, match=r"pair 0: the reference .* gives the rejected answer"):
        batch.compare(rows([-1.0], [-1.0]), rows([-1.0], [value]))
