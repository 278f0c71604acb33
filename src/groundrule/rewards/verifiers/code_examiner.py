"""The tests' side of a test program: it runs here, in a sandbox where the candidate's code has never been.

What the candidate defines are remote objects. So asserts, `==`, built-in functions and errors are the real ones,
and what the candidate has patched in its own interpreter decides nothing.
The text of this file is sent into sandboxes: standard library only.
"""

from __future__ import annotations

from groundrule.rewards.verifiers.code_peer import Peer

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from typing import Any

LONGEST_SHOWN = 300


def run(read: Any, write: int) -> None:
    """Run the statements in order and tell the grader which of the tests among them passed."""
    peer = Peer(read, write, {"call": lambda function, args, kwargs: function(*args, **kwargs)})
    peer.may_refer = callable
    task = peer.receive()
    scope: dict[str, Any] = {
        "__name__": "tests",
        **{name: peer.decode(data) for name, data in task["names"].items()},
    }
    results: list[bool] = []
    failures: list[str] = []
    peer.remarks = {"results": results, "failures": failures}
    broken = None
    for statement in task["statements"]:
        failure = _failure(statement, scope)
        broken = peer.not_sent or (failure if statement["kind"] == "import" else None)
        if statement["kind"] == "test" or failure is not None:
            results.append(failure is None)
        if failure is not None:
            failures.append(f"{statement['source'][:LONGEST_SHOWN]}: {failure}")
        if broken or (failure is not None and (statement["kind"] != "test" or task["stop"])):
            break
    peer.send({"done": True, "broken": broken})
    peer.receive()


def _failure(statement: dict[str, Any], scope: dict[str, Any]) -> str | None:
    """What went wrong in one statement; None when nothing did."""
    try:
        if "compared" not in statement:
            exec(compile(statement["source"], "tests", "exec"), scope)
            return None
        left, sign, right = statement["compared"]
        got, wanted = eval(left, scope), eval(right, scope)
        if eval(f"got {sign} wanted", {"got": got, "wanted": wanted}):
            return None
        return f"got {_shown(got)}, wanted {sign} {_shown(wanted)}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:LONGEST_SHOWN]}".removesuffix(": ")


def _shown(value: Any) -> str:
    try:
        return repr(value)[:LONGEST_SHOWN]
    except BaseException as error:
        return f"an object whose repr raises {type(error).__name__}"
