"""The likelihood judge on a made-up model, whose log-probabilities are known by construction."""

from collections.abc import Sequence

import pytest

from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError
from groundrule.rewards.likelihood import (
    ASK_SYSTEM,
    NEUTRAL_SYSTEM,
    Continuation,
    LikelihoodJudge,
    LikelihoodSettings,
    TokenLogprobs,
    least_supported,
)
from groundrule.rewards.situation import split_user_message

SYSTEM = "Answer briefly and only from the passage."
PASSAGE = "the pool opens at seven and the sauna at nine on all days of the week except monday"
QUESTION = "When can I swim?"
USER = f"[Retrieved context]: {PASSAGE}\n\nQuestion: {QUESTION}"


class WordModel:
    """Words are tokens. -1 for a word that the conversation holds, -3 for any other."""

    def __init__(self) -> None:
        self.asked: list[Continuation] = []

    def logprobs(self, continuations: Sequence[Continuation]) -> list[TokenLogprobs]:
        self.asked += continuations
        return [self._one(c) for c in continuations]

    def _one(self, continuation: Continuation) -> TokenLogprobs:
        seen = " ".join(str(m["content"]) for m in continuation.messages).lower().split()
        words = continuation.text.split()
        return TokenLogprobs([f" {w}" for w in words], [-1.0 if w.lower() in seen else -3.0 for w in words])


def judged(*answers: str, system: str = SYSTEM, user: str = USER, **settings: object):
    members = [
        Trajectory(
            messages_and_choices=[
                {"role": "system", "content": system},
                {"role": "user", "content": user},
                {"role": "assistant", "content": answer},
            ]
        )
        for answer in answers
    ]
    model = WordModel()
    judge = LikelihoodJudge(model, LikelihoodSettings(relevance_scale=None, **settings))
    return judge.score_now(TrajectoryGroup(members)), model


def test_words_that_only_the_passage_explains_earn_the_full_bound():
    (score,), _ = judged("pool opens at seven")
    assert score.parts["grounding"] == 1.0


def test_the_plain_mean_gain_is_kept_in_nats():
    (score,), _ = judged("pool opens at midnight")
    assert score.parts["gain_nats"] == pytest.approx((2 + 2 + 2 + 0) / 4)


def test_a_gain_is_bounded_per_token():
    (score,), _ = judged("pool opens at midnight", max_gain=4.0)
    assert score.parts["grounding"] == pytest.approx((2 + 2 + 2 + 0) / 4 / 4)


def test_a_long_copied_run_earns_nothing_after_its_free_part():
    (score,), _ = judged(PASSAGE, free_run=10)
    assert score.parts["copied_run"] == 18.0
    # Of the ten free words "the", "and" and "the" stand in the system prompt too.
    assert score.parts["grounding"] == pytest.approx(7 / 18)


def test_quoting_the_system_prompt_earns_nothing():
    (score,), _ = judged(SYSTEM)
    assert score.parts["grounding"] == 0.0


def test_repeating_a_word_earns_only_once():
    (score,), _ = judged("sauna sauna sauna sauna")
    assert score.parts["grounding"] == 0.25


def test_repeating_a_phrase_earns_only_the_first_time():
    (score,), _ = judged("pool opens sauna nine pool opens sauna nine")
    # New pairs: the first four words, and "nine pool".
    assert score.parts["grounding"] == 0.625


def test_an_invented_answer_scores_below_a_supported_one():
    (good, bad), _ = judged("pool opens at seven", "nobody swims there ever")
    assert good.value > bad.value


def test_values_lie_between_zero_and_one():
    (good, bad), _ = judged("pool opens at seven", "nobody swims there ever")
    assert 0 < bad.value < good.value < 1


def test_the_baseline_is_the_bare_question_under_a_neutral_prompt():
    _, model = judged("pool opens")
    assert model.asked[1].messages == [
        {"role": "system", "content": NEUTRAL_SYSTEM},
        {"role": "user", "content": QUESTION},
    ]


def test_without_a_label_the_baseline_is_a_neutral_conversation():
    _, model = judged("fine", user="Tell me about pools.")
    assert model.asked[1].messages[1]["content"] == "Say something."


def test_question_and_passage_are_found_in_either_order():
    assert split_user_message("How?\n\n[Retrieved context]: Like this.") == ("How?", "Like this.")
    assert split_user_message("[Retrieved context]: Like this.\n\nQuestion: How?") == ("How?", "Like this.")
    assert split_user_message("Context: Like this.\nQuestion: How?") == ("How?", "Like this.")


def test_a_message_without_a_passage_is_not_taken_apart():
    assert split_user_message("How?") == (None, None)


def test_a_colon_in_a_sentence_is_not_a_label():
    assert split_user_message("I have these documents: a passport. Enough?") == (None, None)


def test_an_empty_answer_is_not_scored_and_says_why():
    (score,), _ = judged("  ")
    assert (score.value, score.reason) == (None, "the answer is empty")


