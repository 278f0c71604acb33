"""Held-out questions before and after: the table of measures, and the answers side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundrule.viewer.intervals import Change, paired_change
from groundrule.viewer.markup import Child, Html, details, join, table, tag
from groundrule.viewer.numbers import NONE, plural, shown, signed
from groundrule.viewer.verified import label_of, verified_changes

Answer = Mapping[str, Any]

SHOWN_AT_ONCE = 8

_LABELS = {
    "score": ("Score", 1),
    "raw": ("Score before it is mapped to 0..1", 1),
    "facts": ("Key facts that the answer mentions", 1),
    "grounded": ("Content words that stand in the passage", 1),
    "unsupported_numbers": ("Numbers that are not in the passage", -1),
    "unsupported_emails": ("E-mail addresses that are not in the passage", -1),
    "abstains/absent": ("Says that it can't find it, where the passage lacks it", 1),
    "abstains/other": ("Says that it can't find it, elsewhere", -1),
    "copied": ("Longest piece copied from the passage, as a share of the answer", 0),
    "words": ("Words in an answer", 0),
    "distinct": ("Different answers per question", 0),
}
"""What a measure is called, and whether more of it is better (1), worse (-1) or neither."""
_WITHOUT_PASSAGE = {"facts", "words", "distinct"}
"""Checks that say something where nothing was retrieved."""


@dataclass(frozen=True)
class Comparison:
    """The first and the last evaluation of a run."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    changes: Mapping[str, Change]

    @property
    def pairs(self) -> list[tuple[Answer, Answer]]:
        return _pairs(self.before, self.after)


def compare(evaluations: Sequence[Mapping[str, Any]]) -> Comparison | None:
    """Every measure that both ends of the run have; None with fewer than two evaluations."""
    if len(evaluations) < 2:
        return None
    before, after = evaluations[0], evaluations[-1]
    changes = dict(_changes(before, after))
    names = [name for name in dict.fromkeys([*_LABELS, *changes]) if name in changes]
    return Comparison(before, after, {name: changes[name] for name in names})


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Change]]:
    yield from verified_changes(before, after)
    pairs = _pairs(before, after)
    told = [(_measures(b), _measures(a)) for b, a in pairs]
    for name in dict.fromkeys(name for b, a in told for name in {**b, **a}):
        known = [(b[name], a[name]) for b, a in told if name in b and name in a]
        if change := paired_change(known, name=name):
            yield name, change
    # What was measured over all answers at once, or without keeping the answers.
    single = {name for b, a in told for name in {**b, **a}} | ({"abstains"} if pairs else set())
    later = _means(after)
    for name, mean in _means(before).items():
        if name not in single and name in later:
            yield name, Change(mean, later[name], 0)


def _measures(answer: Answer) -> dict[str, float]:
    """The numbers known about one answer. Declining is right or wrong by the kind of question."""
    numbers = {"score": answer.get("score"), "raw": answer.get("raw"), **_checks(answer)}
    if (abstains := numbers.pop("abstains", None)) is not None:
        numbers["abstains/absent" if answer.get("kind") == "absent" else "abstains/other"] = abstains
    return {name: float(value) for name, value in numbers.items() if value is not None}


def _pairs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[Answer, Answer]]:
    later = {a.get("scenario_id"): a for a in after.get("answers") or []}
    return [
        (b, later[b.get("scenario_id")]) for b in before.get("answers") or [] if b.get("scenario_id") in later
    ]


def _checks(answer: Answer) -> Mapping[str, Any]:
    """What was counted in an answer; what compares it with a passage only where there was one."""
    found = answer.get("checks") or {}
    return found if answer.get("context", True) else {n: v for n, v in found.items() if n in _WITHOUT_PASSAGE}


