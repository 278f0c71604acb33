"""The simulated judge: its faults have the size that was asked for, and its answers do not depend on luck."""

import asyncio
import math
import random
from collections import Counter
from dataclasses import replace
from statistics import fmean, pstdev

import pytest

from fakes import chat, group_of, prompt_of
from groundrule.data.protocols import ChatRequest
from groundrule.errors import ConfigError, JudgeReplyError, LlmError
from groundrule.llm.retry import is_retryable
from groundrule.rewards.ask import ask
from groundrule.rewards.attempt import attempt_of, attempts_of
from groundrule.rewards.judges import Judge
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.parse import parse_chat_reply
from groundrule.rewards.transcript import render

EXACT = NoisyJudge(noise=0.0, primacy=0.0, scale_sd=0.0, saturation=0.0, quant=0.001)
WORTH = {"faithful": 2.0, "verbose": 1.0, "hallucinated": -1.0, "ignores it": -2.0}


def worth_of(text):
    return next(value for answer, value in WORTH.items() if answer in text)


def request_for(attempts, *, seed=0, images=False):
    content = render(attempts, seed=seed, show_images=images).content
    opening = {"role": "system", "content": "Grade the trajectories."}
    return ChatRequest(model="noisy", messages=(opening, {"role": "user", "content": content}))


def four(seed=0):
    return request_for(attempts_of(group_of(*WORTH)), seed=seed)


def scores_of(reply, n=4):
    return [said.score for said in parse_chat_reply(reply, n)]


def seen(judge, qualities, calls=3000, **more):
    """The log odds of many calls, [place][call]."""
    rng = random.Random(1)
    rows = [judge.scores(qualities, rng=rng, **more) for _ in range(calls)]
    return [[math.log(s / (1 - s)) for s in column] for column in zip(*rows, strict=True)]


def test_a_judge_without_faults_says_the_quality():
    assert EXACT.scores([0.0, 1.0, -1.0], rng=random.Random(1)) == [0.5, 0.731, 0.269]


def test_noise_has_the_size_asked_for():
    judge = replace(EXACT, noise=0.5, quant=1e-6)
    assert pstdev(seen(judge, [0.0])[0]) == pytest.approx(0.5, abs=0.02)


def test_the_place_is_worth_primacy_first_and_the_opposite_last():
    judge = replace(EXACT, primacy=0.7, quant=1e-6)
    assert [fmean(place) for place in seen(judge, [0.0] * 3, calls=1)] == pytest.approx(
        [0.7, 0.0, -0.7], abs=1e-4
    )


def test_calls_differ_in_scale():
    judge = replace(EXACT, scale_sd=0.4, quant=1e-6)
    first, second = seen(judge, [0.5, -0.5])
    assert pstdev([math.log(a - b) for a, b in zip(first, second, strict=True)]) == pytest.approx(
        0.4, abs=0.02
    )
    assert pstdev([(a + b) / 2 for a, b in zip(first, second, strict=True)]) == pytest.approx(0.4, abs=0.02)


def test_good_company_lowers_a_score():
    judge = replace(EXACT, saturation=0.3)
    assert judge.scores([1.0, 1.0], rng=random.Random(1)) == [0.668, 0.668]  # sigmoid(1 - 0.3)


def test_wordiness_pays_by_the_log_of_the_length():
    judge = replace(EXACT, verbosity=0.5, quant=1e-6)
    longer, shorter = seen(judge, [0.0, 0.0], calls=1, words=[math.e * 100, 100])
    assert longer[0] - shorter[0] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(("quant", "expected"), [(0.05, 0.75), (0.1, 0.7), (0.25, 0.75), (0.3, 0.6)])
def test_scores_are_rounded_to_the_step(quant, expected):
    assert replace(EXACT, quant=quant).scores([1.0], rng=random.Random(1)) == [expected]


def test_scores_stay_on_the_scale():
    assert replace(EXACT, quant=0.3).scores([99.0, -99.0], rng=random.Random(1)) == [0.9, 0.0]
    assert replace(EXACT, quant=0.4).scores([99.0], rng=random.Random(1)) == [0.8]


def test_common_error_is_the_share_that_every_call_repeats():
    judge = replace(EXACT, noise=1.0, common_error=0.6, quant=1e-6)
    rng = random.Random(1)
    pairs = []
    for _ in range(4000):
        lasting = [rng.gauss(0, 1)]
        first, second = (judge.scores([0.0], rng=rng, common=lasting)[0] for _ in range(2))
        pairs.append((math.log(first / (1 - first)), math.log(second / (1 - second))))
    assert fmean(a * b for a, b in pairs) == pytest.approx(0.6, abs=0.06)
    assert fmean(a * a for a, _ in pairs) == pytest.approx(1.0, abs=0.06)


def test_no_items_have_no_scores():
    assert EXACT.scores([], rng=random.Random(1)) == []


def test_profiles_differ_in_all_their_faults():
    strong, weak = NoisyJudge.strong(), NoisyJudge.weak()
    assert (strong.noise, strong.primacy, strong.scale_sd, strong.quant) == (0.5, 0.25, 0.3, 0.05)
    assert (weak.noise, weak.primacy, weak.scale_sd, weak.quant) == (1.0, 0.7, 0.4, 0.1)
    assert strong.saturation == weak.saturation == 0.3


@pytest.mark.parametrize(
    ("setting", "value"),
    [("common_error", 1.5), ("failure_rate", -0.1), ("quant", 0.0), ("failures", ["shy"])],
)
def test_settings_that_cannot_be_are_refused(setting, value):
    with pytest.raises(ConfigError, match=f"{setting} is"):
        NoisyJudge(**{setting: value})


