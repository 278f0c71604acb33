"""What every result file says about where and on what it was measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def circumstances() -> dict[str, Any]:
    """Commit, machine and versions."""
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "uncommitted_changes": bool(
            _git("status", "--porcelain", "--untracked-files=no", "--", "..", ":!results")
        ),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "threads": os.environ.get("OMP_NUM_THREADS", "default"),
    }


def publish(name: str, result: dict[str, Any]) -> None:
    """Write `results/<name>.json` and print the result as the last line."""
    record = {**result, "measured": BEGAN}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record))
    sys.stdout.flush()


def results_of_seeds(prefix: str) -> list[dict[str, Any]]:
    """What `<prefix>-seed<N>.json` say, in order."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"{prefix}-seed*.json"))]


def commits_of(found: list[dict[str, Any]]) -> str:
    """Every commit that the results are of, each once."""
    return ", ".join(dict.fromkeys(result["measured"]["commit"] for result in found))


def spread(seconds: list[float]) -> dict[str, float]:
    """Median, least and most of several runs."""
    ordered = sorted(seconds)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"median": round(median, 3), "min": round(ordered[0], 3), "max": round(ordered[-1], 3)}


def _git(*arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return result.stdout.strip()


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


BEGAN = circumstances()
"""As they were when the script began: what is committed while it runs is not what it measures."""
