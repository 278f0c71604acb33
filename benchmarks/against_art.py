"""The same groups and the same scripted replies through ART's RULER and through ours.

    python benchmarks/against_art.py [--environment FOLDER]

ART (openpipe-art 0.5.18, the last for Python 3.11) is installed into an environment of its own. For each
case an outcome is `right` (the rewards that the judge meant, or none where its reply cannot be trusted), `wrong` (other
rewards) or `error` (no rewards although the judge gave usable ones). Prompt tokens are counted by one
tokenizer for both, for groups of eight that share about a thousand tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _machine import publish
from _peers import ART, HERE, PEERS, QUIET, peer_python
from _ruler_cases import CASES, Case, judge, token_groups

from groundrule.data import History, Trajectory, TrajectoryGroup
from groundrule.data.protocols import ChatRequest
from groundrule.llm import ScriptedClient
from groundrule.rewards import ruler_score_group

[RELEASE] = PEERS[ART]


def prompt_text(request: ChatRequest) -> str:
    """All text of a request; other parts as JSON, so that they are counted too."""
    contents = [message["content"] for message in request.messages]
    return "\n".join(_text(content) for content in contents)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] if part["type"] == "text" else json.dumps(part) for part in content)


def group_of(case: Case) -> TrajectoryGroup:
    more = [History(messages_and_choices=list(case.further))] if case.further else []
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=list(m), additional_histories=more) for m in case.members]
    )


async def outcome(case: Case) -> dict[str, Any]:
    calls = iter(range(100))
    client = ScriptedClient(lambda request: judge(case, prompt_text(request), next(calls)), takes_images=True)
    judged = await ruler_score_group(group_of(case), client, swallow_exceptions=True)
    return {"rewards": [None if r is None else repr(r) for r in judged.rewards]}


async def our_prompt(members: list[list[dict[str, Any]]]) -> str:
    client = ScriptedClient(lambda request: judge(Case("tokens"), prompt_text(request), 0))
    group = TrajectoryGroup([Trajectory(messages_and_choices=m) for m in members])
    await ruler_score_group(group, client)
    return prompt_text(client.requests[0])


def verdict(case: Case, found: dict[str, Any]) -> str:
    """`right`, `wrong` or `error`."""
    given = found.get("rewards")
    refused = given is None or all(reward is None for reward in given)
    if refused:
        return "right" if all(e is None for e in case.expected) else "error"
    values = [math.nan if reward is None else float(reward) for reward in given]
    if case.equal_will_do and len(set(values)) == 1:
        return "right"
    same = len(values) == len(case.expected) and all(
        e is not None and math.isclose(v, e) for v, e in zip(values, case.expected, strict=True)
    )
    return "right" if same else "wrong"


def their_side(python: Path, prompts: dict[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "our_prompts.json"
        kept.write_text(json.dumps(prompts), encoding="utf-8")
        result = subprocess.run(
            [str(python), str(HERE / "_art_side.py"), str(kept)],
            env={**os.environ, **QUIET, "PYTHONPATH": str(HERE)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    found: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return found


def tally(verdicts: dict[str, str]) -> dict[str, int]:
    return {kind: sum(v == kind for v in verdicts.values()) for kind in ("right", "wrong", "error")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", type=Path, help="ART's environment, if not in the user's cache")
    python = peer_python(ART, parser.parse_args().environment)
    prompts = {name: asyncio.run(our_prompt(members)) for name, members in token_groups().items()}
    theirs = their_side(python, prompts)
    table = []
    for case in CASES:
        our_outcome, their_outcome = asyncio.run(outcome(case)), theirs["outcomes"][case.name]
        row = {"case": case.name, "ours": verdict(case, our_outcome), "theirs": verdict(case, their_outcome)}
        table.append({**row, "their_outcome": their_outcome, "our_outcome": our_outcome})
        print(f"{row['case']:<46} ours {row['ours']:<6} theirs {row['theirs']}", file=sys.stderr)
    tokens = {n: {"ours": theirs["ours"][n], "theirs": theirs["theirs"][n]} for n in prompts}
    for name, pair in tokens.items():
        print(f"prompt tokens, {name}: ours {pair['ours']}, theirs {pair['theirs']}", file=sys.stderr)
    publish(
        "against_art",
        {
            "cases": len(CASES),
            "ours": tally({row["case"]: row["ours"] for row in table}),
            "theirs": tally({row["case"]: row["theirs"] for row in table}),
            "prompt_tokens": {
                language: tokens[f"{language}, in leading messages"] for language in ("en", "zh")
            },
            "prompt_tokens_of": tokens,
            "release": RELEASE,
            "table": table,
        },
    )


if __name__ == "__main__":
    main()
