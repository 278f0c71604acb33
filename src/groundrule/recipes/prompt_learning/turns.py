"""Prompt and weights in turn: lessons are learned, weights trained under them, and what they absorbed is dropped.

Each turn is a folder of its own, and the same command goes on where it was stopped. In a prompt turn the weights stand
still, in a weights turn the prompt does; both are judged by the frozen spec throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from groundrule._util.aio import on_model_thread
from groundrule.data.runs import Run
from groundrule.recipes.config import PolicyConfig, RunSection, TrainingConfig
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.files import PROMPT_FILE
from groundrule.recipes.prompt_learning.history import read_history
from groundrule.recipes.prompt_learning.run import FINAL, learn_prompt
from groundrule.recipes.rlhf.stages import Stages, settings_under
from groundrule.recipes.train_rl import train_rl

MODEL = "model"
"""In the folder of a weights turn: the model with what it learned folded in."""
_LOCAL = "local/"


async def learn_in_turns(config: PromptConfig, *, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Every turn of `learn.turns`, by name what it gave."""
    names = [f"{number:02d}-{kind}" for number, kind in enumerate(config.learn.turns, start=1)]
    stages = Stages(config.folder, names, report)
    every = settings_under(config, "")
    made_from = {key: value for key, value in every.items() if not key.startswith(("budget.", "run.folder"))}
    results: dict[str, Any] = {}
    playbook, base = config.learn.playbook, config.policy.model.removeprefix(_LOCAL)
    for name, kind in zip(names, config.learn.turns, strict=True):
        folder = config.folder / name
        if kind == "prompt":
            turn = _prompt_turn(
                config,
                folder,
                base,
                playbook,
                is_after_weights="weights" in config.learn.turns[: len(results)],
            )
            results[name] = await stages.do(name, made_from, partial(_learn, turn, report))
            playbook = str(folder / PROMPT_FILE)
        else:
            training = _weights_turn(config, folder, base, playbook)
            results[name] = await stages.do(name, made_from, partial(_train, training, report))
            base = str(folder / MODEL)
    return results


def _prompt_turn(
    config: PromptConfig, folder: Path, base: str, playbook: str | None, *, is_after_weights: bool
) -> PromptConfig:
    learn = config.learn.model_copy(
        update={"turns": ("prompt",), "playbook": playbook, "drop_absorbed": is_after_weights}
    )
    return config.model_copy(
        update={
            "policy": config.policy.model_copy(update={"model": f"{_LOCAL}{base}"}),
            "reflection": config.reflection.model_copy(
                update={"model": config.reflection.model or config.policy.model}
            ),
            "learn": learn,
            "run": config.run.model_copy(update={"folder": str(folder)}),
        }
    )


def _weights_turn(config: PromptConfig, folder: Path, base: str, playbook: str | None) -> TrainingConfig:
    agent = config.policy
    return TrainingConfig(
        scenarios=config.scenarios,
        policy=PolicyConfig(
            base_model=base,
            system=agent.system,
            playbook=playbook,
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
            top_p=agent.top_p,
        ),
        judge=config.judge,
        train=config.train,
        run=RunSection(
            project=config.run.project, name=config.run.name, folder=str(folder), seed=config.run.seed
        ),
    )


async def _learn(config: PromptConfig, report: Callable[[str], None]) -> dict[str, Any]:
    await learn_prompt(config, report=report)
    head = read_history(config.folder).pool.head
    with Run.open(config.folder, read_only=True) as run:
        tests = run.evaluations(FINAL)
    return {
        "version": head.number,
        "lessons": [lesson.text for lesson in head.playbook.lessons],
        "gain": head.gain,
        "final": tests[-1] if tests else None,
    }


async def _train(config: TrainingConfig, report: Callable[[str], None]) -> dict[str, Any]:
    await train_rl(config, report=report)
    with Run.open(config.folder, read_only=True) as run:
        evaluations = run.evaluations()
    await on_model_thread(_fold_in, config.folder)
    return {"step": run.step, "judge": [one["judge"]["mean"] for one in evaluations]}


def _fold_in(folder: Path) -> None:
    """The trained model as a folder of its own, which the next turn answers with; a crash leaves it whole or not."""
    from groundrule.models.merged import save_merged
    from groundrule.recipes.served_model import load_served

    if not (folder / MODEL).exists():
        save_merged(load_served(str(folder)).model, folder / MODEL)
