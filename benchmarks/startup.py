"""How long until a program can begin: imports, `--help`, and the first token of a server.

    python benchmarks/startup.py [--quick] [--art FOLDER] [--trl FOLDER]

Ours, ART's (openpipe-art 0.5.18) and TRL's (1.16.0), each in an environment of its own, taking turns; the first run
of each is not counted. Times are CPU seconds of the process and all its children, with wall seconds beside them.
The main line is `import trl` against `import groundrule`. Both put off what they can, so `training names` asks for
the names that a training program needs.

`first token` is from the start of `groundrule serve smollm2-135m` to the first piece of text of a stream that is
asked for as soon as the server says it is ready, against the shortest program with plain transformers, in TRL's
environment, that loads the same folder and prints one token (`_first_token.py`). `transformers serve` would be the
nearer peer; where its packages are missing, `not_measured` says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _machine import publish, spread
from _peers import ART, HERE, QUIET, TRL, peer_python
from _processes import Running, address_in, to_the_end

from groundrule.models import embedded

PROMPT = "Name three rivers."
Measure = Callable[[], dict[str, float]]


def commands(python: dict[str, Path]) -> dict[str, dict[str, list[str]]]:
    """Case -> side -> what is run."""
    script = {"ours": "groundrule", "art": "art", "trl": "trl"}
    importing = {"ours": "import groundrule", "art": "import art", "trl": "import trl"}
    training = {
        "ours": "from groundrule import LocalBackend, TrainableModel, TrainConfig, train_rl",
        "trl": "from trl import GRPOConfig, GRPOTrainer",
    }
    return {
        "import": {side: [str(python[side]), "-c", line] for side, line in importing.items()},
        "--help": {side: [str(python[side].parent / name), "--help"] for side, name in script.items()},
        "training names": {side: [str(python[side]), "-c", line] for side, line in training.items()},
    }


def our_first_token() -> dict[str, float]:
    """From the start of the server to the first text of a stream."""
    command = [str(Path(sys.executable).parent / "groundrule"), "serve", embedded.NAME, "--port", "0"]
    body = {"model": embedded.NAME, "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    with Running(command) as server:
        url = f"{address_in(server.line())}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as stream:
            next(line for line in stream if _has_text(line))
            return server.so_far()


def _has_text(line: bytes) -> bool:
    if not line.startswith(b"data: {"):
        return False
    return any(choice["delta"].get("content") for choice in json.loads(line[6:])["choices"])


def their_first_token(python: Path) -> dict[str, float]:
    with Running([str(python), str(HERE / "_first_token.py"), str(embedded.pull()), PROMPT]) as program:
        program.line()
        return program.so_far()


def missing(python: Path) -> list[str]:
    """What `transformers serve` needs and this environment lacks."""
    code = "import importlib.util as u; print(*[n for n in ('fastapi', 'uvicorn', 'openai') if not u.find_spec(n)])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def taking_turns(measures: dict[str, Measure], runs: int) -> dict[str, Any]:
    """CPU and wall of each side, and each one's CPU in relation to ours."""
    found: dict[str, list[dict[str, float]]] = {side: [] for side in measures}
    for _ in range(runs + 1):
        for side, measure in measures.items():
            found[side].append(measure())
    case: dict[str, Any] = {}
    for side, answers in found.items():
        counted = answers[1:]
        case[side] = {
            **spread([answer["cpu_s"] for answer in counted]),
            "wall": spread([answer["wall_s"] for answer in counted]),
        }
    case["ratio"] = {
        side: round(case[side]["median"] / case["ours"]["median"], 2) for side in measures if side != "ours"
    }
    return case


def ended(command: list[str]) -> Measure:
    return lambda: to_the_end(command, QUIET)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--art", type=Path, help="ART's environment, if not in the user's cache")
    parser.add_argument("--trl", type=Path, help="TRL's environment, if not in the user's cache")
    parser.add_argument("--quick", action="store_true", help="one counted run of each instead of five")
    options = parser.parse_args()
    runs = 1 if options.quick else 5
    python = {"ours": Path(sys.executable), "art": peer_python(ART, options.art)}
    python["trl"] = peer_python(TRL, options.trl)
    cases: dict[str, Any] = {}
    for name, sides in commands(python).items():
        cases[name] = taking_turns({side: ended(command) for side, command in sides.items()}, runs)
        print(f"{name}: {cases[name]['ratio']} times our CPU", file=sys.stderr)
    measures = {"ours": our_first_token, "transformers": lambda: their_first_token(python["trl"])}
    cases["first token"] = taking_turns(measures, runs)
    print(f"first token: {cases['first token']['ratio']} times our CPU", file=sys.stderr)
    lacking = missing(python["trl"])
    if lacking:
        why = f"transformers serve: {TRL}'s environment has no {', '.join(lacking)}"
        cases["first token"]["not_measured"] = why
    publish(
        "startup",
        {
            "against": f"{TRL}, {ART}",
            "unit": "CPU seconds of `import`, median; the ratio is to TRL's",
            "runs": runs,
            "ours": cases["import"]["ours"]["median"],
            "theirs": cases["import"]["trl"]["median"],
            "ratio": cases["import"]["ratio"]["trl"],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
