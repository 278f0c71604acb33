"""Preferences as JSON lines. Four kinds of record are read, mixed as they like, and told apart by their keys:

- `answers` and `order`: a ranking, as `write_rankings` writes it;
- `prompt`, `chosen`, `rejected`: a pair; each is a list of messages or a text;
- the same, where `chosen` and `rejected` repeat the prompt before their answer;
- `chosen` and `rejected` as whole conversations: what both begin with is the prompt.

A pair is a ranking of two. Columns of a pair that have no meaning here are kept in its metadata.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from groundrule._util import jsonl
from groundrule.data.answers import shown
from groundrule.data.contradictions import contradictions
from groundrule.data.pair_layouts import pair_fields
from groundrule.data.preferences import PreferencePair, Ranking
from groundrule.errors import DataError

logger = logging.getLogger(__name__)


def read_rankings(path: str | Path) -> list[Ranking]:
    """All preferences of a file, pairs as rankings of two. What is wrong raises `DataError` with line and field."""
    return [ranking for _, ranking in numbered_rankings(path)]


def read_pairs(path: str | Path) -> list[PreferencePair]:
    """The pairs of all preferences of a file. Contradictions are named in a warning and left in."""
    pairs = [pair for ranking in read_rankings(path) for pair in ranking.pairs()]
    if found := contradictions(pairs):
        logger.warning("%s: %d contradictions, such as %s", path, len(found), found[0])
    return pairs


def numbered_rankings(path: str | Path) -> Iterator[tuple[int, Ranking]]:
    """The preferences of a file with their line numbers."""
    is_empty = True
    for line, record in jsonl.read(path):
        is_empty = False
        yield line, ranking_from(record, path=path, line=line)
    if is_empty:
        raise DataError("holds no preferences; write one record a line", path=path)


def write_rankings(path: str | Path, rankings: Iterable[Ranking]) -> None:
    """Replace the file by these rankings, all or nothing."""
    jsonl.write(path, map(ranking_record, rankings))


def append_ranking(path: str | Path, ranking: Ranking) -> None:
    """Add one ranking at the end of the file."""
    jsonl.append(path, ranking_record(ranking))


def write_pairs(path: str | Path, pairs: Iterable[PreferencePair]) -> None:
    """Replace the file by these pairs in the conversational layout that preference trainers read."""
    jsonl.write(path, map(pair_record, pairs))


def ranking_record(ranking: Ranking) -> dict[str, Any]:
    """The JSON object of one line, without what has its default. Reading it gives an equal ranking."""
    return ranking.model_dump(mode="json", exclude_defaults=True)


def pair_record(pair: PreferencePair) -> dict[str, Any]:
    """The pair with `prompt`, `chosen` and `rejected` as lists of messages. Scores become the margin."""
    record = pair.model_dump(mode="json", exclude_defaults=True)
    sides = {"chosen": pair.chosen.messages, "rejected": pair.rejected.messages}
    ids = {"chosen_id": pair.chosen.id, "rejected_id": pair.rejected.id}
    return {
        "prompt": pair.prompt,
        **sides,
        **ids,
        **{k: v for k, v in record.items() if k not in ("prompt", *sides)},
    }


def ranking_from(record: Any, *, path: str | Path, line: int) -> Ranking:
    """The ranking of one record. What is wrong raises `DataError` with file, line and field."""
    try:
        if not isinstance(record, dict):
            raise DataError(f"holds {shown(record)}; each line must be an object")
        fields = {name: value for name, value in record.items() if value is not None}
        if "answers" in fields or "order" in fields:
            _refuse_unknown(fields)
            return Ranking.model_validate(fields)
        if "chosen" in fields and "rejected" in fields:
            return PreferencePair.model_validate(pair_fields(fields)).ranking()
        raise DataError(_why_unknown(fields))
    except ValidationError as error:
        what, column = _first_fault(error)
    except DataError as error:
        what, column = error.message, error.column
    raise DataError(what, path=path, line=line, column=column)


def _refuse_unknown(fields: Mapping[str, Any]) -> None:
    for name in fields:
        if name not in Ranking.model_fields:
            near = difflib.get_close_matches(name, Ranking.model_fields, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise DataError(
                f"unknown key{hint}; put what is your own into 'metadata', the keys are: "
                + ", ".join(Ranking.model_fields),
                column=name,
            )


def _why_unknown(fields: Mapping[str, Any]) -> str:
    if "trajectories" in fields:
        return (
            "is a group of trajectories, not a preference; `groundrule prefs from-run` and "
            "`rankings_from_groups` make rankings of judged groups"
        )
    return (
        f"has the keys {', '.join(map(repr, fields)) or '(none)'}; a pair needs 'chosen' and 'rejected', "
        "a ranking 'prompt', 'answers' and 'order'"
    )


def _first_fault(error: ValidationError) -> tuple[str, int | str | None]:
    """What is wrong first, and the field as the file spells it."""
    first = error.errors(include_url=False)[0]
    ours = first.get("ctx", {}).get("error")
    names = [str(part) for part in first["loc"]]
    if isinstance(ours, DataError):
        names += [] if ours.column is None else [str(ours.column)]
        return ours.message, ".".join(names) or None
    if first["type"] == "missing":
        return "is missing; a ranking has 'prompt', 'answers' and 'order'", ".".join(names)
    remedy = next((_REMEDIES[name] for name in reversed(names) if name in _REMEDIES), "")
    return f"{shown(first['input'])} {first['msg'].removeprefix('Input ')}{remedy}", ".".join(names) or None


_REMEDIES = {
    "answers": '; write a list of {"id": ..., "text": ...} objects',
    "certainty": "; write the probability that the order is right, above 0.5 and up to 1, or turn the order round",
    "id": "; write a text, or leave it out",
    "margin": "; write a number from 0 up, or leave it out",
    "margins": "; write a list of numbers from 0 up, or leave it out",
    "metadata": "; write an object",
    "order": '; write the ids best first, ties in a list, such as ["b", ["a", "c"]]',
    "score": "; write a finite number, or leave it out",
    "tools": "; write a list of tools",
}
