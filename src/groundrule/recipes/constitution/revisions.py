"""Stage 1: answers of the policy are criticised and revised, and the policy is trained on the revisions."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from groundrule._util import jsonl
from groundrule._util.aio import settle
from groundrule._util.digest import digest_of
from groundrule._util.progress import progress_bar
from groundrule._util.seed import derive
from groundrule.data.messages import last_answer
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import BudgetError, JudgeError, LlmError, TrainingError
from groundrule.recipes.constitution.config import SFT, ConstitutionalConfig
from groundrule.recipes.rlhf.sampling import answering
from groundrule.recipes.sft import train_sft
from groundrule.rewards.constitution.comparing import comparing_judge
from groundrule.rewards.constitution.revising import Revised, Reviser, Round

ANSWERS, REVISIONS, LOG = "answers.jsonl", "revisions.jsonl", "revision-log.jsonl"
AT_ONCE = 64
"""Prompts that the critic has before it at the same time."""


async def sample_answers(config: ConstitutionalConfig, train: Sequence[Scenario]) -> dict[str, Any]:
    """Write `answers.jsonl`: one answer of the policy as it is to each scenario."""
    async with answering(config.start(), "answers") as policy:
        groups = await policy.sample(train, 1)
    write_groups(config.folder / ANSWERS, groups)
    return {"scenarios": len(train), "answers": sum(map(len, groups))}


async def revise_answers(config: ConstitutionalConfig) -> dict[str, Any]:
    """Write `revisions.jsonl`, conversations that `groundrule sft` reads; what came of the rounds.

    Every prompt that is finished stands in `revision-log.jsonl`, and an interrupted stage goes on behind it.
    """
    section = config.revisions
    reviser = Reviser(
        comparing_judge(config.critic, config.constitution.critic_params or None),
        config.principles(),
        rounds=section.rounds,
        exemplars=section.exemplars,
        seed=config.run.seed,
    )
    answers = _answered(config.folder / ANSWERS)
    log = _Log(config.folder / LOG, _key_of(config, reviser))
    failed = await _revise_rest(answers, reviser, log)
    kept = {name: log.done[name] for name, _ in answers if name in log.done}
    rows = [{"scenario_id": name, **row} for name, r in kept.items() for row in r.rows(section.keep)]
    if not rows:
        raise TrainingError(
            f"{config.critic} wrote no revision of {len(answers)} answers that can be used "
            f"({failed[0] if failed else _counted(kept.values()) or 'there are no answers'}); ask another critic"
        )
    jsonl.write(config.folder / REVISIONS, rows)
    rounds = [one for revised in kept.values() for one in revised.rounds]
    return {
        "prompts": len(answers),
        "rounds": len(rounds),
        "revisions": sum(one.revision is not None for one in rounds),
        "rows": len(rows),
        "left_out": _counted(kept.values()),
        "failed": failed,
        "principles": dict(sorted(Counter(one.principle for one in rounds).items())),
    }


def train_on_revisions(config: ConstitutionalConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """Write the folder `sft`: the base model after training on the revisions."""
    folder = config.folder / SFT
    if folder.exists():
        shutil.rmtree(folder)  # Of a stage that was interrupted: a finished one is not done again.
    examples = [member for group in read_groups(config.folder / REVISIONS) for member in group]
    facts = train_sft(
        examples,
        config.policy.base_model,
        folder,
        settings=config.sft,
        seed=derive(config.run.seed, "sft") >> 32,
        device=config.policy.device,
        report=report,
    )
    return {"folder": str(folder), "examples": facts["examples"], "losses": facts["losses"]}


def _answered(path: Path) -> list[tuple[str, Trajectory]]:
    """Every prompt with an answer, by scenario."""
    groups = read_groups(path)
    return [(str(group.scenario_id), group.trajectories[0]) for group in groups if len(group)]


async def _revise_rest(answers: Sequence[tuple[str, Trajectory]], reviser: Reviser, log: _Log) -> list[str]:
    """Revise what is not in the log; why prompts could not be. A budget that is used up and other faults raise."""

    async def one(name: str, member: Trajectory) -> None:
        messages = member.messages()
        log.add(name, await reviser.revise(messages[:-1], last_answer(messages)))

    left = [(name, member) for name, member in answers if name not in log.done]
    with progress_bar("revisions", len(left)) as bar:
        results = await settle(
            [one(*each) for each in left],
            limit=asyncio.Semaphore(AT_ONCE),
            on_each=lambda *_: bar.advance(),
        )
    failed = []
    for result in results:
        if isinstance(result, JudgeError | LlmError) and not isinstance(result, BudgetError):
            failed.append(f"{type(result).__name__}: {result}")
        elif isinstance(result, BaseException):
            raise result
    return failed


def _counted(revised: Any) -> dict[str, int]:
    """How many rounds gave no revision, by reason."""
    return dict(Counter(one.fault for each in revised for one in each.rounds if one.fault))


def _key_of(config: ConstitutionalConfig, reviser: Reviser) -> str:
    """Of what the rounds depend on: an older log of other settings is not gone on with."""
    parts = [
        reviser.constitution.content_hash,
        config.critic,
        config.constitution.critic_params,
        config.revisions.rounds,
        config.revisions.exemplars,
        config.run.seed,
    ]
    return digest_of(parts)


class _Log:
    """The prompts that are finished, on the disk."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.done: dict[str, Revised] = {}
        for _, record in jsonl.read(path) if path.exists() else ():
            if record["key"] == key:
                rounds = [Round(**one) for one in record["rounds"]]
                self.done[record["scenario_id"]] = Revised(record["prompt"], record["answer"], rounds)

    def add(self, name: str, revised: Revised) -> None:
        """Keep one."""
        jsonl.append(self.path, {"key": self.key, "scenario_id": name, **asdict(revised)})
        self.done[name] = revised
