"""Ten thousand short trajectories gathered and judged: what the library itself costs, ours against ART's.

    python benchmarks/gather_score.py [--quick] [--environment FOLDER]

One program (`_gather_program.py`), run once with `import groundrule` and once with `import art` (openpipe-art 0.5.18
in an environment of its own): `gather_trajectory_groups` over 1,250 groups of 8, no two alike, whose rollouts return
at once, with `ruler_score_group` as `after_each`. The judge is an HTTP server on the loopback interface that answers
at once (`_stub_judge.py`); it is a process of its own and not counted. Both sides take turns, the first run of each
is not counted, and every run has groups that were never judged before; our reply cache is in an empty folder and its
writing is counted. Times are CPU seconds of the process.

`growth`: the same in steps of 25 groups, each dropped by the program when its step is over. `resident_mb` is what
the process holds after so many trajectories, `bytes_per_trajectory` the slope over the last three quarters. Ours
includes what SQLite keeps of the reply cache in memory, which ART does not have.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _machine import publish, spread
from _peers import ART, HERE, QUIET, Side, in_turn, peer_python

GROUPS = 1_250
QUICK_GROUPS = 125
SIZE = 8
PROGRAM = HERE / "_gather_program.py"


@contextlib.contextmanager
def judge() -> Iterator[str]:
    """A judge's port."""
    command = [sys.executable, str(HERE / "_stub_judge.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stub:
        assert stub.stdin and stub.stdout
        yield stub.stdout.readline().strip()
        stub.stdin.close()


@contextlib.contextmanager
def sides(python: Path, port: str, groups: int, *more: str) -> Iterator[tuple[Side, Side]]:
    """Both programs, ours first, to be started; neither has anything cached."""
    with tempfile.TemporaryDirectory() as folder:
        quiet = {**QUIET, "XDG_CACHE_HOME": folder}
        ours = Side([sys.executable, PROGRAM, "groundrule", port, str(groups), *more], quiet)
        yield ours, Side([python, PROGRAM, "art", port, str(groups), *more], quiet)


def measured(python: Path, port: str, groups: int, runs: int) -> dict[str, Any]:
    """Both sides taking turns on whole gathers."""
    with sides(python, port, groups) as (ours, theirs):
        found = in_turn(ours, theirs, runs + 1)
    loaded = {"ours": ours.ready["loaded_mb"], "theirs": theirs.ready["loaded_mb"]}
    case: dict[str, Any] = {"trajectories": groups * SIZE, "groups": groups}
    for name, answers in found.items():
        cpu = spread([answer["cpu_s"] for answer in answers[1:]])
        case[name] = {
            **cpu,
            "wall": spread([answer["wall_s"] for answer in answers[1:]]),
            "cpu_ms_per_group": round(1000 * cpu["median"] / groups, 2),
            "loaded_mb": round(loaded[name]),
            "peak_mb": round(answers[0]["peak_mb"]),
            "above_loaded_mb": round(answers[0]["peak_mb"] - loaded[name]),
        }
    case["ratio"] = round(case["theirs"]["median"] / case["ours"]["median"], 2)
    case["memory_ratio"] = round(case["theirs"]["peak_mb"] / case["ours"]["peak_mb"], 2)
    return case


def growth(python: Path, port: str, groups: int) -> dict[str, Any]:
    """What each side still holds of groups that the program has dropped."""
    with sides(python, port, groups, "--steps") as (ours, theirs):
        found = in_turn(ours, theirs, 1)
    return {name: growth_of(answers[0]["resident_mb"]) for name, answers in found.items()}


def growth_of(points: list[tuple[int, float]]) -> dict[str, Any]:
    """Memory at each quarter, and how it goes on once the first quarter has warmed everything up."""
    whole = points[-1][0]
    at_quarters = [next(point for point in points if point[0] >= whole * k / 4) for k in (1, 2, 3, 4)]
    later = [point for point in points if point[0] >= whole / 4]
    slope = statistics.linear_regression(*zip(*later, strict=True)).slope
    return {
        "resident_mb": {str(count): round(mb, 1) for count, mb in at_quarters},
        "bytes_per_trajectory": round(slope * 2**20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", type=Path, help="ART's environment, if not in the user's cache")
    parser.add_argument("--quick", action="store_true", help="1,000 trajectories, one counted run a side")
    options = parser.parse_args()
    python = peer_python(ART, options.environment)
    groups, runs = (QUICK_GROUPS, 1) if options.quick else (GROUPS, 5)
    with judge() as port:
        case = measured(python, port, groups, runs)
        case["growth"] = growth(python, port, groups)
    print(f"growth: {case['growth']}", file=sys.stderr)
    publish(
        "gather_score",
        {
            "against": ART,
            "unit": "CPU seconds to gather and judge all groups, median",
            "runs": runs,
            "ours": case["ours"]["median"],
            "theirs": case["theirs"]["median"],
            "ratio": case["ratio"],
            "memory_ratio": case["memory_ratio"],
            "cases": [case],
        },
    )


if __name__ == "__main__":
    main()
