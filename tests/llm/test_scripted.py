"""The scripted chat client."""

import pytest

from groundrule.data import ChatClient, ChatReply, ChatRequest
from groundrule.errors import LlmError
from groundrule.llm import ScriptedClient

REQUEST = ChatRequest(model="m", messages=({"role": "user", "content": "hi"},))


async def play(client, times):
    return [(await client.complete(REQUEST)).content for _ in range(times)]


async def test_a_list_is_played_in_order_and_requests_are_kept():
    client = ScriptedClient(
        ["a", ChatReply(content="b"), {"scores": []}, {"content": "c", "finish_reason": "length"}]
    )
    assert isinstance(client, ChatClient)
    assert await play(client, 4) == ["a", "b", '{"scores": []}', "c"]
    assert client.requests == [REQUEST] * 4


async def test_a_generator_is_played():
    assert await play(ScriptedClient(str(i) for i in range(9)), 2) == ["0", "1"]


async def test_a_function_answers_each_request():
    assert await play(ScriptedClient(lambda request: request.model * 2), 1) == ["mm"]


async def test_an_async_function_answers_too():
    async def answer(request):
        return "later"

    assert await play(ScriptedClient(answer), 1) == ["later"]


async def test_an_exception_in_the_script_is_raised():
    with pytest.raises(LlmError, match="down"):
        await play(ScriptedClient([LlmError("down")]), 1)


async def test_a_script_that_runs_out_says_so():
    with pytest.raises(LlmError, match="the script has 1 answers and was asked once more"):
        await play(ScriptedClient(["a"]), 2)


async def test_the_last_answer_can_be_repeated():
    assert await play(ScriptedClient(["a", "b"], repeat_last=True), 4) == ["a", "b", "b", "b"]


async def test_an_answer_that_is_no_answer_is_refused():
    with pytest.raises(LlmError, match="not int"):
        await play(ScriptedClient([3]), 1)


async def test_a_dict_may_hold_the_likeliest_texts_of_each_token():
    reply = await ScriptedClient([{"content": "A", "top_logprobs": [{"A": -0.1, "B": -2.4}]}]).complete(
        REQUEST
    )
    assert reply.top_logprobs == ((("A", -0.1), ("B", -2.4)),)
