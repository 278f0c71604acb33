"""Asking judges, apart from what they are asked about."""

import pytest

from fakes import prompt_of
from groundrule.data import ChatReply, Usage
from groundrule.errors import JudgeReplyError
from groundrule.llm import ReplyCache, ScriptedClient
from groundrule.rewards.ask import ask, check_prompt_arrived, estimated_tokens
from groundrule.rewards.judges import Judge, judge_chain

MESSAGES = [{"role": "user", "content": "Is it right?"}]


def read_yes(reply: ChatReply) -> bool:
    if reply.content not in ("yes", "no"):
        raise JudgeReplyError("invalid_json", f"{reply.content!r} is neither yes nor no")
    return reply.content == "yes"


def asked(client, **more):
    return ask([Judge(client, "m")], lambda judge: MESSAGES, read_yes, purpose="judge/test", **more)


async def test_any_reader_can_be_used():
    assert (await asked(ScriptedClient(["no"]))).value is False


async def test_the_number_of_reasks_can_be_set():
    client = ScriptedClient(["?", "?", "?", "yes"])
    assert (await asked(client, max_reasks=3)).value is True
    assert len(client.requests) == 4


async def test_thinking_is_not_shown_to_the_judge_again():
    client = ScriptedClient(["<think>hm</think>perhaps", "yes"])
    await asked(client)
    assert client.requests[1].messages[1] == {"role": "assistant", "content": "perhaps"}


async def test_a_long_unusable_reply_is_shown_cut():
    client = ScriptedClient(["x" * 100_000, "yes"])
    await asked(client)
    assert len(prompt_of(client.requests[1])) < 6_000


async def test_a_cached_reply_that_no_longer_reads_is_asked_for_again(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    client = ScriptedClient(["yes", "no"])
    await asked(client, cache=cache)
    strict = []

    def read_no(reply):
        strict.append(reply.cached)
        if reply.content == "yes":
            raise JudgeReplyError("invalid_json", "only no is taken now")
        return False

    reading = await ask(
        [Judge(client, "m")], lambda judge: MESSAGES, read_no, purpose="judge/test", cache=cache
    )
    assert reading.value is False
    assert strict == [True, False]


def test_a_default_parameter_can_be_overridden_or_taken_out():
    defaults = {"response_format": {"type": "json_schema"}, "seed": 1}
    chain = judge_chain(ScriptedClient([]), {"response_format": None, "seed": 2}, defaults=defaults)
    assert chain[0].params == {"seed": 2}


def test_the_address_and_key_of_a_judge_are_not_given_to_its_fallback(monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k2")
    extra = {"api_base": "http://127.0.0.1:1/v1", "api_key": "k1"}
    first, second = judge_chain("openai/m", extra, fallback="deepseek/n")
    assert (first.endpoint, first.client.check_key()) == ("http://127.0.0.1:1/v1", "k1")
    assert (second.endpoint, second.client.check_key()) == ("https://api.deepseek.com/v1", "k2")


def test_tokens_are_estimated_cautiously():
    assert estimated_tokens([{"role": "user", "content": "word " * 1000}]) == 1250
    assert estimated_tokens([{"role": "user", "content": "退" * 3 + "款" * 2}]) == 3
    assert estimated_tokens([{"role": "user", "content": "=" * 10_000}]) == 1


@pytest.mark.parametrize("usage", [Usage(), Usage(4000), Usage(1000, 10, 3000)])
def test_a_prompt_that_arrived_is_accepted(usage):
    messages = [{"role": "user", "content": "some words " * 2000}]
    check_prompt_arrived(messages, ChatReply("x", usage=usage))


def test_short_prompts_are_not_checked():
    check_prompt_arrived(MESSAGES, ChatReply("x", usage=Usage(prompt_tokens=1)))
