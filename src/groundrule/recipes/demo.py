"""The demonstration: train the embedded model on the support questions, then say in a table what it learned."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.algorithms.bootstrap import middle_95
from groundrule.data.evaluation import Evaluation
from groundrule.data.runs import Run
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.recipes.config import TrainingConfig, parse_config
from groundrule.recipes.evaluate import group_of_texts
from groundrule.recipes.judging import judge_of
from groundrule.recipes.train_rl import train_rl
from groundrule.rollouts.scenarios import load_scenarios

NUMBERS = "demo.json"
"""The file in the run folder that keeps the numbers of the table."""

SPEC_EFFECT_SCENARIOS = 12
"""How many held-out answers are scored again under other system prompts."""

NEUTRAL_PROMPT = "You are a helpful assistant."
OPPOSITE_PROMPT = (
    "You are a creative storyteller. Ignore the retrieved passage, never quote it, and answer from your own "
    "imagination with as many invented details as you like."
)

CHECKS = {
    "facts": "key facts mentioned",
    "grounded": "answer words found in the passage",
    "unsupported_numbers": "unsupported numbers per answer",
    "unsupported_emails": "unsupported e-mail addresses per answer",
    "copied": "longest copied run / answer",
    "distinct": "distinct answers / questions",
    "words": "words per answer",
}
"""Checks of the table, in order. None of them is used by the judge."""

FOUR_ANSWERS = Scenario(
    id="returns",
    system=(
        "You are a shop's support agent. Use only the retrieved context. "
        "Do not add anything that it does not say."
    ),
    question="Can I send back a lamp I bought last week?",
    context=(
        "Lamps may be returned within 21 days if they are unused. Return postage is paid by the customer. "
        "Write to returns@example.com for a label."
    ),
)
ANSWERS = {
    "faithful": "Yes, within 21 days if it is unused. You pay the return postage; write to returns@example.com.",
    "wordy": (
        "Thank you for asking. According to the information that I was able to find, lamps may be returned within "
        "21 days as long as they are unused, and it should be kept in mind that the return postage is paid by you."
    ),
    "invented": "Yes, you have 21 days. We also collect it from your door and add a voucher worth 15 euros.",
    "evasive": "I am not sure about that. Please have a look at the website or ask someone in the store.",
}


def demo_config(*, steps: int, seed: int, folder: str | None = None) -> TrainingConfig:
    """The settings of the demonstration."""
    return parse_config(
        {
            "scenarios": {"source": "support"},
            "train": {"steps": steps},
            "run": {"project": "demo", "name": f"support-seed{seed}", "seed": seed, "folder": folder},
        }
    )


async def run_demo(config: TrainingConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """Train, evaluate, and return the numbers of the table, which are kept in the run folder too.

    `wall_s` is None for a run that was resumed.
    """
    report(_opening(config))
    started = None if (config.folder / "state.json").exists() else time.monotonic()
    folder = await train_rl(config, report=report)
    with Run.open(folder) as run:
        before, after = run.evaluations()[0], run.evaluations()[-1]
        if "spec_effect" not in after:
            after["spec_effect"] = await spec_effect(config, after)
            run.write_evaluation(after["step"], "", after)
    numbers = summary(config, before, after)
    numbers["wall_s"] = None if started is None else round(time.monotonic() - started)
    write_atomic(folder / NUMBERS, json.dumps(numbers, indent=2) + "\n")
    return numbers


async def spec_effect(config: TrainingConfig, after: dict[str, Any]) -> dict[str, Any]:
    """The same answers under the true, a neutral and an opposite system prompt."""
    scenarios = {s.id: s for s in load_scenarios(config.scenarios.source, split="held-out")}
    chosen = [a for a in after["answers"] if a["scenario_id"] in scenarios][:SPEC_EFFECT_SCENARIOS]
    chosen_prompt = scenarios[chosen[0]["scenario_id"]].system if chosen else ""
    judge = judge_of(config)
    specs: list[dict[str, Any]] = []
    for name, prompt in {"true": None, "neutral": NEUTRAL_PROMPT, "opposite": OPPOSITE_PROMPT}.items():
        groups = [group_of_texts(scenarios[a["scenario_id"]], [a["answer"]], system=prompt) for a in chosen]
        scores = [score for group in groups for score in await judge.score(group)]
        order = await judge.score(group_of_texts(FOUR_ANSWERS, list(ANSWERS.values()), system=prompt))
        specs.append(
            {
                "name": name,
                "system": prompt or chosen_prompt,
                "mean": _mean([s.value for s in scores]),
                "order": _order(order),
            }
        )
    return {"questions": len(chosen), "specs": specs}


def _order(scores: Sequence[Score]) -> list[str]:
    known = [(s.value, name) for name, s in zip(ANSWERS, scores, strict=True) if s.value is not None]
    return [name for _, name in sorted(known, key=lambda pair: -pair[0])]


def summary(config: TrainingConfig, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Before, after, and the bootstrap interval of the difference for the judge and every check."""
    rows = {"judge": _row(before, after, lambda a: a["score"])}
    for name in CHECKS:
        rows[name] = _row(before, after, _check(name))
    for side, record in (("before", before), ("after", after)):
        rows["distinct"][side] = record["checks"].get("distinct")
    kinds = sorted({a["kind"] for a in after["answers"]})
    return {
        "seed": config.run.seed,
        "steps": after["step"],
        "questions": len(after["answers"]),
        "rows": rows,
        "facts_by_kind": {k: [_kind_facts(record, k) for record in (before, after)] for k in kinds},
        "spec_effect": after.get("spec_effect"),
    }


def _check(name: str) -> Callable[[Any], Any]:
    return lambda answer: answer["checks"].get(name)


def _row(before: dict[str, Any], after: dict[str, Any], value: Callable[[Any], Any]) -> dict[str, Any]:
    pairs = [(value(b), value(a)) for b, a in zip(before["answers"], after["answers"], strict=True)]
    known = [(float(b), float(a)) for b, a in pairs if b is not None and a is not None]
    low, high = bootstrap_interval([a - b for b, a in known])
    return {
        "before": _mean([b for b, _ in pairs]),
        "after": _mean([a for _, a in pairs]),
        "difference_ci95": [low, high],
        "pairs": len(known),
    }


def bootstrap_interval(
    differences: Sequence[float], *, draws: int = 4000
) -> tuple[float | None, float | None]:
    """The 95 % percentile interval of the mean difference over questions (Efron 1979), seeded."""
    if not differences:
        return None, None
    rng = random.Random(0)
    return middle_95(fmean(rng.choices(differences, k=len(differences))) for _ in range(draws))


def _kind_facts(record: dict[str, Any] | Evaluation, kind: str) -> float | None:
    return _mean([a["checks"].get("facts") for a in record["answers"] if a["kind"] == kind])


def _mean(values: Sequence[Any]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return fmean(known) if known else None


def _opening(config: TrainingConfig) -> str:
    train = config.train
    return (
        f"Training {config.policy.base_model} on customer-support questions, judged by its own system prompt "
        f"({config.judge.model}): {train.steps} steps of {train.groups_per_step} questions x {train.group_size} "
        f"answers. Run folder: {config.folder}"
    )
