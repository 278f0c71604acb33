"""Requests and answers on which other servers went wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from groundrule.inference.engine import Engine
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from served import ScriptedEngine, asking, events, post, served, tool
from tiny import END, tiny_model

CASES = {c["id"]: c for c in json.loads((Path(__file__).parent / "server.json").read_text("utf-8"))}


def named(*ids: str) -> list[Any]:
    return [pytest.param(CASES[i], id=f"{i}: {CASES[i]['name']}") for i in ids]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The tiny model itself."""
    engine = Engine(tiny_model())
    with served(engine) as url:
        yield url
    engine.close()


def body_of(case: dict[str, Any], **more: Any) -> dict[str, Any]:
    return asking(*case.get("messages", []), max_tokens=2, **case.get("more", {}), **more)


@pytest.mark.parametrize("case", named("S01", "S03", "S04", "S11"))
def test_the_conversation_is_read(base_url, case):
    reply = post(base_url, body_of(case))
    assert reply.status_code == 200, reply.text
    prompt = tiny_model().tokenizer.decode(reply.json()["choices"][0]["prompt_token_ids"])
    assert case["prompt_contains"] in prompt


@pytest.mark.parametrize("case", named("S02", "S07"))
def test_the_request_is_refused_by_the_place_of_its_fault(base_url, case):
    reply = post(base_url, body_of(case))
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, case["error"]["param"])


def test_s07_history_in_the_old_form_is_read_as_calls_and_results(base_url):
    reply = post(base_url, asking(*CASES["S07"]["messages"], max_tokens=1))
    prompt = tiny_model().tokenizer.decode(reply.json()["choices"][0]["prompt_token_ids"])
    assert '{"name": "f", "arguments": {}}' in prompt


def reasons_and_calls(said: str, *, stream: bool) -> tuple[str, list[dict[str, Any]]]:
    with served(ScriptedEngine(said)) as url:
        reply = post(url, asking(tools=[tool("find")], stream=stream))
    if not stream:
        choice = reply.json()["choices"][0]
        return choice["finish_reason"], choice["message"].get("tool_calls", [])
    choices = [json.loads(e)["choices"][0] for e in events(reply)[:-1]]
    calls = [call for choice in choices for call in choice["delta"].get("tool_calls", [])]
    return choices[-1]["finish_reason"], calls


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("number", [0, 1], ids=["whole call", "cut call"])
def test_s05_the_finish_reason_is_the_same_in_a_stream(number, stream):
    case = CASES["S05"]
    assert reasons_and_calls(case["said"][number], stream=stream)[0] == case["finish_reasons"][number]


def test_s06_calls_in_a_stream_are_told_apart():
    case = CASES["S06"]
    _, calls = reasons_and_calls(case["said"][0], stream=True)
    assert [call["index"] for call in calls] == case["indexes"]
    assert len({call["id"] for call in calls}) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_s08_minus_infinity_is_written_as_a_number(stream):
    case = CASES["S08"]
    engine = ScriptedEngine("a")
    engine.logprob = float(case["logprob"])
    with served(engine) as url:
        reply = post(url, body_of(case, stream=stream))
    whole = json.loads(events(reply)[1] if stream else reply.text, parse_constant=pytest.fail)
    token = whole["choices"][0]["logprobs"]["content"][0]
    assert (token["logprob"], token["top_logprobs"][1]["logprob"]) == (case["written"], case["written"])


def test_s09_a_prompt_that_does_not_fit_is_refused(base_url):
    case = CASES["S09"]
    filler = 512 - len(tiny_model().renderer.prompt_ids([{"role": "user", "content": ""}]))
    reply = post(base_url, asking({"role": "user", "content": "x" * (filler + 1)}))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, case["error"]["code"])


def test_s10_an_unknown_route_answers_with_an_error_object(base_url):
    case = CASES["S10"]
    reply = post(base_url, {}, path=case["path"])
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, case["error"]["code"])


def adapted(model: LanguageModel, seed: int) -> None:
    """Another adapter's weights in the adapter that the model has."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.normal_(std=0.3, generator=generator)


def test_s12_nothing_of_the_old_adapter_shows_in_the_new_answer():
    model = tiny_model()
    add_adapter(model, LoraSettings(rank=2), seed=0)
    adapted(model, 1)
    engine = Engine(model)
    question = asking(max_tokens=8, temperature=0)
    with served(engine) as url:
        before = post(url, question).json()["choices"][0]
        adapted(model, 2)
        engine.publish(1)
        after = post(url, question).json()["choices"][0]
    engine.close()
    fresh = Engine(model)
    with served(fresh) as url:
        wanted = post(url, question).json()["choices"][0]
    fresh.close()
    assert before["token_ids"] != after["token_ids"]
    assert (after["token_ids"], after["logprobs"]) == (wanted["token_ids"], wanted["logprobs"])


def test_s13_the_end_marker_is_no_part_of_the_answer(base_url):
    case = CASES["S13"]
    # The real engine: one choice of text, and the end token behind it, by a grammar that leaves no other way.
    schema = {"type": "json_schema", "json_schema": {"name": "one", "schema": {"const": case["said"][0]}}}
    choice = post(base_url, asking(response_format=schema)).json()["choices"][0]
    assert choice["token_ids"][-1] == END
    assert (json.loads(choice["message"]["content"]), choice["finish_reason"]) == (
        case["content"],
        case["finish_reasons"][0],
    )


def test_every_case_has_a_test():
    source = Path(__file__).read_text("utf-8")
    assert [i for i in CASES if f'"{i}"' not in source and f"def test_{i.lower()}_" not in source] == []
