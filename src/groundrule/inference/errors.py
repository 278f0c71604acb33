"""Refusals in OpenAI's shape: what a client did wrong, and where in its request."""

from __future__ import annotations

from typing import Any

from groundrule.errors import GroundRuleError


class RequestError(GroundRuleError):
    """A request that is not answered; `param` is the place in its body, written as `messages[0].content`."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str | None = None,
        kind: str = "invalid_request_error",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code
        self.kind = kind
        self.headers = headers

    def body(self) -> dict[str, Any]:
        """The JSON that is sent."""
        return error_body(str(self), kind=self.kind, param=self.param, code=self.code)


def error_body(
    message: str, *, kind: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def place_of(steps: tuple[int | str, ...]) -> str:
    """`("messages", 0, "role")` as `messages[0].role`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")
