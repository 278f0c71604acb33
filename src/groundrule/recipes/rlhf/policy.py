"""The policy learns: by PPO from the reward model, or by DPO from the rankings themselves. Each is a run folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.preferences import PreferencePair, Ranking
from groundrule.data.runs import Run
from groundrule.errors import CheckpointError
from groundrule.models import pool
from groundrule.recipes.config import (
    JudgeConfig,
    JurorConfig,
    PpoSection,
    RunSection,
    TrainingConfig,
    TrainSection,
)
from groundrule.recipes.rlhf.config import HUMAN, DpoConfig, PpoConfig, RlhfConfig
from groundrule.recipes.rlhf.progress import told
from groundrule.recipes.rlhf.rankings import learned_from
from groundrule.recipes.rlhf.reward import reward_folder
from groundrule.recipes.train_rl import train_rl
from groundrule.recipes.trained_policy import Trained
from groundrule.training.checkpoints import load_checkpoint, newest_of, save_checkpoint
from groundrule.training.dpo import DpoTrainer, pair_batches

SAVE_EVERY = 20
"""Steps of DPO between checkpoints."""


def ppo_run(config: RlhfConfig, ppo: PpoConfig) -> TrainingConfig:
    """PPO as a training run like any other: the judge is the reward model, and the one that ranked is logged."""
    model = f"local/reward-model/{reward_folder(config)}"
    base = {"base_model": config.reward_model.base_model} if config.reward_model.base_model else {}
    held_out = config.scenarios.held_out_limit if ppo.evaluate_every else 0
    return TrainingConfig(
        scenarios=config.scenarios.model_copy(update={"held_out_limit": held_out}),
        policy=config.policy,
        judge=JudgeConfig(
            model=model,
            params=base,
            passes=1,
            max_passes=None,
            canary_rate=0,
            twin_rate=0,
            jury=[JurorConfig(model=name, role="holdout") for name in watched(config, ppo)],
        ),
        train=TrainSection(
            steps=ppo.steps, groups_per_step=ppo.groups_per_step, group_size=ppo.group_size, resample_rounds=0
        ),
        ppo=PpoSection.model_validate(ppo.settings.model_dump()),
        run=RunSection(
            project=config.run.project,
            name=f"{config.run.name}-ppo",
            folder=str(config.folder / "ppo"),
            seed=config.run.seed,
            evaluate_every=ppo.evaluate_every,
        ),
    )


def watched(config: RlhfConfig, ppo: PpoConfig) -> list[str]:
    """Judges that every training answer is shown to and nothing is trained on."""
    if ppo.watch is not None:
        return ppo.watch
    ranker = config.rankings.judge
    return [] if config.rankings.file or ranker == HUMAN else [ranker]


async def train_ppo(config: RlhfConfig, ppo: PpoConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """Train to the last step; an interrupted run goes on where it was."""
    folder = await train_rl(ppo_run(config, ppo), report=report)
    with Run.open(folder) as run:
        steps = run.metrics()
    kept = ("step", "reward/mean", "ppo/kl_answer", "ppo/kl_coef", "ppo/entropy", "critic/explained_variance")
    return {"folder": str(folder), "steps": [{k: line[k] for k in kept if k in line} for line in steps]}


def train_dpo(config: RlhfConfig, dpo: DpoConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """One pass or more over the pairs; an interrupted run goes on from its last checkpoint."""
    pairs = [pair for ranking in learned_from(config.folder) for pair in pairs_of(ranking, dpo)]
    settings = dpo.settings
    seed = derive(config.run.seed, "dpo")
    count = len(pair_batches(pairs, settings, seed=seed))
    kept = config.model_dump(mode="json", include={"policy", "rankings", "dpo"})
    with Run.open_or_create(config.folder / "dpo", kept) as run:
        model = pool.for_training(config.policy.base_model, config.policy.device)
        try:
            trainer = DpoTrainer(model, settings, seed=seed)
            _resume(trainer, run)
            for metrics in trainer.fit(pairs, done=run.step):
                _record(trainer, run, metrics, count, report)
        finally:
            pool.release(model)
        return {"folder": str(run.folder), "pairs": len(pairs), "steps": run.metrics()}


def pairs_of(ranking: Ranking, dpo: DpoConfig) -> list[PreferencePair]:
    """Of one ranking, as the configuration asks."""
    pairs = ranking.pairs()
    if dpo.pairs == "all" or not pairs:
        return pairs
    best, worst = set(ranking.order[0]), set(ranking.order[-1])
    ends = [pair for pair in pairs if pair.chosen.id in best and pair.rejected.id in worst]
    return ends[:1]


def trained_policies(config: RlhfConfig) -> dict[str, Trained]:
    """What PPO and DPO left, those of them that the configuration asks for."""
    found = {}
    if config.ppo is not None:
        found["ppo"] = Trained(_newest(config, "ppo"), config.ppo.lora)
    if config.dpo is not None:
        found["dpo"] = Trained(_newest(config, "dpo"), config.dpo.lora)
    return found


def _newest(config: RlhfConfig, stage: str) -> Path:
    with Run.open(config.folder / stage) as run:
        checkpoint = newest_of(run)
    if checkpoint is None:
        raise CheckpointError(f"{config.folder / stage} has no complete checkpoint; remove it to train again")
    return checkpoint


def _resume(trainer: DpoTrainer, run: Run) -> None:
    """Back to the last complete checkpoint; without one from the start."""
    checkpoint = newest_of(run)
    step = int(load_checkpoint(trainer, checkpoint)["step"]) if checkpoint else 0
    if step < run.step:
        run.roll_back(step)


def _record(
    trainer: DpoTrainer, run: Run, metrics: dict[str, float], count: int, report: Callable[[str], None]
) -> None:
    step = run.next_step
    if step == count or step % SAVE_EVERY == 0:
        save_checkpoint(trainer, run.checkpoint_folder(step), step=step)
    run.record_step(step, [], metrics)
    run.prune_checkpoints(keep_last=2)
    if told(step, count):
        report(
            f"DPO step {step}/{count}: loss {metrics['dpo/loss']:.3f}, accuracy {metrics['dpo/accuracy']:.2f} on the "
            f"pairs of this step, drift {metrics['dpo/drift']:.4f} nats a token"
        )
