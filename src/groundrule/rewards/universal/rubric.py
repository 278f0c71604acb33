"""A rubric: single criteria by which answers to one kind of task are judged, in a TOML file that a person may edit.

spec_sha256 = "..."          # of the system prompt it was made from; leave it out where there is none
content_sha256 = "..."       # frozen: what follows is what was looked at

[[criteria]]
id = "dose"
text = "states the dose per kilogram"
kind = "evidence"            # or "judgement", or "programmatic" with a check
weight = 2.0
essential = true             # unmet: 0

[[criteria]]
id = "short"
text = "has at most 80 words"
kind = "programmatic"
check = "my_checks.py:at_most_80_words"

[[criteria]]
id = "other-drug"
text = "recommends aspirin"
pitfall = true               # met: 0
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from groundrule._util.files import write_atomic
from groundrule.errors import ConfigError, DataError
from groundrule.rewards.checklist.criteria import MOST, hash_of, toml_text
from groundrule.rewards.file_faults import Misplaced, each_id_once, located, syntax_fault

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Kind = Literal["programmatic", "evidence", "judgement"]

_HEADING = "Criteria by which answers are judged. After an edit: groundrule rubric check FILE --freeze"


class RubricCriterion(BaseModel):
    """One statement that is true of an answer, or is not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    text: Text
    kind: Kind = "evidence"
    """`evidence`: met only with words of the answer that show it. `judgement`: met without (absence, tone, order).
    `programmatic`: decided by `check`, and no judge is asked."""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    essential: bool = False
    """Where it is unmet, the answer is worth 0."""
    pitfall: bool = False
    """A fault: where it is met, the answer is worth 0, and where it is not, nothing is gained."""
    check: str | None = None
    """Of a programmatic criterion: a verifier by name or a function, see `universal.check`."""
    reference: str | int | float | list[str] | None = None
    """What the check compares with; the scenario's reference where it is left out."""

    @model_validator(mode="after")
    def _fits_together(self) -> RubricCriterion:
        if (self.kind == "programmatic") != (self.check is not None):
            raise ValueError('a check belongs to kind = "programmatic", and such a criterion needs one')
        if self.reference is not None and self.check is None:
            raise ValueError("a reference is what a check compares with; without a check it does nothing")
        if self.essential and self.pitfall:
            raise ValueError("a criterion is essential or a pitfall, not both")
        if self.check == "regex" and isinstance(self.reference, str):
            try:
                re.compile(self.reference)
            except re.error as error:
                raise ValueError(f"{self.reference!r} is no regular expression: {error}") from error
        return self


class Rubric(BaseModel):
    """Criteria, none of them twice, at least one of which can be gained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    criteria: tuple[RubricCriterion, ...] = Field(min_length=1, max_length=MOST)
    spec_sha256: str | None = None
    """Of the system prompt that it was made from; None: fits any."""
    scenario: str | None = None
    """The task that it was made for, in words; for the reader."""

    @model_validator(mode="after")
    def _ids_and_gains(self) -> Rubric:
        each_id_once("criteria", "criterion", (criterion.id for criterion in self.criteria))
        if all(criterion.pitfall for criterion in self.criteria):
            raise Misplaced(
                ("criteria", 0), "all criteria are pitfalls, so nothing can be gained; add one that can"
            )
        return self

    @cached_property
    def content_sha256(self) -> str:
        """Changes with every change of a criterion or of the spec, and with nothing else."""
        content = self.model_dump(mode="json", include={"criteria", "spec_sha256"})
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def fits(self, spec: str) -> bool:
        """False where it was made from another system prompt."""
        return self.spec_sha256 in (None, hash_of(spec))

    def __str__(self) -> str:
        return "\n".join(described(criterion) for criterion in self.criteria)

    def to_toml(self) -> str:
        """The file, frozen."""
        data = self.model_dump(mode="json", exclude_none=True)
        data["criteria"] = [
            {name: value for name, value in criterion.items() if value is not False}
            for criterion in data["criteria"]
        ]
        frozen = {**{k: v for k, v in data.items() if k != "criteria"}, "content_sha256": self.content_sha256}
        return toml_text(_HEADING, {**frozen, "criteria": data["criteria"]}, "criteria")

    def save(self, path: str | Path) -> None:
        """As TOML, with the hash of what is in it."""
        write_atomic(Path(path), self.to_toml())

    @classmethod
    def load(cls, path: str | Path, *, is_edited: bool = False) -> Rubric:
        """From a .toml file; raises `DataError` with the line of what is wrong.

        A file that was changed after it was frozen is refused unless `is_edited`.
        """
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the rubric {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from error
        return cls.parse(text, str(path), is_edited=is_edited)

    @classmethod
    def parse(cls, text: str, path: str = "rubric.toml", *, is_edited: bool = False) -> Rubric:
        """The same from the text of a file."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise syntax_fault(error, path) from error
        frozen = data.pop("content_sha256", None)
        try:
            rubric = cls.model_validate(data)
        except ValidationError as error:
            raise located(error, text, path, {"criteria": RubricCriterion, "": Rubric}) from error
        if frozen is not None and frozen != rubric.content_sha256 and not is_edited:
            raise DataError(
                "was changed after it was frozen; look at it, then run: groundrule rubric check FILE --freeze",
                path=path,
            )
        return rubric


def described(criterion: RubricCriterion) -> str:
    """One line about a criterion."""
    marks = [criterion.kind, f"weight {criterion.weight:g}"]
    marks += ["essential"] if criterion.essential else ["pitfall"] if criterion.pitfall else []
    marks += [f"check {criterion.check}"] if criterion.check else []
    return f"{criterion.id} [{', '.join(marks)}] {criterion.text}"
