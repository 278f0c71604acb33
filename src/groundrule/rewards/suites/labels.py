"""What is known of a group's members, read from its labels.

    rank      [[2], [0, 3], [1]]          tiers of member numbers, best first; one tier's members are ties
    scores    [0.9, null, 0.2, 1]         a number a member, such as a person's or a verifier's; null: unknown
    best      2                           the best member; nothing is known of the others among themselves

A group has one of the three. Members are numbered from 0, in the order of `trajectories`. Beside them stand,
where they apply, lists of pairs:

    pairs_that_matter   [[better, worse], ...]    only these pairs count, and nothing is taken for a tie
    injected            [[attacked, clean], ...]  the same answer with and without a plea to the grader
    padded              [[padded, plain], ...]    the same answer said in many more words
    twins               [[one, other], ...]       the same answer to any reader
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from groundrule.errors import DataError

Pair = tuple[int, int]

FORMS = ("rank", "scores", "best")
_EXAMPLES = "'rank': [[2], [0, 1]], 'scores': [0.9, 0.2, 0.4] or 'best': 2"


@dataclass(frozen=True)
class Known:
    """The known order of a group, as places and as pairs of member numbers."""

    places: tuple[float | None, ...]
    """Higher is better, equal says nothing; None where a member's place is unknown."""
    ordered: tuple[Pair, ...] = ()
    """(better, worse)."""
    tied: tuple[Pair, ...] = ()
    """Members that are equally good, not merely of unknown order."""
    injected: tuple[Pair, ...] = ()
    padded: tuple[Pair, ...] = ()
    twins: tuple[Pair, ...] = ()


def known_from(labels: Mapping[str, Any], members: int) -> Known:
    """Read the labels of a group of so many members; raises `DataError` that names label and member."""
    given = [form for form in FORMS if form in labels]
    if len(given) != 1:
        found = " and ".join(map(repr, given)) or f"the keys {', '.join(map(repr, labels)) or '(none)'}"
        raise DataError(f"holds {found}; write one of {_EXAMPLES}", column="labels")
    form = given[0]
    read = {"rank": _rank, "scores": _scores, "best": _best}[form]
    places = read(labels[form], members)
    pairs = {name: _pairs(labels.get(name), name, members) for name in ("injected", "padded", "twins")}
    chosen = _pairs(labels.get("pairs_that_matter"), "pairs_that_matter", members)
    for better, worse in chosen:
        _check_better(places, better, worse)
    ordered = chosen or tuple(
        (i, j) if _place(places, i) > _place(places, j) else (j, i)
        for i, j in _comparable(places)
        if places[i] != places[j]
    )
    is_tiered = form == "rank" and not chosen
    tied = tuple((i, j) for i, j in _comparable(places) if places[i] == places[j]) if is_tiered else ()
    return Known(places, ordered, tied, **pairs)


def _comparable(places: Sequence[float | None]) -> list[Pair]:
    return list(combinations([i for i, place in enumerate(places) if place is not None], 2))


def _place(places: Sequence[float | None], member: int) -> float:
    place = places[member]
    assert place is not None
    return place


def _rank(value: Any, members: int) -> tuple[float | None, ...]:
    if not isinstance(value, list) or not all(isinstance(tier, list) for tier in value):
        raise _fault(
            "rank", f"{_shown(value)} is not a list of tiers; write 'rank': [[2], [0, 1]], best first"
        )
    places: dict[int, float] = {}
    for depth, tier in enumerate(value):
        for member in tier:
            number = _member(member, "rank", members)
            if number in places:
                raise _fault("rank", f"member {number} stands in it twice; put it into one tier")
            places[number] = float(-depth)
    missing = [i for i in range(members) if i not in places]
    if missing:
        raise _fault(
            "rank", f"member {missing[0]} is in no tier; every one of the {members} members needs one"
        )
    return tuple(places[i] for i in range(members))


def _scores(value: Any, members: int) -> tuple[float | None, ...]:
    if not isinstance(value, list) or len(value) != members:
        count = f"{len(value)} numbers" if isinstance(value, list) else _shown(value)
        raise _fault(
            "scores", f"{count} for {members} members; write one number a member, null where unknown"
        )
    for member, score in enumerate(value):
        if not (score is None or isinstance(score, int | float)):
            raise _fault(
                "scores", f"member {member} has {_shown(score)}; write a number, or null where unknown"
            )
    return tuple(None if score is None else float(score) for score in value)


def _best(value: Any, members: int) -> tuple[float | None, ...]:
    best = _member(value, "best", members)
    return tuple(float(i == best) for i in range(members))


def _pairs(value: Any, name: str, members: int) -> tuple[Pair, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(p, list) and len(p) == 2 for p in value):
        raise _fault(name, f"{_shown(value)} is not a list of pairs; write '{name}': [[0, 1]]")
    return tuple((_member(a, name, members), _member(b, name, members)) for a, b in value)


def _check_better(places: Sequence[float | None], better: int, worse: int) -> None:
    above, below = places[better], places[worse]
    if above is None or below is None or above <= below:
        raise _fault(
            "pairs_that_matter",
            f"member {better} is not above member {worse} in this group's own order; write the better one first",
        )


def _member(value: Any, name: str, members: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < members:
        raise _fault(
            name, f"{_shown(value)} is no member; the {members} members are numbered from 0 to {members - 1}"
        )
    return value


def _fault(label: str, message: str) -> DataError:
    return DataError(message, column=f"labels.{label}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
