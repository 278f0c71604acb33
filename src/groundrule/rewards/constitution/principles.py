"""A constitution: principles in a TOML file, each with what is asked by it, and how principles are drawn.

name = "shop"

[[principles]]
id = "grounded"
critique_request = "Where does the answer say what the passage does not?"
revision_request = "Take out what the passage does not say."
comparison_question = "Which answer keeps closer to the passage?"
weight = 2.0            # 1 unless said otherwise
tags = ["honest"]
"""

from __future__ import annotations

import difflib
import json
import random
import tomllib
from collections.abc import Iterable
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from groundrule._util.digest import digest
from groundrule._util.seed import derive
from groundrule.errors import ConfigError
from groundrule.rewards.file_faults import Misplaced, each_id_once, located, syntax_fault

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Principle(BaseModel):
    """One thing that answers should be, and the three ways of asking about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    critique_request: Text
    """What is asked of an answer: where does it fall short?"""
    revision_request: Text
    """What is asked for then: an answer that does not."""
    comparison_question: Text
    """Which of two answers is better by this principle?"""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """How often it is drawn, against the others."""
    tags: tuple[Text, ...] = ()


class Exemplar(BaseModel):
    """A critique and a revision as they should be written, shown before the model writes its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Text
    answer: Text
    principle: Text
    """The id of the principle whose requests are shown."""
    critique: Text
    revision: Text


class Constitution(BaseModel):
    """Principles, none of them twice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text = "constitution"
    description: str = ""
    principles: tuple[Principle, ...] = Field(min_length=1)
    exemplars: tuple[Exemplar, ...] = ()

    @model_validator(mode="after")
    def _ids_in_order(self) -> Constitution:
        each_id_once("principles", "principle", self.ids)
        for place, exemplar in enumerate(self.exemplars):
            if exemplar.principle not in self.ids:
                near = difflib.get_close_matches(exemplar.principle, self.ids, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the ids are {', '.join(self.ids)}"
                raise Misplaced(
                    ("exemplars", place, "principle"),
                    f"{exemplar.principle!r} is the id of no principle; {hint}",
                )
        return self

    @cached_property
    def content_hash(self) -> str:
        """Changes with every change of a principle or an exemplar, and with nothing else."""
        content = self.model_dump(mode="json", include={"principles", "exemplars"})
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return digest(text)

    def principle(self, name: str) -> Principle:
        """The principle with this id."""
        found = next((p for p in self.principles if p.id == name), None)
        if found is None:
            raise ConfigError(f"{self.name} has no principle {name!r}; it has {', '.join(self.ids)}")
        return found

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the principles, in order."""
        return tuple(p.id for p in self.principles)

    def with_tags(self, tags: Iterable[str]) -> Constitution:
        """The part of it that has one of these tags; all of it without tags."""
        wanted = list(tags)
        known = sorted({tag for p in self.principles for tag in p.tags})
        unknown = [tag for tag in wanted if tag not in known]
        if unknown:
            raise ConfigError(
                f"no principle of {self.name} has the tag {unknown[0]!r}; its tags are {', '.join(known) or 'none'}"
            )
        if not wanted:
            return self
        kept = tuple(p for p in self.principles if set(wanted) & set(p.tags))
        ids = {p.id for p in kept}
        examples = tuple(e for e in self.exemplars if e.principle in ids)
        return self.model_copy(update={"principles": kept, "exemplars": examples})

    def draw(self, count: int, *what: object, start: int = 0) -> list[Principle]:
        """Draws number `start` to `start + count - 1` for whatever `what` names; equal names, equal draws.

        By weight and without replacement: none is drawn twice before all were drawn once.
        """
        size = len(self.principles)
        numbers = range(start, start + count)
        decks = {n: self._deck(n, what) for n in {number // size for number in numbers}}
        return [decks[number // size][number % size] for number in numbers]

    def _deck(self, number: int, what: tuple[object, ...]) -> list[Principle]:
        """All principles in random order, the heavier sooner.

        The first to ring of exponential clocks whose rates are the weights: the same as drawing one after the other.
        """
        rng = random.Random(derive("principles", *what, number))
        rings = [rng.expovariate(p.weight) for p in self.principles]
        return [self.principles[i] for i in sorted(range(len(rings)), key=rings.__getitem__)]

    @classmethod
    def load(cls, name: str | Path) -> Constitution:
        """A ready one by its name, or one from a .toml file.

        Raises `DataError` with file and line for what is wrong in the file, `ConfigError` where there is none.
        """
        ready = ready_names()
        if name in ready:
            return cls._read(
                resources.files("groundrule.rewards.constitution")
                .joinpath("texts", f"{name}.toml")
                .read_text("utf-8"),
                f"{name}.toml",
            )
        path = Path(name)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            near = difflib.get_close_matches(str(name), ready, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"ready ones are {', '.join(ready)}"
            raise ConfigError(f"the constitution {str(name)!r} cannot be read ({why}); {hint}") from error
        return cls._read(text, str(path))

    @classmethod
    def _read(cls, text: str, path: str) -> Constitution:
        try:
            data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise syntax_fault(error, path) from error
        data.setdefault("name", Path(path).stem)
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise located(error, text, path, _KEYS) from error


_KEYS: dict[str, type[BaseModel]] = {"principles": Principle, "exemplars": Exemplar, "": Constitution}
"""What the tables of a file are."""


def ready_names() -> list[str]:
    """Constitutions that come with the library."""
    folder = resources.files("groundrule.rewards.constitution").joinpath("texts")
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )
