"""A made-up run of some steps, to look at: real questions, invented answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openai.types.chat.chat_completion import Choice

from groundrule._util import jsonl
from groundrule.data import Scenario, Trajectory, TrajectoryGroup
from groundrule.data.evaluation import EvaluatedAnswer, Evaluation
from groundrule.data.runs import Run
from groundrule.rewards.checks import check_answer, summarise
from groundrule.rollouts import load_scenarios

CONFIG = {
    "run": {"project": "support", "name": "first"},
    "policy": {"model": "smollm2-135m"},
    "judge": {"model": "local/likelihood", "api_key": "sk-never-shown"},
    "scenarios": {"source": "support"},
    "train": {"steps": 12, "group_size": 4},
}


def answer_to(scenario: Scenario, quality: float, draw: random.Random) -> str:
    """A better answer the higher `quality` is."""
    if draw.random() < quality:
        return scenario.reference or "I can't find that in the documents."
    vague = "Our team is happy to help you. Please write to help@example.com or call 555-0100 for details. "
    return draw.choice([vague, scenario.context[:120], vague * 3])


def sampled(text: str, *, finish_reason: str = "stop") -> Choice:
    message = {"role": "assistant", "content": text}
    return Choice.model_validate({"index": 0, "finish_reason": finish_reason, "message": message})


def attempt(scenario: Scenario, quality: float, draw: random.Random) -> Trajectory:
    text = answer_to(scenario, quality, draw)
    cut = draw.random() < 0.08
    score = 0.2 + 0.6 * (text == scenario.reference) + 0.15 * draw.random()
    return Trajectory(
        messages_and_choices=[*scenario.messages(), sampled(text, finish_reason="length" if cut else "stop")],
        reward=score,
        unscored="the judge's reply was truncated" if draw.random() < 0.02 else None,
        logs=[f"LIKELIHOOD explanation: least supported: {text.split()[-3:]}"],
    )


def group_of(scenario: Scenario, quality: float, draw: random.Random) -> TrajectoryGroup:
    members: list[Any] = [attempt(scenario, quality, draw) for _ in range(4)]
    if draw.random() < 0.12:
        members = [m.model_copy(update={"reward": 0.5}) for m in members]
    if draw.random() < 0.1:
        members.append(TimeoutError("no result after 30 s"))
    return TrajectoryGroup(members, scenario_id=scenario.id)


def evaluation_of(
    scenarios: Sequence[Scenario], step: int, quality: float, draw: random.Random
) -> Evaluation:
    texts = [answer_to(s, quality, draw) for s in scenarios]
    pairs = list(zip(texts, scenarios, strict=True))
    answers: list[EvaluatedAnswer] = [_evaluated(text, scenario, draw) for text, scenario in pairs]
    scores = [a["score"] or 0.0 for a in answers]
    return Evaluation(
        step=step,
        split="held-out",
        judge={"mean": sum(scores) / len(scores), "raw_mean": sum(scores) / len(scores) * 3 - 1},
        checks=dict(summarise(texts, scenarios)),
        answers=answers,
    )


def _evaluated(text: str, scenario: Scenario, draw: random.Random) -> EvaluatedAnswer:
    score = 0.2 + 0.6 * (text == scenario.reference) + 0.15 * draw.random()
    return EvaluatedAnswer(
        scenario_id=scenario.id,
        question=scenario.question,
        context=scenario.context,
        reference=scenario.reference,
        kind=scenario.metadata.get("kind", "plain"),
        answer=text,
        score=score,
        raw=score * 3 - 1,
        explanation=f"least supported: {text.split()[0]!r}",
        checks=dict(vars(check_answer(text, scenario))),
    )


def fake_run(folder: Path, *, steps: int = 12) -> Path:
    """A run folder in which quality rises over the steps."""
    draw = random.Random(3)
    everything = load_scenarios("support")
    train = [s for s in everything if s.split == "train"]
    held_out = [s for s in everything if s.split == "held-out"]
    with Run.create(folder, CONFIG) as run:
        run.write_evaluation(0, "", evaluation_of(held_out, 0, 0.3, draw))
        for step in range(1, steps + 1):
            quality = 0.3 + 0.4 * step / steps
            groups = [group_of(s, quality, draw) for s in draw.sample(train, 4)]
            run.record_step(step, groups, _metrics(step, draw))
            jsonl.append(run.costs_path, _call(step))
            if step % 4 == 0:
                run.write_evaluation(step, "", evaluation_of(held_out, step, quality, draw))
    return folder


def _metrics(step: int, draw: random.Random) -> dict[str, float | None]:
    return {
        "reward/mean": 0.3 + step / 40,
        "train/loss": draw.gauss(0, 0.02),
        "train/kl": 0.001 * step,
        "train/entropy": 2.4 - 0.05 * step,
        "time/generate_s": 9 + draw.random(),
        "time/update_s": 14 + draw.random(),
        "judge/cost_usd": None,
    }


def _call(step: int) -> dict[str, Any]:
    return {
        "model": "openai/gpt-5-mini",
        "purpose": "judge/ruler" if step % 3 else "rollout",
        "prompt_tokens": 1800,
        "completion_tokens": 240,
        "cached_tokens": 0,
        "cost_usd": 0.0009,
        "cached": step % 4 == 0,
    }