async def test_it_finds_the_trajectories_in_a_prompt_and_scores_each():
    judge = replace(EXACT, quality=worth_of)
    reply = await judge.complete(four())
    assert scores_of(reply) == [0.881, 0.731, 0.269, 0.119]
    assert judge.calls == 1


async def test_quality_is_asked_for_what_stands_in_the_block():
    texts = []
    judge = replace(EXACT, quality=lambda text: texts.append(text) or 0.0)
    await judge.complete(four())
    assert [answer in text for answer, text in zip(WORTH, texts, strict=True)] == [True] * 4
    assert not any("Refunds?" in text or ">>>" in text for text in texts)


async def test_further_conversations_and_images_belong_to_their_trajectory():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    attempts = [
        attempt_of(
            [*chat(answer), {"role": "user", "content": [picture]}], histories=[chat(f"before {answer}")]
        )
        for answer in WORTH
    ]
    judge = replace(EXACT, quality=worth_of)
    reply = await judge.complete(request_for(attempts, images=True))
    assert scores_of(reply) == [0.881, 0.731, 0.269, 0.119]


async def test_words_are_counted_without_the_boundary_lines():
    judge = replace(EXACT, quality=lambda text: 0.0, verbosity=1.0)
    request = request_for(attempts_of(group_of("word " * 30, "word " * 10)))
    longer, shorter = scores_of(await judge.complete(request), 2)
    assert math.log(longer / (1 - longer)) - math.log(shorter / (1 - shorter)) == pytest.approx(
        math.log(3), abs=0.02
    )


async def test_lasting_errors_follow_the_item_into_another_prompt():
    judge = replace(EXACT, quality=lambda text: 0.0, noise=1.0, common_error=1.0)
    attempts = attempts_of(group_of(*WORTH))
    there = scores_of(await judge.complete(request_for(attempts, seed=1)))
    back = scores_of(await judge.complete(request_for(attempts[::-1], seed=2)))
    assert there == back[::-1]
    assert len(set(there)) == 4


async def test_lasting_errors_of_another_seed_are_others():
    judge = replace(EXACT, quality=lambda text: 0.0, noise=1.0, common_error=1.0)
    assert scores_of(await judge.complete(four())) != scores_of(await replace(judge, seed=1).complete(four()))


async def test_concurrent_calls_get_what_calls_in_turn_get():
    def fresh():
        return NoisyJudge.weak(worth_of, failure_rate=0.3, seed=4)

    async def outcome(judge, request):
        try:
            return (await judge.complete(request)).content
        except LlmError as error:
            return str(error)

    requests = [four(seed) for seed in range(12)]
    judge = fresh()
    in_turn = [await outcome(judge, request) for request in requests]
    judge = fresh()
    together = await asyncio.gather(*[outcome(judge, request) for request in reversed(requests)])
    assert list(together)[::-1] == in_turn


async def test_the_same_prompt_is_answered_anew_each_time():
    def fresh():
        return NoisyJudge.strong(worth_of, seed=4)

    judge = fresh()
    replies = [(await judge.complete(four())).content for _ in range(3)]
    assert len(set(replies)) == 3
    again = fresh()
    assert [(await again.complete(four())).content for _ in range(3)] == replies


async def test_another_seed_gives_other_answers():
    first = await NoisyJudge.strong(worth_of).complete(four())
    assert (await NoisyJudge.strong(worth_of, seed=1).complete(four())).content != first.content


async def test_tokens_are_counted():
    reply = await replace(EXACT, quality=worth_of).complete(four())
    assert reply.usage.prompt_tokens == pytest.approx(len(prompt_of(four())) / 4, rel=0.3)
    assert reply.usage.completion_tokens == len(reply.content) // 4
    assert reply.finish_reason == "stop"


async def test_calls_fail_at_the_rate_and_in_the_ways_asked_for():
    judge = replace(EXACT, quality=worth_of, failure_rate=0.4)
    kinds = Counter()
    for seed in range(600):
        try:
            parse_chat_reply(await judge.complete(four(seed)), 4)
        except JudgeReplyError as error:
            kinds[error.kind] += 1
        except LlmError as error:
            assert is_retryable(error)
            kinds["error"] += 1
    assert set(kinds) == {"error", "truncated", "invalid_json", "missing_ids"}
    assert kinds.total() / 600 == pytest.approx(0.4, abs=0.05)
    assert min(kinds.values()) > 35


@pytest.mark.parametrize(
    ("failure", "kind"),
    [("cut_off", "truncated"), ("invalid_json", "invalid_json"), ("missing_id", "missing_ids")],
)
async def test_each_failure_is_what_the_reader_calls_it(failure, kind):
    judge = replace(EXACT, quality=worth_of, failure_rate=1.0, failures=[failure])
    for seed in range(40):
        with pytest.raises(JudgeReplyError) as caught:
            parse_chat_reply(await judge.complete(four(seed)), 4)
        assert caught.value.kind == kind


async def test_asking_again_after_a_bad_reply_is_another_call():
    judge = replace(EXACT, quality=worth_of, failure_rate=0.5, failures=["missing_id"], seed=2)
    messages = list(four().messages)
    answered = 0
    for _ in range(20):
        try:
            await ask([Judge(judge, "noisy")], lambda _: messages, lambda r: scores_of(r), purpose="test")
            answered += 1
        except JudgeReplyError:
            pass
    assert answered == pytest.approx(15, abs=4)


async def test_a_prompt_without_trajectories_is_refused():
    request = ChatRequest(model="noisy", messages=({"role": "user", "content": "Good morning."},))
    with pytest.raises(LlmError, match="shows no trajectories"):
        await replace(EXACT, quality=worth_of).complete(request)


async def test_a_judge_without_a_quality_cannot_chat():
    with pytest.raises(ConfigError, match="has no quality"):
        await EXACT.complete(four())