def test_a_trajectory_without_an_answer_is_not_scored():
    group = TrajectoryGroup([Trajectory(messages_and_choices=[{"role": "user", "content": "hi"}])])
    (score,) = LikelihoodJudge(WordModel()).score_now(group)
    assert score.reason == "no assistant message to judge"


def test_the_explanation_names_the_least_supported_span():
    (score,), _ = judged("pool opens at midnight sharp")
    assert "'midnight sharp' (+0.00)" in score.explanation


def test_least_supported_spans_come_worst_first():
    spans = least_supported([" a", " b", " c", " d"], [-0.5, 1.0, -2.0, -1.0])
    assert spans == [("c d", -1.5), ("a", -0.5)]


def test_relevance_asks_for_the_question_after_the_answer():
    model = WordModel()
    member = Trajectory(
        messages_and_choices=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": USER},
            {"role": "assistant", "content": "you can swim from seven"},
        ]
    )
    (score,) = LikelihoodJudge(model).score_now(TrajectoryGroup([member]))
    asking, without = model.asked[3:5]
    assert [asking.messages[0]["content"], asking.text] == [ASK_SYSTEM, QUESTION]
    assert [PASSAGE in c.messages[1]["content"] for c in (asking, without)] == [True, True]
    assert "you can swim from seven" not in without.messages[1]["content"]
    # "can" stands in the answer: one of four question words gains 2 nats.
    assert score.parts["relevance"] == pytest.approx(0.5)


def test_what_the_system_prompt_alone_explains_earns_nothing_unless_it_is_allowed_to():
    (closed,), _ = judged("briefly only from")
    (allowed,), _ = judged("briefly only from", spec_earns=True)
    assert (closed.parts["grounding"], allowed.parts["grounding"]) == (0.0, 1.0)


def test_the_second_baseline_is_the_conversation_without_its_passage():
    _, model = judged("seven")
    told = model.asked[2].messages
    assert [m["content"] for m in told] == [SYSTEM, f"[Retrieved context]: \n\nQuestion: {QUESTION}"]


class Misled(WordModel):
    """Finds the question less likely after every answer."""

    def _one(self, continuation: Continuation) -> TokenLogprobs:
        said = super()._one(continuation)
        asked = continuation.messages[0]["content"] == ASK_SYSTEM
        if asked and "answer is: ..." not in continuation.messages[1]["content"]:
            return TokenLogprobs(said.tokens, [p - 1.0 for p in said.logprobs])
        return said


def test_an_answer_that_relevance_misjudges_keeps_two_fifths():
    members = [
        Trajectory(
            messages_and_choices=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": USER},
                {"role": "assistant", "content": "pool opens at seven"},
            ]
        )
    ]
    (score,) = LikelihoodJudge(Misled()).score_now(TrajectoryGroup(members))
    assert score.parts["relevance"] == pytest.approx(-1.0)
    assert score.parts["raw"] == pytest.approx(0.4 * score.parts["grounding"])


def test_echoing_the_question_gains_no_relevance():
    model = WordModel()
    member = Trajectory(
        messages_and_choices=[
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": USER},
            {"role": "assistant", "content": "When can I swim?"},
        ]
    )
    (score,) = LikelihoodJudge(model).score_now(TrajectoryGroup([member]))
    assert score.parts["relevance"] == 0.0


async def test_the_judge_is_a_scorer_in_group_order():
    judge = LikelihoodJudge(WordModel(), LikelihoodSettings(relevance_scale=None))
    members = [
        Trajectory(
            messages_and_choices=[{"role": "user", "content": USER}, {"role": "assistant", "content": a}]
        )
        for a in ("nobody swims there", "pool opens at seven")
    ]
    first, second = await judge.score(TrajectoryGroup(members))
    assert first.value < second.value


def test_an_answer_cut_at_its_limit_keeps_half():
    from openai.types.chat.chat_completion import Choice

    def member(reason: str) -> Trajectory:
        message = {"role": "assistant", "content": "pool opens at seven"}
        choice = Choice.model_validate({"index": 0, "finish_reason": reason, "message": message})
        return Trajectory(messages_and_choices=[{"role": "user", "content": USER}, choice])

    judge = LikelihoodJudge(WordModel(), LikelihoodSettings(relevance_scale=None))
    whole, cut = judge.score_now(TrajectoryGroup([member("stop"), member("length")]))
    assert (whole.parts["raw"], cut.parts["raw"]) == (1.0, 0.5)


def test_a_conversation_that_the_model_refuses_is_not_scored():
    class Refusing(WordModel):
        def logprobs(self, continuations: Sequence[Continuation]) -> list[TokenLogprobs]:
            raise ModelError("this model reads no images")

    member = Trajectory(
        messages_and_choices=[{"role": "user", "content": USER}, {"role": "assistant", "content": "a"}]
    )
    (score,) = LikelihoodJudge(Refusing()).score_now(TrajectoryGroup([member]))
    assert score.reason == "the judge's model refused: this model reads no images"
