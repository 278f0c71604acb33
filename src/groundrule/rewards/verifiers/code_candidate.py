"""The candidate's side of a function test: import its code, then do what the tests ask for.

Nothing here can be trusted once the candidate's code has run, and nothing here knows what is expected.
The text of this file is sent into sandboxes: standard library only.
"""

from __future__ import annotations

import builtins
import operator
import sys
import types

from groundrule.rewards.verifiers.code_peer import Peer

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

module = types.ModuleType("solution")


def run(read: Any, write: int) -> None:
    """Serve the tests."""
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # Else made by `site`, which a sandbox leaves out.
    sys.modules["solution"] = module
    deeds: dict[str, Callable[..., Any]] = {
        "load": load,
        "names": names,
        "call_named": call_named,
        "call": lambda function, args, kwargs: function(*args, **kwargs),
        "bool": bool,
        "getattr": getattr,
        "isinstance": isinstance,
        "iter": iter,
        "len": len,
        "next": next,
        "repr": repr,
        "setattr": setattr,
        "str": str,
    }
    operators = "add sub mul truediv lt le gt ge eq getitem setitem delitem".split()
    deeds.update({name: getattr(operator, name) for name in operators})
    Peer(read, write, deeds).serve()


def load(code: str) -> None:
    """Import the code as a module called `solution`, so that what its main guard keeps stays undone."""
    exec(compile(code, "solution.py", "exec"), module.__dict__)


def names(wanted: Sequence[str]) -> dict[str, Any]:
    """Those of these names that the module defines."""
    return {name: module.__dict__[name] for name in wanted if name in module.__dict__}


def call_named(path: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`f`, or `Class.method`: a class on the way is made without arguments."""
    found: Any = module
    for name in path.split("."):
        found = getattr(found() if isinstance(found, type) else found, name)
    return found(*args, **kwargs)