def checks_of(evaluation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same for the means over all answers."""
    found, answers = evaluation.get("checks") or {}, evaluation.get("answers") or []
    has_passages = not answers or any(answer.get("context", True) for answer in answers)
    return found if has_passages else {n: v for n, v in found.items() if n in _WITHOUT_PASSAGE}


def _means(evaluation: Mapping[str, Any]) -> dict[str, float]:
    judge = evaluation.get("judge") or {}
    means = {"score": judge.get("mean"), "raw": judge.get("raw_mean"), **checks_of(evaluation)}
    return {name: float(value) for name, value in means.items() if value is not None}


def headline(comparison: Comparison) -> Html | None:
    """The result in one sentence."""
    change = comparison.changes.get("score")
    if change is None:
        return None
    verb = "rose" if change.difference > 0 else "fell" if change.difference < 0 else "went"
    clear = "" if change.is_clear or change.low is None else " That interval includes zero: no clear change."
    return tag(
        "p",
        f"On {plural(change.count, 'held-out question')} " if change.count else "On held-out questions ",
        f"the mean score {verb} from ",
        tag("b", shown(change.before)),
        " to ",
        tag("b", shown(change.after)),
        f" ({signed(change.difference)}{_interval(change, '; 95% interval ')}).",
        clear,
        class_="headline",
    )


def measures_table(comparison: Comparison) -> Html:
    """Before, after and change of every measure."""
    steps = (f"step {evaluation.get('step', NONE)}" for evaluation in (comparison.before, comparison.after))
    ends = [[name, tag("small", step)] for name, step in zip(("Before", "After"), steps, strict=True)]
    head: list[Child] = ["Measure", *ends, "Change", "95% interval"]
    return table(head, [_row(name, change) for name, change in comparison.changes.items()], class_="measures")


def _row(name: str, change: Change) -> list[Child]:
    verified = label_of(name)
    label, better = (verified, 1) if verified else _LABELS.get(name, (name, 0))
    direction = better * change.difference
    tone = ("good" if direction > 0 else "bad") if change.is_clear and direction else None
    same = change.low == change.high == 0.0
    interval = "no change" if same else _interval(change) or NONE
    unclear = (
        None if same or change.is_clear or change.low is None else tag("span", " unclear", class_="quiet")
    )
    difference = tag("span", signed(change.difference), class_=tone)
    return [label, shown(change.before), shown(change.after), difference, [interval, unclear]]


def _interval(change: Change, lead: str = "") -> str:
    if change.low is None or change.high is None:
        return ""
    return f"{lead}{signed(change.low)} to {signed(change.high)}"


def side_by_side(comparison: Comparison) -> Html | None:
    """The answers to every held-out question."""
    pairs = sorted(comparison.pairs, key=lambda pair: -abs(_gain(pair)))
    if not pairs:
        return None
    shown_first = [_pair(pair) for pair in pairs[:SHOWN_AT_ONCE]]
    rest = [_pair(pair) for pair in pairs[SHOWN_AT_ONCE:]]
    more = details(f"The other {plural(len(rest), 'question')}", rest, class_="more") if rest else None
    order = tag("p", "The largest changes of score come first, gains and losses alike.", class_="quiet")
    return join([order if len(pairs) > 1 else None, *shown_first, more])


def _gain(pair: tuple[Answer, Answer]) -> float:
    before, after = (answer.get("score") for answer in pair)
    return 0.0 if before is None or after is None else float(after) - float(before)


def _pair(pair: tuple[Answer, Answer]) -> Html:
    before, after = pair
    kind = before.get("kind")
    known = [(name, before.get(key)) for name, key in (("Passage", "context"), ("Reference", "reference"))]
    given = [tag("div", tag("h5", name), tag("p", str(text), class_="text")) for name, text in known if text]
    names = [name for name, text in known if text]
    return tag(
        "article",
        tag("h4", str(before.get("question", "")), tag("span", str(kind), class_="tag") if kind else None),
        tag("div", _side("Before", before), _side("After", after), class_="pair"),
        details(" and ".join(names).capitalize(), given) if given else None,
        class_="card",
    )


def _side(name: str, answer: Answer) -> Html:
    score = answer.get("score")
    checks = [_check(name, value) for name, value in _checks(answer).items() if value is not None]
    return tag(
        "div",
        tag(
            "h5", name, " ", tag("span", "no score" if score is None else shown(float(score)), class_="score")
        ),
        tag("p", str(answer.get("answer", "")) or "(empty)", class_="text"),
        tag("p", str(answer["explanation"]), class_="why") if answer.get("explanation") else None,
        tag("p", " · ".join(filter(None, checks)), class_="why"),
    )


def _check(name: str, value: Any) -> str:
    """`facts 0.50`; a count of nothing, or a no, says nothing."""
    words = name.replace("_", " ")
    if isinstance(value, bool):
        return words if value else ""
    return "" if name.startswith("unsupported") and not value else f"{words} {shown(value)}"


def spec_effect(evaluation: Mapping[str, Any]) -> Html | None:
    """How the same answers score under other system prompts."""
    specs = (evaluation.get("spec_effect") or {}).get("specs") or []
    rows: list[list[Child]] = [
        [
            str(s.get("name", "")),
            shown(s.get("mean")),
            details("Read it", tag("p", str(s["system"]), class_="text")),
        ]
        for s in specs
        if s.get("system")
    ]
    return table(["System prompt", "Mean score", "Text"], rows) if rows else None
