"""Agent, judge and reflection model behind one OpenAI-compatible URL: RULER reads, and lessons are learned."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from fakes import FakeOpenAI, completion, fake_openai
from groundrule.data.protocols import ChatRequest
from groundrule.data.runs import Run
from groundrule.prompt_learning.simulated import HABITS, SPEC, SimulatedWriter
from groundrule.recipes.config_file import checked_config
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.history import read_history
from groundrule.recipes.prompt_learning.run import learn_prompt
from groundrule.rewards.noisy import NoisyJudge
from prompt_worlds import WORLD, AgentByName, write_tasks

_QUALITY = re.compile(r'"quality": (-?[\d.]+)')


def quality(shown: str) -> float:
    """Of an answer between its boundaries; four standard deviations from the worst to the best."""
    return 4.0 * float(_QUALITY.findall(shown)[-1])


USAGE = {"prompt_tokens": 5000, "completion_tokens": 9, "total_tokens": 5009}


def complaining(content: str) -> str:
    """The simulated judge's scores, with the same complaint about every answer."""
    said = json.loads(content)
    for one in said["scores"]:
        one["explanation"] = HABITS[0].complaint
    return json.dumps(said)


class World(FakeOpenAI):
    """Answers each request as the model that it is meant for."""

    agent, writer = AgentByName(), SimulatedWriter(WORLD)
    judge = NoisyJudge(quality, noise=0.2, primacy=0.1, scale_sd=0.1)

    def next(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        self.requests.append(body)
        params = {key: value for key, value in body.items() if key not in ("model", "messages")}
        request = ChatRequest(body["model"], tuple(body["messages"]), params)
        reply = asyncio.run(getattr(self, body["model"]).complete(request))
        content = complaining(reply.content) if body["model"] == "judge" else reply.content
        return 200, {}, completion(content, usage=USAGE)


@pytest.fixture
def by_url(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("fakes.FakeOpenAI", World)
    with fake_openai((200, {}, {})) as server:
        yield server


def test_a_prompt_is_learned_from_models_behind_a_url(by_url, tmp_path):
    name = f"{by_url.base_url}#"
    config = checked_config(
        PromptConfig,
        {
            "scenarios": {"source": str(write_tasks(tmp_path / "tasks.jsonl"))},
            "policy": {"model": f"{name}agent", "max_concurrency": 8},
            "judge": {"model": f"{name}judge", "passes": 2, "max_passes": 2},
            "reflection": {"model": f"{name}writer"},
            "learn": {
                "rounds": 1,
                "groups_per_round": 4,
                "edits": 1,
                "looks": [4, 8],
                "final": 4,
                "least_support": 1,
            },
            "run": {"folder": str(tmp_path / "run")},
        },
    )

    asyncio.run(learn_prompt(config, report=lambda line: None))

    asked = {body["model"] for body in by_url.requests}
    judged = [body for body in by_url.requests if body["model"] == "judge"]
    with Run.open(tmp_path / "run", read_only=True) as run:
        record = json.loads((tmp_path / "run" / "rounds" / "step-000001.json").read_text())
        purposes = {line["purpose"] for line in run.costs()}
    assert asked == {"agent", "judge", "writer"}
    assert all(SPEC in str(body["messages"]) for body in judged)
    assert not any("Lessons from earlier work" in str(body["messages"]) for body in judged)
    assert {"rollout", "prompt/reflection"} <= purposes
    assert len(record["tested"]) + len(record["refused"]) >= 1
    assert read_history(tmp_path / "run").pool.versions[0].how == "start"
