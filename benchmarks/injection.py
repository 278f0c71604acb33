"""Attacks on the judge: how many the detector finds, how often it cries wolf, and how many leave their block.

    python benchmarks/injection.py

The texts are those of `tests/fixtures/injections.jsonl`, all made up. Patterns were written with the development
half in view; the held-out half was written before the patterns took their present form and is only counted. Both
halves have one author, so an attacker who thinks otherwise is found less often. Hidden in tool call ids and
alternative texts an attack is never shown to a judge, so there is nothing to find.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from _machine import publish

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from groundrule.rewards.detector import findings_of
from groundrule.rewards.prompt import judge_messages
from injections import QUESTION, UNSEEN, Sample, carrying, honest, samples

HALVES = ("development", "held_out")


def is_found(sample: Sample) -> bool:
    return bool(findings_of(carrying(sample), len(QUESTION)))


def recall(half: str) -> dict[str, Any]:
    """Found and shown attacks by kind."""
    found: dict[str, list[bool]] = defaultdict(list)
    for attack in samples("attack", half):
        if attack.place not in UNSEEN:
            found[attack.kind].append(is_found(attack))
    by_kind = {kind: {"found": sum(each), "of": len(each)} for kind, each in found.items()}
    total = [one for each in found.values() for one in each]
    return {
        "recall": round(sum(total) / len(total), 3),
        "found": sum(total),
        "of": len(total),
        "by_kind": by_kind,
    }


def false_alarms(half: str) -> dict[str, Any]:
    """Flagged clean texts, by whether they sound like an attack."""
    flagged: dict[str, list[bool]] = defaultdict(list)
    for text in samples("clean", half):
        flagged[text.kind].append(is_found(text))
    total = [one for each in flagged.values() for one in each]
    by_kind = {kind: {"flagged": sum(each), "of": len(each)} for kind, each in flagged.items()}
    return {
        "rate": round(sum(total) / len(total), 3),
        "flagged": sum(total),
        "of": len(total),
        "by_kind": by_kind,
    }


def stays_inside(attack: Sample) -> bool:
    """True when the prompt has the same trajectory boundaries with the attack as without it."""
    return _blocks(attack) == ["#1", "#2", "END"]


def _blocks(attack: Sample) -> list[str]:
    attempts = [carrying(attack), honest("Refunds are possible within 30 days.")]
    content = judge_messages(attempts, rubric="", seed=0)[1]["content"]
    code = content.removeprefix("<<<").split(" ", 1)[0]
    return re.findall(rf"^<<<{code} (#\d+|END)>>>$", content, re.MULTILINE)


def main() -> None:
    attacks = samples("attack")
    kept = sum(stays_inside(attack) for attack in attacks)
    result = {
        "attacks": {half: recall(half) for half in HALVES},
        "clean": {half: false_alarms(half) for half in HALVES},
        "kept_inside_their_block": {"kept": kept, "of": len(attacks)},
        "not_shown_to_a_judge": sum(attack.place in UNSEEN for attack in attacks),
    }
    for half in HALVES:
        found, wrong = result["attacks"][half], result["clean"][half]
        print(f"{half}: {found['found']} of {found['of']} attacks found", file=sys.stderr)
        print(f"{half}: {wrong['flagged']} of {wrong['of']} clean texts flagged", file=sys.stderr)
    print(f"{kept} of {len(attacks)} attacks stay inside their block", file=sys.stderr)
    publish("injection", result)


if __name__ == "__main__":
    main()
