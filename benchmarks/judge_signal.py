"""How much of the truth reaches the trainer: advantages from a simulated judge against the true ones.

    python benchmarks/judge_signal.py [--groups 300]

Each group has 8 or 32 items of true quality N(0, 1), independent of the order given; the judges are
`NoisyJudge.strong()` and `.weak()`, with a share of 0, 0.3 or 0.6 of their error common to all calls. True
advantages are the standardised qualities themselves, not their image on the judge's scale. Reported are

    cosine   between the advantages used and the true ones, mean over groups; a group without any advantage is 0
    pooled   the same over the advantages of all groups at once, where it counts how large each group's are
    mixed    pooled, with a group of truly equal items after every third
    equal    mean |advantage| in those groups of equals, where 0 would be right

and 95 % bootstrap intervals over groups. `one` is a single call with all items in the order given, normalised
by the plain standard deviation as ART does (32 items get the same noise as 8, which flatters it); all others
use the floored one. `shuffled`, `order_reverse` and `four` are the first 1, 2 and 4 passes of `orders`;
`chunks_1` to `chunks_3` are partitions into calls of 8, merged; `adaptive` is two passes, and two more
where the reliability is below 0.6. Added to them:

    +reliability  a group's advantages times its reliability
    +tie0.5 +tie1 scores within so many standard errors are tied
    +slots        the judge's slot effect taken off, learned from earlier groups only
    +log_odds     mean log odds instead of mean scores (ends taken as half a rounding step inside 0..1)
    +calibrated   slot effects off, and passes of unequal spread drawn together; its +reliability without slot effects
    +mean         mean raw scores instead of the merge
    +plain_bt     Bradley-Terry held to 0 with weight 0.05, mapped back through a sigmoid, instead of the merge

`gain` is what that adds to the cosine, by the same groups.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, pstdev

from _machine import publish

from groundrule._util.seed import derive
from groundrule.algorithms.advantages import advantages, tie_band
from groundrule.rewards.calibration import Calibration
from groundrule.rewards.merge import merge, merge_reliability, sigmoid, strengths
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.orders import orders, partitions
from groundrule.rewards.passes import Passes
from groundrule.rewards.reliability import about_their_means, noise_of_mean, reliability

JUDGES = {"strong": NoisyJudge.strong(), "weak": NoisyJudge.weak()}
SHARES = (0.0, 0.3, 0.6)
PASSES = {"shuffled": 1, "order_reverse": 2, "four": 4}
PARTITIONS = {"chunks_1": 1, "chunks_2": 2, "chunks_3": 3}
SLOTS = {
    **{name: 8 * passes for name, passes in PASSES.items()},
    **{name: 32 * count for name, count in PARTITIONS.items()},
    "adaptive": 32,  # At most.
}
TIES = (0.5, 1.0)
EQUAL_EVERY = 3
ENOUGH = Passes().enough
RESAMPLES = 500

Used = dict[str, list[float]]
"""The advantages of one group by how they were made."""


@dataclass
class Column:
    """What one way of making advantages did, group by group."""

    cosines: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    equal: list[float] = field(default_factory=list)
    equal_square: float = 0.0

    def add(self, used: Sequence[float], truth: Sequence[float]) -> None:
        product = sum(a * t for a, t in zip(used, truth, strict=True))
        square = sum(a * a for a in used)
        size = math.sqrt(square * sum(t * t for t in truth))
        self.cosines.append(product / size if size > 1e-12 else 0.0)
        self.products.append(product)
        self.squares.append(square)

    def pooled(self, draw: Sequence[int], items: int, more: float = 0.0) -> float:
        """The cosine over all members of these groups, and of groups of equals with `more` sum of squares."""
        square = sum(map(self.squares.__getitem__, draw)) + more
        true_square = items * len(draw)  # Standardised.
        product = sum(map(self.products.__getitem__, draw))
        return product / math.sqrt(square * true_square) if square else 0.0


def treated(name: str, scores: Sequence[float], trust: float | None, noise: float | None) -> Used:
    """The advantages from these scores, plain and with what was measured of them put to use."""
    found = {name: floored(scores)}
    if trust is not None and noise is not None:
        found[f"{name}+reliability"] = [trust * a for a in found[name]]
        for width in TIES:
            found[f"{name}+tie{width:g}"] = floored(tie_band(scores, width * noise))
    return found


def floored(scores: Sequence[float], kind: str = "floored") -> list[float]:
    return [a for a in advantages(scores, kind=kind) if a is not None]


def in_passes(
    judge: NoisyJudge, q: Sequence[float], known: dict[str, Calibration], rng: random.Random
) -> Used:
    """Eight items: one call in the order given, then up to four passes in other orders."""
    call = caller(judge, q, rng)
    used = {"one": floored(call(range(len(q))), "population_std")}
    shown = orders(len(q), max(PASSES.values()), rng=rng)
    calls = [call(order) for order in shown]
    slots = [[order.index(i) for i in range(len(q))] for order in shown]
    passes = [[said[slot] for slot in places] for said, places in zip(calls, slots, strict=True)]
    for name, count in PASSES.items():
        done = passes[:count]
        level = about_their_means(done)
        trust, noise = reliability(level), noise_of_mean(level)
        used |= treated(name, [fmean(column) for column in zip(*done, strict=True)], trust, noise)
        odds = [[logit(score, judge.quant / 2) for score in scores] for scores in done]
        used[f"{name}+log_odds"] = floored([sigmoid(fmean(column)) for column in zip(*odds, strict=True)])
        learner = known.setdefault(name, Calibration())
        straight = [present(learner.corrected(said)) for said in calls[:count]]
        placed = [[said[slot] for slot in places] for said, places in zip(straight, slots, strict=False)]
        used[f"{name}+slots"] = floored([fmean(column) for column in zip(*placed, strict=True)])
        combined = floored(present(learner.combine(done, slots[:count])))
        used[f"{name}+calibrated"] = combined
        if (trust := reliability(about_their_means(placed))) is not None:
            used[f"{name}+calibrated+reliability"] = [trust * a for a in combined]
        for said in calls[:count]:
            learner.observe(said)
    trust = reliability(about_their_means(passes[:2]))
    count = 2 if trust is not None and trust >= ENOUGH else 4
    for name in ("", "+reliability"):
        used[f"adaptive{name}"] = used[f"{'order_reverse' if count == 2 else 'four'}{name}"]
    return used


def in_chunks(
    judge: NoisyJudge, q: Sequence[float], known: dict[str, Calibration], rng: random.Random
) -> Used:
    """Thirty-two items: one call with all of them in the order given, then up to three partitions."""
    call = caller(judge, q, rng)
    used = {"one": floored(call(range(len(q))), "population_std")}
    drawn = partitions(len(q), max(PARTITIONS.values()), rng=rng)
    said = {tuple(order): call(order) for chunks in drawn for order in chunks}
    for name, count in PARTITIONS.items():
        chosen = [tuple(order) for chunks in drawn[:count] for order in chunks]
        chunks = [dict(zip(order, said[order], strict=True)) for order in chosen]
        values = present(merge(len(q), chunks))
        trust = merge_reliability(len(q), chunks, values)
        noise = None if trust is None else pstdev(values) * math.sqrt(1 - trust)
        used |= treated(name, values, trust, noise)
        if count > 1:  # One reading is its own mean.
            mean = [fmean(chunk[i] for chunk in chunks if i in chunk) for i in range(len(q))]
            used[f"{name}+mean"] = floored(mean)
            used[f"{name}+plain_bt"] = floored(plain_bradley_terry(chunks, fmean(mean), len(q)))
        learner = known.setdefault(name, Calibration())
        level = [dict(zip(order, present(learner.corrected(said[order])), strict=True)) for order in chosen]
        used[f"{name}+slots"] = floored(present(merge(len(q), level)))
        for order in chosen:
            learner.observe(said[order])
    return used


def caller(
    judge: NoisyJudge, q: Sequence[float], rng: random.Random
) -> Callable[[Sequence[int]], list[float]]:
    """Asks for the scores of the items in some order; each item keeps its lasting error."""
    lasting = [rng.gauss(0.0, 1.0) for _ in q]
    return lambda order: judge.scores([q[i] for i in order], rng=rng, common=[lasting[i] for i in order])


def plain_bradley_terry(chunks: Sequence[dict[int, float]], mean: float, n: int) -> list[float]:
    found = strengths([0.0] * n, chunks, weight=0.05)
    middle = min(max(mean, 0.05), 0.95)
    return [sigmoid(logit(middle, 0.05) + 0.15 * (t - fmean(found)) / (middle * (1 - middle))) for t in found]


def logit(score: float, edge: float) -> float:
    inside = min(max(score, edge), 1 - edge)
    return math.log(inside / (1 - inside))


def present(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def simulate(judge: NoisyJudge, groups: int, items: int, rng: random.Random) -> dict[str, Column]:
    """Every way of making advantages, on the same groups; calibration learns from groups of equals too."""
    ask = in_passes if items == 8 else in_chunks
    columns: dict[str, Column] = defaultdict(Column)
    known: dict[str, Calibration] = {}
    for number in range(1, groups + 1):
        q = [rng.gauss(0.0, 1.0) for _ in range(items)]
        middle, scale = fmean(q), pstdev(q)
        for name, used in ask(judge, q, known, rng).items():
            columns[name].add(used, [(value - middle) / scale for value in q])
        if number % EQUAL_EVERY == 0:
            for name, used in ask(judge, [0.0] * items, known, rng).items():
                columns[name].equal.append(fmean(map(abs, used)))
                columns[name].equal_square += sum(a * a for a in used)
    return columns


def summary(columns: dict[str, Column], draws: Sequence[Sequence[int]], items: int) -> dict[str, dict]:
    """By way: cosines, their intervals, what it adds to its reading, and equal groups."""
    table: dict[str, dict] = {}
    for name, column in columns.items():
        reading, _, added = name.partition("+")
        base = columns[reading].cosines
        gains = [a - b for a, b in zip(column.cosines, base, strict=True)]
        everything = range(len(base))
        pooled = [column.pooled(draw, items) for draw in draws]
        table[name] = {
            "slots": SLOTS.get(reading, items),
            "cosine": round(fmean(column.cosines), 4),
            "ci95": interval(means(column.cosines, draws)),
            "pooled": round(column.pooled(everything, items), 4),
            "pooled_ci95": interval(pooled),
            "mixed": round(column.pooled(everything, items, column.equal_square), 4),
            "equal": round(fmean(column.equal), 4),
            "silent_groups": round(fmean(square == 0 for square in column.squares), 4),
        }
        if added:
            table[name] |= {"gain": round(fmean(gains), 4), "gain_ci95": interval(means(gains, draws))}
    return table


def means(values: Sequence[float], draws: Sequence[Sequence[int]]) -> list[float]:
    return [sum(map(values.__getitem__, draw)) / len(draw) for draw in draws]


def interval(resampled: Sequence[float]) -> list[float]:
    ordered = sorted(resampled)
    tail = len(ordered) // 40
    return [round(ordered[tail], 4), round(ordered[-1 - tail], 4)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw = random.Random(derive("bootstrap", arguments.seed))
    draws = [draw.choices(range(arguments.groups), k=arguments.groups) for _ in range(RESAMPLES)]
    table: dict[str, dict] = {}
    for judge in JUDGES:
        for share in SHARES:
            for items in (8, 32):
                rng = random.Random(derive("judge signal", arguments.seed, judge, share, items))
                simulated = replace(JUDGES[judge], common_error=share)
                columns = simulate(simulated, arguments.groups, items, rng)
                table[f"{judge}/{items}/{share:g}"] = found = summary(columns, draws, items)
                show(f"{judge} judge, {items} items, {share:.0%} of its error in all passes alike", found)
    headline = headlines(table)
    print(f"{time.process_time():.0f} CPU seconds", file=sys.stderr)
    publish("judge_signal", {"groups": arguments.groups, "seed": arguments.seed, **headline, "all": table})
    print(json.dumps(headline))


def headlines(table: dict[str, dict[str, dict]]) -> dict[str, dict]:
    """The figures for independent errors."""

    def pick(items: int, names: Sequence[str], what: str) -> dict[str, dict]:
        return {j: {name: table[f"{j}/{items}/0"][name][what] for name in names} for j in JUDGES}

    few, many = ["one", *PASSES], ["one", *PARTITIONS]
    shrunk = [*few, "four+reliability"]
    return {
        **pick(8, few, "cosine"),
        "n32": pick(32, many, "cosine"),
        "pooled": pick(8, shrunk, "pooled"),
        "equal_groups": pick(8, shrunk, "equal"),
        "ci95": {
            **pick(8, few, "ci95"),
            "n32": pick(32, many, "ci95"),
            "pooled": pick(8, shrunk, "pooled_ci95"),
        },
    }


def show(title: str, found: dict[str, dict]) -> None:
    head = f"{'':36}slots  cosine  95 %          pooled  mixed  equal    gain  95 %"
    print(f"\n{title}\n{head}", file=sys.stderr)
    for name, row in found.items():
        low, high = row["ci95"]
        line = f"{name:36}{row['slots']:5}   {row['cosine']:.3f}  {low:.3f}..{high:.3f}   "
        line += f"{row['pooled']:.3f}  {row['mixed']:.3f}  {row['equal']:.3f}"
        if "gain" in row:
            line += "  {:+.4f} {:+.4f}..{:+.4f}".format(row["gain"], *row["gain_ci95"])
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
