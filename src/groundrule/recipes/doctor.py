"""Why was nothing learned? Reads a run folder and names the usual causes, with their remedies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev

from groundrule._util.files import sha256_of
from groundrule.algorithms.sequences import sequences_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.records import read_groups
from groundrule.data.runs import Run

TIED = 1e-6
"""Rewards of a group that differ by less are ties."""
FELL = 0.02
"""A mean reward that is lower by less than this is noise, not a fall."""


@dataclass(frozen=True)
class Finding:
    """One observation; a fault comes with what to do about it."""

    is_fault: bool
    text: str


def examine(folder: str | Path) -> list[Finding]:
    """All findings about a run, faults and good news alike."""
    with Run.open(folder, read_only=True) as run:
        stopped = read_groups(run.failed_path) if run.failed_path.exists() else []
        groups = [group for step in run.trajectory_steps() for group in run.groups(step)] + stopped
        checks: list[Callable[[], Finding | None]] = [
            lambda: _start(run),
            lambda: _failures(run, groups),
            lambda: _unscored(groups),
            lambda: _ties(groups),
            lambda: _logprobs(groups),
            lambda: _truncation(groups),
            lambda: _adapter(run),
            lambda: _trend(run),
        ]
        found = [check() for check in checks]
    return [finding for finding in found if finding is not None]


def _start(run: Run) -> Finding | None:
    if run.step:
        return None
    return Finding(True, f"{run.folder}: no step is complete; start it again with the same command")


def _failures(run: Run, groups: list[TrajectoryGroup]) -> Finding | None:
    errors = Counter(f"{e.type}: {e.message}"[:160] for g in groups for e in g.exceptions)
    attempts = sum(len(g) + len(g.exceptions) for g in groups)
    if not attempts and run.step:
        return Finding(
            True,
            f"none of the {run.step} steps has a single trajectory: every rollout failed and its group was dropped. "
            "Run one rollout by hand and mend that first",
        )
    if not attempts:
        return None
    if not errors:
        return Finding(False, f"no rollout failed ({attempts} attempts)")
    cause, times = errors.most_common(1)[0]
    return Finding(
        True,
        f"{sum(errors.values())} of {attempts} rollouts failed; most often ({times}x) {cause}. "
        "Run one rollout by hand and mend that first",
    )


def _unscored(groups: list[TrajectoryGroup]) -> Finding | None:
    reasons = Counter(t.unscored[:160] for g in groups for t in g if t.unscored is not None)
    members = sum(map(len, groups))
    if not members:
        return None
    if not reasons:
        return Finding(False, f"every trajectory was scored ({members})")
    reason, times = reasons.most_common(1)[0]
    return Finding(
        True,
        f"{sum(reasons.values())} of {members} trajectories have no score; most often ({times}x): {reason}. "
        "They are left out of training",
    )


def _ties(groups: list[TrajectoryGroup]) -> Finding | None:
    scored = [[r for r in g.rewards if r is not None] for g in groups]
    comparable = [rewards for rewards in scored if len(rewards) > 1]
    tied = sum(pstdev(rewards) < TIED for rewards in comparable)
    if not any(scored):
        return None
    if not comparable:
        return Finding(
            True, "no group has two scored members, so nothing can be compared; raise train.group_size"
        )
    if tied > len(comparable) / 2:
        return Finding(
            True,
            f"{tied} of {len(comparable)} groups are ties: their members got equal rewards and teach nothing. "
            "Raise policy.temperature, take scenarios that are neither always nor never answered well, or a judge that "
            "tells the answers apart",
        )
    spread = fmean(pstdev(rewards) for rewards in comparable)
    return Finding(
        False, f"{tied} of {len(comparable)} groups are ties; mean spread within groups {spread:.3f}"
    )


def _logprobs(groups: list[TrajectoryGroup]) -> Finding | None:
    scored = [t for g in groups for t in g.scored]
    if not scored:
        return None
    missing = sum(not sequences_of(t) for t in scored)
    if missing:
        return Finding(
            True,
            f"{missing} of {len(scored)} scored trajectories carry no sampled tokens with logprobs: ask the model "
            "through model.openai_client() and keep the Choice objects in messages_and_choices",
        )
    return Finding(False, f"all {len(scored)} scored trajectories carry their sampled tokens")


def _truncation(groups: list[TrajectoryGroup]) -> Finding | None:
    ends = list(_finish_reasons(groups))
    if not ends:
        return None
    cut = sum(end == "length" for end in ends) / len(ends)
    if cut > 0.5:
        return Finding(
            True,
            f"{cut:.0%} of the answers were cut at policy.max_tokens; raise it, or ask for shorter answers in the "
            "system prompt",
        )
    return Finding(False, f"{cut:.0%} of the answers were cut at policy.max_tokens")


def _finish_reasons(groups: list[TrajectoryGroup]) -> Iterable[str]:
    for group in groups:
        for trajectory in group:
            for item in trajectory.messages_and_choices:
                if hasattr(item, "finish_reason"):
                    yield item.finish_reason


def _adapter(run: Run) -> Finding | None:
    folders = [run.checkpoint_folder(step) for step in run.checkpoint_steps()]
    hashes = {
        sha256_of(f / "adapter_model.safetensors")
        for f in folders
        if (f / "adapter_model.safetensors").exists()
    }
    if len(folders) > 1 and len(hashes) == 1:
        return Finding(
            True, f"the adapter is the same in all {len(folders)} kept checkpoints: no update moved it"
        )
    return (
        Finding(False, f"{len(hashes)} different adapters in {len(folders)} kept checkpoints")
        if folders
        else None
    )


def _trend(run: Run) -> Finding | None:
    rewards = [line["reward/mean"] for line in run.metrics() if line.get("reward/mean") is not None]
    if len(rewards) < 2:
        return None
    third = max(1, len(rewards) // 3)
    before, after = fmean(rewards[:third]), fmean(rewards[-third:])
    text = f"mean reward {before:.3f} in the first {third} steps, {after:.3f} in the last"
    if after < before - FELL:
        return Finding(True, f"{text}: it fell; lower train.learning_rate or raise train.groups_per_step")
    return Finding(False, text)
