"""Does a training fit? The arithmetic of `algorithms.memory_plan` for a model by name, on this machine or another."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from groundrule.algorithms.memory_plan import MemoryPlan, ModelShape, PlanSettings, memory_plan, shape_for
from groundrule.errors import ConfigError
from groundrule.recipes.judge_eval.tables import Table

if TYPE_CHECKING:
    from groundrule.training.lora_trainer import TrainerSettings

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{unit}i": 2 ** (10 * (i + 1)) for i, unit in enumerate("kmgt")}
COUNTS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Memory:
    """What a plan has to fit into."""

    free: int
    total: int
    kind: Literal["given", "ram", "gpu"]

    def __str__(self) -> str:
        if self.kind == "given":
            return f"{gib(self.total)} given"
        where = "this machine's RAM" if self.kind == "ram" else "this machine's GPU"
        return f"{gib(self.free)} free of {gib(self.total)} ({where})"


@dataclass(frozen=True)
class Answer:
    """A plan, and what it was held against."""

    shape: ModelShape
    method: str
    settings: PlanSettings
    plan: MemoryPlan
    memory: Memory

    @property
    def fits(self) -> bool:
        return self.plan.bytes_total <= self.memory.free

    def to_json(self) -> dict[str, Any]:
        """One object: the parts are those at the peak, and their bytes sum to `bytes_total`."""
        return {
            "model": asdict(self.shape),
            "method": self.method,
            "settings": self.settings.model_dump(mode="json"),
            "models": self.plan.models,
            "parameters_total": self.plan.parameters_total,
            "bytes_total": self.plan.bytes_total,
            "peak": self.plan.peak,
            "moments": self.plan.moments,
            "parts": [
                {"name": part.name, "parameters": part.parameters, "bytes": part.bytes}
                for part in self.plan.peak_parts
            ],
            "fits": self.fits,
            "memory_bytes": self.memory.free,
            "memory": {"kind": self.memory.kind, "total_bytes": self.memory.total},
        }


def plan_for(shape: ModelShape, method: str, settings: PlanSettings, memory: Memory) -> Answer:
    """The plan of a method, held against a memory."""
    return Answer(shape, method, settings, memory_plan(shape, method, settings), memory)


def update_plan(
    shape: ModelShape, trainer: TrainerSettings, method: str = "grpo-folded", **batch: Any
) -> MemoryPlan:
    """The plan of one update with a trainer's own settings, for comparison with a measured one.

    `batch` are further fields of `PlanSettings`: prompt_tokens, answer_tokens, group_size, groups, precision, device.
    What is measured is the peak of the process less what it held before the model was loaded, libraries included.
    """
    settings = PlanSettings(
        lora_rank=trainer.lora.rank,
        lora_targets=trainer.lora.targets,
        tokens_at_once=trainer.tokens_at_once,
        gradient_checkpointing=trainer.gradient_checkpointing,
        decodes=False,
        **batch,
    )
    return memory_plan(shape, method, settings)


def parsed_parameters(text: str) -> ModelShape:
    """A plausible shape for `7e9`, `7B` or `350M` parameters."""
    return shape_for(round(_number(text, COUNTS, "--params", "7e9, 7B or 350M")))


def parsed_memory(text: str) -> Memory:
    """`24GiB`, `24GB`, `24G` or a number of bytes."""
    size = round(_number(re.sub(r"(?i)b$", "", text.strip()), UNITS, "--memory", "24GiB, 80GB or bytes"))
    return Memory(size, size, "given")


def _number(text: str, units: dict[str, int], option: str, example: str) -> float:
    found = re.fullmatch(r"([0-9][0-9_]*\.?[0-9]*(?:e[+]?[0-9]{1,3})?)\s*([a-z]{0,2})", text.strip().lower())
    if found is None or found[2] not in units or not 1 <= float(found[1]) * units[found[2]] < 1e18:
        raise ConfigError(f"{option} is {text!r}, which is not a size; write it as {example}")
    return float(found[1]) * units[found[2]]


def has_gpu() -> bool:
    """Whether this machine has an accelerator with memory of its own."""
    # On Linux a look at the drivers' devices spares most machines the seconds that importing torch takes.
    if sys.platform == "linux" and not any(
        Path("/dev", name).exists() for name in ("nvidiactl", "kfd", "dxg")
    ):
        return False
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return torch.cuda.is_available()


def this_memory(device: Literal["cpu", "gpu"]) -> Memory:
    """What this machine has, and what of it is free now."""
    if device == "cpu":
        return _ram()
    if not has_gpu():
        raise ConfigError("device is 'gpu', but this machine has none; say --memory 80GB, or --device cpu")
    import torch

    free, total = torch.cuda.mem_get_info()
    return Memory(free, total, "gpu")


def _ram(proc: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")) -> Memory:
    """RAM, or the container's share of it where that is smaller."""
    try:
        lines = proc.read_text().splitlines()
        found = {name: int(rest.split()[0]) * 1024 for name, _, rest in (s.partition(":") for s in lines)}
        total, free = found["MemTotal"], found["MemAvailable"]
    except (OSError, KeyError, ValueError, IndexError):
        total = free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit, used = _bytes_in(cgroup / "memory.max"), _bytes_in(cgroup / "memory.current")
    if limit is not None and limit < total:
        total, free = limit, max(0, min(free, limit - (used or 0)))
    return Memory(free, total, "ram")


def _bytes_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def plan_table(answer: Answer) -> Table:
    """One row a part, with its bytes at each moment that the method has, and their sums."""
    plan, moments = answer.plan, list(answer.plan.moments)
    show: Callable[[bool, int], str] = lambda there, size: gib(size) if there else ""  # noqa: E731
    rows = [
        (
            part.name,
            f"{part.parameters:,}" if part.parameters else "",
            *(show(m in part.moments, part.bytes) for m in moments),
        )
        for part in plan.parts
    ]
    totals = ("together", f"{plan.parameters_total:,}", *(gib(size) for size in plan.moments.values()))
    return Table(f"memory of {answer.method}", ("part", "parameters", *moments), [*rows, totals])


def gib(size: int) -> str:
    """Bytes for a reader."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if size >= unit:
            return f"{size / unit:,.2f} {name}"
    return f"{size / 2**10:,.2f} KiB"
