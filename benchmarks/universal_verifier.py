"""The universal verifier on answers of known truth: precision and recall of each layer and of all together.

    python benchmarks/universal_verifier.py --judges simulated
    python benchmarks/universal_verifier.py --judges local [--items 100]      # the embedded model

The simulated judge knows the truth and says the opposite in a share of its replies; half of the errors, or none, are
the same in every vote. It always quotes the answer itself, so the check of quotes takes nothing off: of a judge that
invents quotes less gets through. Answers without a score count as not accepted. An answer is accepted from 0.5.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from _machine import publish
from _universal_items import NOT_FORESEEN, Item, items, master_keys, truth_of

from groundrule._util.aio import or_raise, settle
from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.errors import JudgeError, LlmError
from groundrule.rewards import Rubric, UniversalVerifier
from groundrule.rewards.universal.case import cases_of
from groundrule.rewards.universal.rates import Rate
from groundrule.rewards.universal.reference import ReferenceLayer
from groundrule.rewards.universal.simulated import NoisyExaminer
from groundrule.rewards.verifiers import verify_exact

ACCEPTS_AT = 0.5
AT_ONCE = 32
LOCAL = "local/smollm2-135m"
ERRORS = (0.10, 0.25)
COMMON = (0.0, 0.5)
TASKS_WITH_KEYS = 10
RUBRIC = Rubric.model_validate(
    {
        "criteria": [
            {
                "id": "result",
                "text": "states the result that the task asks for, and it is right",
                "essential": True,
            },
            {"id": "one", "text": "commits to one value or name only"},
            {"id": "task", "text": "stays with what the task asks", "kind": "judgement"},
        ]
    }
)

Accepts = Callable[[Item], Awaitable[bool | None]]
"""True, False, or None for no score."""


@dataclass
class Gullible:
    """A judge that takes everything for right and quotes the whole answer."""

    base_url: str = "gullible:"

    async def complete(self, request: ChatRequest) -> ChatReply:
        text = str(request.messages[1]["content"]).split(" ANSWER>>>\n")[1].split("\n<<<")[0]
        return ChatReply(json.dumps({"quote": text, "verdict": "same"}), cost_usd=0.0)


async def exact(item: Item) -> bool | None:
    return verify_exact(item.answer, item.reference).value == 1.0


def single_call(judge: Any) -> Accepts:
    """The judge asked once, believed at its word: no gate, no quote, no vote."""
    layer = ReferenceLayer(UniversalVerifier(judge_model=judge).judges, votes=1)

    async def accepts(item: Item) -> bool | None:
        try:
            reading = await layer.vote(cases_of(item.group())[0], [item.reference], 0)
        except (JudgeError, LlmError):
            return None
        return reading.value.said == "same"

    return accepts


def by(verifier: UniversalVerifier) -> Accepts:
    async def accepts(item: Item) -> bool | None:
        [score] = await verifier.score(item.group())
        return None if score.value is None else score.value >= ACCEPTS_AT

    return accepts


def ways(judge: Any) -> dict[str, Accepts]:
    """Each layer alone, then together, after the two that they are held against."""

    def layer(*names: Any) -> Accepts:
        return by(UniversalVerifier(RUBRIC, judge, layers=names))

    return {
        "exact match alone": exact,
        "one judge call, believed": single_call(judge),
        "check": layer("check"),
        "reference": layer("reference"),
        "rubric": layer("rubric"),
        "all three layers": layer("check", "reference", "rubric"),
    }


async def each(accepts: Accepts, everything: Sequence[Item]) -> list[bool | None]:
    """A local model answers calls that wait at the same time in one batch."""
    at_once = asyncio.Semaphore(AT_ONCE)
    return or_raise(await settle([accepts(item) for item in everything], limit=at_once))


async def measure(accepts: Accepts, everything: Sequence[Item], judge: Any) -> dict[str, Any]:
    """Precision and recall with intervals, and what it took."""
    before = getattr(judge, "calls", 0)
    said = await each(accepts, everything)
    passed = [item for item, yes in zip(everything, said, strict=True) if yes]
    right = [item for item in everything if item.is_right]
    return {
        "scored": sum(yes is not None for yes in said),
        "precision": _rate(sum(item.is_right for item in passed), len(passed)),
        "recall": _rate(sum(item.is_right for item in passed), len(right)),
        "calls_an_answer": round((getattr(judge, "calls", 0) - before) / len(everything), 2),
    }


def _rate(hits: int, of: int) -> dict[str, Any]:
    rate = Rate(hits, of)
    ci = rate.ci95
    return {
        "value": None if rate.share is None else round(rate.share, 4),
        "ci95": None if ci is None else [round(end, 4) for end in ci],
        "hits": hits,
        "of": of,
    }


async def key_report(everything: Sequence[Item], judge: Any) -> dict[str, Any]:
    """False accepts on answers that say nothing, of the verifier and of the same judge believed at its word."""
    tasks = list({item.question: item for item in everything}.values())
    step = max(1, len(tasks) // TASKS_WITH_KEYS)
    keys = [
        Item(task.question, task.reference, text, False)
        for task in tasks[::step][:TASKS_WITH_KEYS]
        for text in master_keys(task.question)
    ]
    verifier = by(UniversalVerifier(None, judge, layers=("reference",)))
    believed = single_call(judge)
    found = [item for item, yes in zip(keys, await each(verifier, keys), strict=True) if yes]
    unforeseen = [Item(tasks[0].question, tasks[0].reference, text, False) for text in NOT_FORESEEN]
    return {
        "answers": len(keys),
        "a_task": len(master_keys("?")),
        "accepted": len(found),
        "accepted_by_one_call": sum(map(bool, await each(believed, keys))),
        "not_foreseen": len(unforeseen),
        "not_foreseen_accepted": sum(map(bool, await each(verifier, unforeseen))),
        "which": [item.answer for item in found[:10]],
    }


async def simulated() -> dict[str, Any]:
    everything = items()
    truth = truth_of(everything)
    rows = []
    for error in ERRORS:
        for common in COMMON:
            judge = NoisyExaminer(truth, error=error, common_error=common)
            for name, accepts in ways(judge).items():
                rows.append({"error": error, "common": common, "way": name,
                             **await measure(accepts, everything, judge)})  # fmt: skip
            print(f"error {error:.0%}, {common:.0%} of it lasting: done", file=sys.stderr)
    return {
        "judge": "simulated",
        "answers": len(everything),
        "tasks": len({item.question for item in everything}),
        "rows": rows,
        "master_keys": await key_report(everything, Gullible()),
    }


async def local(count: int | None) -> dict[str, Any]:
    """Every so-many-th task, so that sums and facts are both in it."""
    everything = items()
    if count is not None and count < len(everything):
        tasks = list(dict.fromkeys(item.question for item in everything))
        kept = set(tasks[:: max(1, round(len(everything) / count))])
        everything = [item for item in everything if item.question in kept]
    rows = []
    for name, accepts in ways(LOCAL).items():
        rows.append({"way": name, **await measure(accepts, everything, None)})
        print(f"{name}: {rows[-1]}", file=sys.stderr)
    return {
        "judge": LOCAL,
        "answers": len(everything),
        "tasks": len({item.question for item in everything}),
        "rows": rows,
        "master_keys": await key_report(everything, LOCAL),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judges", choices=["simulated", "local"], default="simulated")
    parser.add_argument("--items", type=int, help="local: about so many answers [all]")
    given = parser.parse_args()
    result = asyncio.run(simulated() if given.judges == "simulated" else local(given.items))
    publish(f"universal_verifier_{given.judges}", result)
    if result["master_keys"]["accepted"]:
        sys.exit(f"accepted answers that say nothing: {result['master_keys']['which']}")


if __name__ == "__main__":
    main()
