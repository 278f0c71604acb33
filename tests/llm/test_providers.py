"""From names to clients."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from fakes import completion
from groundrule.data import ChatRequest
from groundrule.errors import ConfigError
from groundrule.llm import (
    OpenAIClient,
    ScriptedClient,
    litellm_client,
    register_prefix,
    registry,
    resolve_client,
)
from groundrule.llm.litellm_client import check_version
from groundrule.llm.metered import MeteredClient
from groundrule.llm.providers import PROVIDERS, request_params


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for provider in PROVIDERS.values():
        monkeypatch.delenv(provider.key_variable, raising=False)
        if provider.url_variable:
            monkeypatch.delenv(provider.url_variable, raising=False)
    monkeypatch.setattr(registry, "_TARGETS", {})


@pytest.mark.parametrize(
    ("name", "variable", "url"),
    [
        ("openai/o3", "OPENAI_API_KEY", "https://api.openai.com/v1"),
        ("anthropic/claude-sonnet-4", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1/"),
        ("openrouter/qwen/qwen3-32b", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
    ],
)
def test_a_provider_name_gives_its_endpoint_and_the_rest_is_the_model(monkeypatch, name, variable, url):
    monkeypatch.setenv(variable, "k")
    client, model = resolve_client(name)
    assert client.base_url == url
    assert model == name.partition("/")[2]


@pytest.mark.parametrize("name", ["openai", "gemini", "deepseek", "together"])
def test_a_missing_key_names_the_variable(name):
    with pytest.raises(ConfigError, match=PROVIDERS[name].key_variable):
        resolve_client(f"{name}/some-model")


@pytest.mark.parametrize("name", ["ollama/llama3.1:8b", "hosted_vllm/Qwen/Qwen3-8B"])
def test_own_servers_need_no_key(name):
    assert resolve_client(name)[1] == name.partition("/")[2]


def test_a_url_with_a_model_is_an_endpoint():
    client, model = resolve_client("http://10.0.0.1:8000/v1#Qwen/Qwen3-8B")
    assert (client.base_url, model) == ("http://10.0.0.1:8000/v1", "Qwen/Qwen3-8B")


def test_a_key_of_openai_is_not_sent_to_another_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    for name in ("http://10.0.0.1:8000/v1#m", "hosted_vllm/m", "ollama/m"):
        assert resolve_client(name)[0].check_key() == "none"


def test_a_url_without_a_model_is_refused():
    with pytest.raises(ConfigError, match="names no model"):
        resolve_client("http://10.0.0.1:8000/v1")


def test_an_address_in_the_parameters_replaces_the_providers():
    client, _ = resolve_client("openai/m", {"api_base": "http://127.0.0.1:1/v1"})
    assert client.base_url == "http://127.0.0.1:1/v1"


def test_an_address_without_a_path_gets_v1(monkeypatch):
    monkeypatch.setenv("OLLAMA_API_BASE", "http://10.0.0.1:11434")
    assert resolve_client("ollama/m")[0].base_url == "http://10.0.0.1:11434/v1"


def test_an_address_in_the_environment_replaces_the_providers(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2/v1")
    assert resolve_client("openai/m")[0].base_url == "http://127.0.0.1:2/v1"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("opnai/o3", r"did you mean openai/o3\?"),
        ("o3", r"'openai/o3'"),
        ("Qwen/Qwen3-32B", r"'hosted_vllm/Qwen/Qwen3-32B'"),
        ("openai/", "no provider is known"),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(name, hint):
    with pytest.raises(ConfigError, match=hint):
        resolve_client(name)


def test_a_client_is_metered_once():
    client, _ = resolve_client(ScriptedClient([]))
    assert isinstance(client, MeteredClient)
    assert resolve_client(client)[0] is client


def test_an_openai_client_as_a_judge_must_name_its_model():
    assert resolve_client(OpenAIClient(base_url="http://127.0.0.1:1/v1", model="m"))[1] == "m"
    with pytest.raises(ConfigError, match=r"OpenAIClient\(model=\.\.\.\)"):
        resolve_client(OpenAIClient())


def test_something_else_is_no_judge():
    with pytest.raises(ConfigError, match="int is no judge"):
        resolve_client(3)


def make_chat(rest, params):
    return ScriptedClient([rest])


def make_scorer(rest, params):
    return type("Scorer", (), {"score": lambda self, group: []})()


async def test_a_registered_prefix_is_imported_on_use():
    register_prefix("local", f"{__name__}:make_chat")
    client, model = resolve_client("local/smollm2-135m")
    assert model == "smollm2-135m"
    assert isinstance(client, MeteredClient)


def test_the_longest_registered_prefix_wins():
    register_prefix("local", f"{__name__}:make_chat")
    register_prefix("local/likelihood", f"{__name__}:make_scorer")
    with pytest.raises(ConfigError, match="scores groups and cannot chat"):
        resolve_client("local/likelihood")
    assert resolve_client("local/likelihood-like")[1] == "likelihood-like"


def test_a_target_that_cannot_be_imported_says_what_to_install():
    register_prefix("local", "groundrule.no_such_module:make")
    with pytest.raises(ConfigError, match=r"groundrule\[train\]"):
        resolve_client("local/x")


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.0"])
def test_compromised_releases_of_litellm_are_refused(version):
    with pytest.raises(ConfigError, match=f"litellm {version} carried malicious code"):
        check_version(version)


def test_a_missing_litellm_says_what_to_install():
    with pytest.raises(ConfigError, match=r"groundrule\[litellm\]"):
        check_version(None)


def test_connection_settings_are_no_request_parameters():
    assert request_params({"api_key": "k", "timeout": 3, "temperature": 0, "num_retries": 1}) == {
        "temperature": 0
    }


async def test_a_reply_by_litellm_is_read_like_any_other(monkeypatch):
    async def acompletion(**asked: Any) -> ChatCompletion:
        assert (asked["model"], asked["api_key"], asked["temperature"]) == ("bedrock/x", "k", 0)
        return ChatCompletion.model_validate(completion("hello", reasoning_content="thought"))

    monkeypatch.setattr(litellm_client, "installed_version", lambda: "1.108.0")
    monkeypatch.setitem(sys.modules, "litellm", SimpleNamespace(acompletion=acompletion))
    client, model = resolve_client("litellm/bedrock/x", {"api_key": "k"})
    asked = ChatRequest(model=model, messages=({"role": "user", "content": "hi"},), params={"temperature": 0})
    reply = await client.complete(asked)
    assert (reply.content, reply.reasoning, reply.usage.prompt_tokens) == ("hello", "thought", 10)
