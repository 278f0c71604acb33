"""What each bound of the likelihood judge does: mean raw score of kinds of answers, bound by bound.

    python benchmarks/judge_bounds.py [--scenarios 24]

Answers are made from the training scenarios of the support set, so nothing held out is looked at. A good
judge puts `reference` (a person's short answer) above everything else, and reciting, quoting, echoing
and repeating near zero. Raw scores are on the judge's own scale: 1.0 would be the most that bounded
gains allow; without a bound the scale is nats per token.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from _machine import publish

from groundrule.models.load import load_model
from groundrule.models.text_model import FrozenTextModel
from groundrule.recipes.evaluate import group_of_texts
from groundrule.rewards.checks import facts_mentioned
from groundrule.rewards.likelihood import (
    Continuation,
    LikelihoodJudge,
    LikelihoodSettings,
    TextModel,
    TokenLogprobs,
)
from groundrule.rollouts.scenarios import load_scenarios

NEVER = 1_000_000
OPEN = {"quote_run": NEVER, "repeats_earn": True, "relevance_scale": None, "spec_earns": True}
STAGES: dict[str, dict[str, Any]] = {
    "no bound": {**OPEN, "max_gain": 1000.0, "free_run": NEVER},
    "+ gain per token": {**OPEN, "free_run": NEVER},
    "+ copied runs": OPEN,
    "+ quotes": {"repeats_earn": True, "relevance_scale": None, "spec_earns": True},
    "+ repeats": {"relevance_scale": None, "spec_earns": True},
    "+ system prompt alone": {"relevance_scale": None},
    "+ relevance (all)": {},
}


class Remembering:
    """A `TextModel` that asks the real one only once per text."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.known: dict[str, TokenLogprobs] = {}

    def logprobs(self, continuations: Sequence[Continuation]) -> list[TokenLogprobs]:
        keys = [repr(c) for c in continuations]
        missing = {k: c for k, c in zip(keys, continuations, strict=True) if k not in self.known}
        if missing:
            self.known.update(zip(missing, self.model.logprobs(list(missing.values())), strict=True))
        return [self.known[k] for k in keys]


def answers(scenario, other: str) -> list[tuple[str, str]]:
    sentences = re.split(r"(?<=[.;!?])\s+", scenario.context)
    made = [
        ("reference", scenario.reference),
        ("whole passage", scenario.context),
        ("system prompt", scenario.system),
        ("question", scenario.question),
        ("cannot find", "I can't find that in the documents."),
        ("one word", "customer " * 8),
        ("another answer", other),
        ("label + sentence", f"[Retrieved context]: {sentences[0]}"),
    ]
    for sentence in sentences:
        relevant = facts_mentioned(sentence, scenario.facts)
        made.append(("sentence with the fact" if relevant else "other sentence", sentence))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenarios", type=int, default=24)
    count = parser.parse_args().scenarios
    plain = [s for s in load_scenarios("support", split="train") if s.metadata["kind"] == "plain"]
    chosen = plain[:: max(1, len(plain) // count)][:count]
    model = Remembering(FrozenTextModel(load_model("smollm2-135m", device="cpu")))
    table, wins = {}, {}
    for stage, changes in STAGES.items():
        judge = LikelihoodJudge(model, LikelihoodSettings(**changes))
        raw, beaten = defaultdict(list), defaultdict(list)
        for i, scenario in enumerate(chosen):
            made = answers(scenario, chosen[(i + 5) % len(chosen)].reference)
            scores = judge.score_now(group_of_texts(scenario, [text for _, text in made]))
            values = [
                (kind, score.parts["gain_nats" if stage == "no bound" else "raw"])
                for (kind, _), score in zip(made, scores, strict=True)
            ]
            for kind, value in values:
                raw[kind].append(value)
                if kind != "reference":
                    beaten[kind].append(values[0][1] > value)
        table[stage] = {kind: round(fmean(v), 3) for kind, v in raw.items()}
        wins[stage] = {kind: round(fmean(v), 2) for kind, v in beaten.items()}
        print(stage, table[stage], flush=True)
    publish("judge_bounds", {"scenarios": len(chosen), "mean_raw": table, "reference_beats": wins})


if __name__ == "__main__":
    main()
