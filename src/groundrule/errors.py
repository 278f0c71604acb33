"""Every error that GroundRule raises on purpose, in one tree.

    GroundRuleError
    |-- ConfigError            a setting that cannot work                (also ValueError)
    |-- DataError              a file or record that cannot be read      (also ValueError)
    |-- RunError               a run folder that cannot be used
    |   `-- CheckpointError    a checkpoint that is missing, cut or foreign
    |-- GatherError            too many rollouts failed; carries what was finished
    |-- JudgeError             a judge gave no usable scores
    |   `-- JudgeReplyError    its reply breaks the wire format; has a `kind`   (also ValueError)
    |-- LlmError               a chat endpoint did not answer
    |   |-- ProviderError      it answered with an HTTP error; has a `status`
    |   |-- DeadlineError      no answer before the deadline               (also TimeoutError)
    |   `-- BudgetError        the spending limit was reached before the call
    |-- ModelError             weights or a tokenizer cannot be had or used
    `-- TrainingError          scored groups that cannot be trained on

Messages name the value, the place and the remedy. All errors can be pickled, so they survive
worker processes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

ReplyErrorKind = Literal[
    "invalid_json",
    "missing_ids",
    "unknown_ids",
    "duplicate_ids",
    "missing_score",
    "wrong_type",
    "non_finite",
    "out_of_range",
    "ambiguous",
    "truncated",
    "prompt_truncated",
    "refusal",
    "empty",
]


class GroundRuleError(Exception):
    """Base of every error raised on purpose by this library."""


class ConfigError(GroundRuleError, ValueError):
    """A setting that cannot work."""


class DataError(GroundRuleError, ValueError):
    """A file or record that cannot be read; says where."""

    def __init__(
        self,
        message: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        column: int | str | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else str(path)
        self.line = line
        self.column = column
        super().__init__(f"{self.place}: {message}" if self.place else message)

    @property
    def place(self) -> str:
        """`file, line 3, column 7`, as much of it as is known."""
        parts = [self.path] if self.path else []
        if self.line is not None:
            parts.append(f"line {self.line}")
        if self.column is not None:
            parts.append(f"column {self.column}")
        return ", ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_data_error, (type(self), self.message, self.path, self.line, self.column))


def _data_error(
    kind: type[DataError], message: str, path: str | None, line: int | None, column: int | str | None
) -> DataError:
    return kind(message, path=path, line=line, column=column)


class RunError(GroundRuleError):
    """A run folder that cannot be used."""


class CheckpointError(RunError):
    """A checkpoint that is missing, cut short or not ours."""


class GatherError(GroundRuleError):
    """More rollouts failed than allowed. `groups` and `exceptions` hold what was finished."""

    def __init__(
        self, message: str, *, groups: list[Any] | None = None, exceptions: list[Any] | None = None
    ) -> None:
        super().__init__(message)
        self.groups = groups or []
        self.exceptions = exceptions or []


class JudgeError(GroundRuleError):
    """A judge gave no usable scores."""


class JudgeReplyError(JudgeError, ValueError):
    """A judge's reply breaks the wire format. `kind` says how; `detail` holds the offending values."""

    def __init__(self, kind: ReplyErrorKind, message: str, *, detail: list[str] | None = None) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind: ReplyErrorKind = kind
        self.message = message
        self.detail = detail or []

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reply_error, (self.kind, self.message, self.detail))


def _reply_error(kind: ReplyErrorKind, message: str, detail: list[str]) -> JudgeReplyError:
    return JudgeReplyError(kind, message, detail=detail)


class LlmError(GroundRuleError):
    """A chat endpoint did not give an answer."""


class ProviderError(LlmError):
    """The endpoint answered with an HTTP error."""

    def __init__(
        self, message: str, *, status: int, code: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        return (_provider_error, (str(self), self.status, self.code, self.retry_after_s))


def _provider_error(
    message: str, status: int, code: str | None, retry_after_s: float | None
) -> ProviderError:
    return ProviderError(message, status=status, code=code, retry_after_s=retry_after_s)


class DeadlineError(LlmError, TimeoutError):
    """No answer before the deadline."""


class BudgetError(LlmError):
    """The spending limit was reached; the call was not made."""


class ModelError(GroundRuleError):
    """Weights or a tokenizer cannot be had or used."""


class QueueFullError(ModelError):
    """More requests wait for the local model than it was told to keep; ask again later."""


class TrainingError(GroundRuleError):
    """Scored groups that cannot be trained on."""
