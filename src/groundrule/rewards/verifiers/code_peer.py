"""Two interpreters that use each other's objects without sharing them.

Each side sends plain values as they are and refers to everything else by number. A reference becomes a `Remote` on
the other side: what is done with it is done over there, and only plain values come back. So the tests hold the
candidate's functions and objects, and nothing of theirs is in the candidate's reach.

The text of this file is sent into sandboxes: standard library only.
"""

from __future__ import annotations

import builtins
import json
import os

from groundrule.rewards.verifiers.code_values import decode, encode

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LONGEST_MESSAGE = 1000
ENDS_A_LOOP = ("StopIteration", "StopAsyncIteration", "GeneratorExit")


class Peer:
    """One end. `deeds` are the things that the other side may have done here, by name."""

    def __init__(self, read: Any, write: int, deeds: Mapping[str, Callable[..., Any]]) -> None:
        self._read, self._write, self._deeds = read, write, deeds
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._errors: dict[str, type[BaseException]] = {}
        self._token = ""
        self.may_refer: Callable[[Any], bool] = lambda value: True
        self.not_sent: str | None = None
        """What could not be passed to the other side, if anything could not."""
        self.remarks: dict[str, Any] = {}
        """Go along with every message; the grader reads them, the other side never sees them."""

    def serve(self) -> None:
        """Do what the other side asks for, until this process is killed."""
        while True:
            self.send(self._answer(self.receive()))

    def ask(self, deed: str, *arguments: Any) -> Any:
        """Have something done over there. What is raised there is raised here, as a built-in error."""
        self.send({"do": deed, "args": [encode(a, self._refer) for a in arguments]})
        while "do" in (message := self.receive()):
            self.send(self._answer(message))
        for argument, data in zip(arguments[1:], message.get("changed", ())):  # noqa: B905
            _update(argument, self.decode(data))
        if "raised" in message:
            raise self._error(message["raised"], deed)
        return self.decode(message["value"])

    def receive(self) -> dict[str, Any]:
        """The next message, whose token the next one that is sent carries back."""
        line = self._read.readline()
        if not line:
            os._exit(0)
        message: dict[str, Any] = json.loads(line)
        self._token = message.pop("id")
        return message

    def send(self, message: dict[str, Any]) -> None:
        rest = json.dumps({**message, **self.remarks, "id": self._token}).encode() + b"\n"
        while rest:
            rest = rest[os.write(self._write, rest) :]

    def decode(self, data: Any) -> Any:
        return decode(data, self._referred)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            arguments = [self.decode(data) for data in message["args"]]
            before = self._state(arguments) if message["do"] == "call" else None
            value = self._deeds[message["do"]](*arguments)
            answer: dict[str, Any] = {"value": encode(value, self._refer)}
            if before is not None and (after := self._state(arguments)) != before:
                answer["changed"] = after
            return answer
        except BaseException as error:
            return {"raised": _describe(error)}

    def _state(self, arguments: list[Any]) -> list[Any]:
        """What a call was given, as it stands now: (positional, by name)."""
        return [encode(a, self._refer) for a in arguments[1:]]

    # References

    def _refer(self, value: Any) -> list[Any]:
        if isinstance(value, Remote):
            return ["yours", value.__dict__["_number"]]
        if not self.may_refer(value):
            self.not_sent = f"an object of type {type(value).__name__} cannot be passed to the candidate"
            raise TypeError(self.not_sent)
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["error", [c.__name__ for c in value.__mro__]]
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return ["theirs", number]

    def _referred(self, data: list[Any]) -> Any:
        kind, what = data
        if kind == "yours":
            return self._objects[what]
        if kind == "theirs":
            return Remote(self, int(what))
        if kind == "error":
            return self._error_type(what)
        raise ValueError(f"{kind!r} is not a value")

    def _error_type(self, names: list[str]) -> type[BaseException]:
        """A built-in error, or a local stand-in for one of theirs, derived from its nearest built-in base."""
        known = getattr(builtins, names[0], None)
        if isinstance(known, type) and issubclass(known, BaseException):
            return known
        if names[0] not in self._errors:
            self._errors[names[0]] = type(names[0], (self._error_type([*names[1:], "Exception"]),), {})
        return self._errors[names[0]]

    def _error(self, raised: dict[str, Any], deed: str) -> BaseException:
        names = [str(name) for name in raised["types"]]
        if deed != "next" and set(names) & set(ENDS_A_LOOP):
            return RuntimeError(f"the candidate raised {names[0]}")  # Else it could end a loop of the tests.
        kind = self._error_type(names)
        try:
            return kind(str(raised["message"]))
        except TypeError:  # Some take more than a message.
            return kind.__new__(kind)


class Remote:
    """Something that lives on the other side.

    Only what a test of an object needs is forwarded. `in` goes through the items, and there is no arithmetic with
    plain values: an object whose difference to everything is 0 would pass for the right number. Two remote objects
    are compared by their own `__eq__`; a remote object and a plain value are never equal.
    """

    def __init__(self, peer: Peer, number: int) -> None:
        self.__dict__.update(_peer=peer, _number=number)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._peer.ask("call", self, list(args), kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._peer.ask("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.ask("setattr", self, name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._peer.ask("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._peer.ask("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._peer.ask("delitem", self, key)

    def __len__(self) -> int:
        return int(self._peer.ask("len", self))

    def __bool__(self) -> bool:
        return self._peer.ask("bool", self) is True

    def __iter__(self) -> Any:
        return self._peer.ask("iter", self)

    def __next__(self) -> Any:
        return self._peer.ask("next", self)

    def __str__(self) -> str:
        return str(self._peer.ask("str", self))

    def __repr__(self) -> str:
        return str(self._peer.ask("repr", self))

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, Remote) and self._peer.ask("isinstance", instance, self) is True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and self._peer.ask("eq", self, other) is True

    def __hash__(self) -> int:
        return int(self._number)


def _between_remotes(name: str) -> Callable[[Remote, Any], Any]:
    def operate(self: Remote, other: Any) -> Any:
        return self._peer.ask(name, self, other) if isinstance(other, Remote) else NotImplemented

    return operate


for _name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge"):
    setattr(Remote, f"__{_name}__", _between_remotes(_name))


def _update(old: Any, new: Any) -> None:
    """Make a change that was made over there to a list, dict or set that was passed."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) == len(new):
            for index, (before, after) in enumerate(zip(old, new)):  # noqa: B905
                if isinstance(before, (list, dict, set, bytearray)) and type(before) is type(after):
                    _update(before, after)
                else:
                    old[index] = after
        else:
            old[:] = new
    elif isinstance(old, bytearray) and isinstance(new, bytearray):
        old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        changed = {k: v for k, v in new.items() if k not in old or old[k] != v}
        for key in [k for k in old if k not in new]:
            del old[key]
        old.update(changed)
    elif isinstance(old, set) and isinstance(new, set):
        old.clear()
        old.update(new)


def _describe(error: BaseException) -> dict[str, Any]:
    try:
        message = str(error)[:LONGEST_MESSAGE]
    except BaseException:
        message = ""
    return {"types": [c.__name__ for c in type(error).__mro__], "message": message, "line": _line_of(error)}


def _line_of(error: BaseException) -> int | None:
    """The last line of the candidate's own code that the error passed through."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "solution.py":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
