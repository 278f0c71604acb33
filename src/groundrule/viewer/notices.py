"""Why a run learned little: what the files say, in sentences with a remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from groundrule.viewer.exploitation import Exploitation
from groundrule.viewer.held_out import Comparison
from groundrule.viewer.intervals import Change
from groundrule.viewer.markup import Html, tag
from groundrule.viewer.numbers import plural, share, shown
from groundrule.viewer.steps import Step, totals_of


def notices(
    steps: Sequence[Step],
    comparison: Comparison | None,
    exploitation: Exploitation | None,
    *,
    is_compared: bool = False,
) -> Html:
    """A list of what a reader should know before the curves; `is_compared`: before and after in another way."""
    compared = [] if is_compared and comparison is None else _of_evaluations(comparison)
    found = [*_of_judges(exploitation), *_of_steps(steps), *compared]
    if not found:
        return tag("p", "Nothing stands out: no ties, no cut answers, no failures.", class_="quiet")
    return tag("ul", [tag("li", tag("b", lead), " ", text) for lead, text in found], class_="notices")


def _of_judges(exploitation: Exploitation | None) -> Iterator[tuple[str, str]]:
    if exploitation is None:
        return
    fell = [
        f"{name} {_from_to(change)} ({shown(change.difference)} ± {shown(change.margin)}, two standard errors)"
        for name, change in exploitation.falls.items()
    ]
    best = [f"{step} by {name}" for name, step in exploitation.best_steps.items()]
    moved = f" KL went {_from_to(exploitation.kl)} nats an answer." if exploitation.kl else ""
    yield (
        "The judge that is trained on looks exploited:",
        f"from the middle third of the steps to the last its score rose {_from_to(exploitation.trained)}, while "
        f"held-out scores fell: {'; '.join(fell)}.{moved} Stop earlier (the best step was {', '.join(best)}), raise "
        "kl_coef, or, if the judge is a reward model, train it on newer answers.",
    )


def _from_to(change: Change) -> str:
    return f"from {shown(change.before)} to {shown(change.after)}"


def _of_steps(steps: Sequence[Step]) -> Iterator[tuple[str, str]]:
    totals = totals_of(steps)
    if not totals.groups:
        yield "No step is recorded yet.", "The page shows what was evaluated so far."
        return
    if totals.tied:
        yield (
            f"{share(totals.tied, totals.groups, 'group')} taught nothing:",
            "all their answers got the same reward. More answers in a group, a higher temperature or "
            "questions that are neither always nor never answered well make a difference.",
        )
    if totals.lonely:
        yield (
            f"{share(totals.lonely, totals.groups, 'group')} had fewer than two scored answers,",
            "so there was nothing to compare.",
        )
    if totals.cut:
        yield (
            f"{share(totals.cut, totals.answers, 'answer')} ended at the token limit.",
            "They are judged as they stand; a higher limit lets them end.",
        )
    if unscored := totals.unscored.total():
        yield (
            f"{share(unscored, totals.answers, 'answer')} got no score",
            f"and took no part: {_most(totals.unscored)}.",
        )
    if failed := totals.exceptions.total():
        yield f"{plural(failed, 'rollout')} failed:", f"{_most(totals.exceptions)}."


def _of_evaluations(comparison: Comparison | None) -> Iterator[tuple[str, str]]:
    if comparison is None:
        yield (
            "There is no evaluation before and after.",
            "A rising training reward alone does not show that the answers got better.",
        )
        return
    score, copied, facts = (comparison.changes.get(name) for name in ("score", "copied", "facts"))
    if copied and copied.difference > 0.1:
        yield (
            "Answers copy more:",
            f"the longest copied piece went from {shown(copied.before)} to {shown(copied.after)} of an "
            "answer. The judge may be paying for recitation.",
        )
    if score and facts and score.difference > 0 > facts.difference and facts.is_clear:
        yield (
            "The score rose while key facts went missing",
            f"({shown(facts.before)} to {shown(facts.after)}): read the answers below before trusting it.",
        )


def _most(causes: Counter[str]) -> str:
    shown_causes = [f"{cause} ({count}×)" for cause, count in causes.most_common(3)]
    more = len(causes) - len(shown_causes)
    return "; ".join(shown_causes) + (f"; and {plural(more, 'other cause')}" if more else "")
