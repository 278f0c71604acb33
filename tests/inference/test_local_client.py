"""Any local model as a judge: `local/MODEL`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fakes import group_of, scores_json
from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.errors import ConfigError, ProviderError
from groundrule.inference import local_client
from groundrule.inference.local_client import LocalClient, local_judge
from groundrule.llm import ScriptedClient
from groundrule.llm.registry import make
from groundrule.models import pool
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.rewards import ruler_score_group
from groundrule.rewards.judges import Judge
from groundrule.rewards.likelihood import LikelihoodJudge
from groundrule.rewards.parse import parse_judge_reply
from groundrule.rewards.prompt import RESPONSE_FORMAT, exact_format
from tiny import tiny_model

HELLO = ({"role": "user", "content": "Hi"},)
NAME = "smollm2-135m"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> LanguageModel:
    """The tiny model, with room for a judge's prompt, under the name of the embedded one."""
    made = tiny_model()
    made.max_tokens = 20_000
    monkeypatch.setattr(pool, "load_model", lambda name, *, device=None: made)
    monkeypatch.setattr(pool, "_models", {})
    return made


def asked(client: LocalClient, **params: Any) -> ChatReply:
    return asyncio.run(client.complete(ChatRequest(NAME, HELLO, params)))


def test_what_was_read_for_one_call_is_not_read_again_for_the_next(model):
    client = LocalClient(model)
    first = asked(client, max_tokens=2)
    before = client._read.bytes
    again = asked(client, max_tokens=2)

    assert before > 0
    assert (client._read.bytes, again.content) == (before, first.content)


def test_a_name_gives_a_client_with_the_weights_of_the_pool(model):
    client = make(f"local/{NAME}")
    assert isinstance(client, LocalClient)
    assert client._model is pool.for_judging(NAME)


def test_those_who_ask_at_the_same_time_share_a_client(model):
    assert local_judge(NAME) is local_judge(NAME)


def test_likelihood_is_still_the_scorer(model):
    assert isinstance(make("local/likelihood"), LikelihoodJudge)


def test_a_misspelt_judge_is_an_error_that_names_the_known_ones():
    with pytest.raises(ConfigError, match="'local/likelyhood' is not a judge"):
        local_judge("likelyhood")


def test_a_reply_costs_nothing_and_counts_its_tokens(model):
    reply = asked(LocalClient(model), max_tokens=3)
    prompt = len(model.renderer.prompt_ids(list(HELLO)))
    assert (reply.cost_usd, reply.usage.prompt_tokens, reply.usage.completion_tokens) == (0.0, prompt, 3)
    assert reply.finish_reason == "length"


def test_the_same_question_gets_the_same_answer_unless_the_temperature_says_otherwise(model):
    client = LocalClient(model)
    assert asked(client, max_tokens=8).content == asked(client, max_tokens=8).content
    warm = {asked(client, max_tokens=8, temperature=1.0, seed=i).content for i in range(3)}
    assert len(warm) == 3


def test_the_adapter_of_a_policy_in_training_does_not_judge(model):
    before = asked(LocalClient(model), max_tokens=8).content
    add_adapter(model, LoraSettings(rank=2), seed=0)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.normal_(std=0.5)
    assert asked(LocalClient(model), max_tokens=8).content == before


def test_calls_at_the_same_time_are_answered_in_one_batch(model, monkeypatch):
    sizes: list[int] = []
    generate = local_client.generate

    def counted(model: LanguageModel, requests: list[Any], **more: Any) -> Any:
        sizes.append(len(requests))
        return generate(model, requests, **more)

    monkeypatch.setattr(local_client, "generate", counted)
    client = LocalClient(model)
    requests = [ChatRequest(NAME, HELLO, {"max_tokens": 2, "seed": i}) for i in range(4)]

    async def together() -> list[ChatReply]:
        return await asyncio.gather(*(client.complete(r) for r in requests))

    assert len(asyncio.run(together())) == 4
    assert sizes == [4]


@pytest.mark.parametrize(
    ("params", "said"), [({"temperature": 9}, "temperature"), ({"seeed": 1}, "did you mean 'seed'")]
)
def test_a_parameter_that_cannot_be_used_is_an_error_that_names_it(model, params, said):
    with pytest.raises(ProviderError, match=said):
        asked(LocalClient(model), **params)


def test_a_random_model_s_reply_gives_a_valid_score_to_each_of_so_many(model):
    reply = asked(LocalClient(model), response_format=exact_format(2), temperature=1.5, seed=1)
    scores = parse_judge_reply(str(reply.content), 2, reply.finish_reason)
    assert [s.trajectory_id for s in scores] == ["1", "2"]
    assert all(0 <= s.score <= 1 for s in scores)


async def test_ruler_scores_a_group_with_a_local_model(model):
    group = await ruler_score_group(group_of("Thirty days.", "Never."), f"local/{NAME}")
    assert group is not None
    assert [t.unscored for t in group.trajectories] == [None] * 2
    assert all(0 <= t.reward <= 1 for t in group.trajectories)


@pytest.fixture
def judges(model: LanguageModel) -> Iterator[tuple[Judge, Judge]]:
    """A local judge and one behind an endpoint, both asked for the judge's format."""
    params = {"response_format": RESPONSE_FORMAT}
    yield Judge(LocalClient(model), NAME, params), Judge(ScriptedClient([scores_json(1.0)]), "far", params)


def test_only_judges_that_keep_to_any_schema_are_told_the_number_of_trajectories(judges):
    local, far = judges
    [format_] = local.for_members(2).params.values()
    assert json.dumps(format_).count('"const"') == 2
    assert far.for_members(2) is far


def test_the_context_of_a_local_judge_is_that_of_its_model(judges):
    assert judges[0].context_tokens == 20_000


def test_the_likeliest_texts_of_each_token_come_where_they_are_asked_for(model):
    reply = asked(LocalClient(model), max_tokens=2, logprobs=True, top_logprobs=3)
    first = reply.top_logprobs[0]

    assert [len(token) for token in reply.top_logprobs] == [3, 3]
    assert reply.content.startswith(first[0][0])  # Greedy.
    assert first[0][1] > first[1][1] > first[2][1]


def test_unasked_there_are_none(model):
    assert asked(LocalClient(model), max_tokens=2).top_logprobs == ()
