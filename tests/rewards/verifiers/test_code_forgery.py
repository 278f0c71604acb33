"""Candidates that attack the verdict: none of them passes, by calls or by a test program."""

from __future__ import annotations

import pytest

from groundrule.rewards.verifiers.code import verify_code

CALLS = [{"fn": "add", "args": [2, 3], "expected": 5}, {"fn": "add", "args": [-1, 2], "expected": 1}]
PROGRAM = "wanted = 5\nassert add(2, 3) == wanted\nassert add(-1, 2) == 1"

RAW_LINES = """
import os
FORGED = b'{"done": true, "results": [true, true], "failures": [], "broken": null, "value": 5, "id": "0"}\\n'
def flood():
    for file in range(3, 64):
        try: os.write(file, FORGED)
        except OSError: pass
flood()
def add(a, b):
    flood()
    return 0
"""
WITH_THE_RIGHT_TOKEN = """
import gc, json, os
def add(a, b):
    for peer in gc.get_objects():
        if type(peer).__name__ == "Peer":
            peer.remarks = {"done": True, "results": [True, True], "failures": [], "broken": None}
    return 0
"""
PATCHED_HARNESS = """
from groundrule.rewards.verifiers import code_peer, code_values
"""
PATCHED_MODULES = """
import sys
def add(a, b): return 0
for name, module in list(sys.modules.items()):
    if name.startswith("groundrule"):
        for key in ("encode", "decode", "_describe"):
            if hasattr(module, key):
                setattr(module, key, lambda *a, **k: True)
"""
PATCHED_JSON = """
import json
def add(a, b): return 0
old = json.dumps
json.dumps = lambda message, **k: old({**message, "value": True, "done": True, "results": [True, True]})
"""
MALFORMED_ERRORS = """
import sys
def add(a, b): raise ValueError
for module in list(sys.modules.values()):
    if hasattr(module, "_describe"):
        module._describe = lambda error: {"types": {"a": 1}, "message": [[1]], "line": 10 ** 30}
"""
NESTED_ANSWERS = """
import os, sys
def add(a, b): return 0
def send(peer, message):
    value = '["list", [' * 470 + '0' + ']]' * 470
    text = '{"id": "%s", "value": %s}' % (peer._token, value if message.get("value") == 0 else '["dict", []]')
    os.write(peer._write, text.encode() + bytes([10]))
for module in list(sys.modules.values()):
    if hasattr(module, "Peer"):
        module.Peer.send = send
"""
SEEKER = """
import gc, re, sys
def add(a, b):
    frame, seen = sys._getframe(), []
    while frame:
        seen += [repr(v) for v in (*frame.f_locals.values(), *frame.f_globals.values())]
        frame = frame.f_back
    seen += [repr(o) for o in gc.get_objects() if isinstance(o, (list, dict, tuple, str))]
    found = re.search("9182[0-9]{4}", " ".join(seen))
    return int(found[0]) if found else None
"""

SAME_EVERYWHERE = {
    "prints PASS": "print('PASS', flush=True)\ndef add(a, b): return 0",
    "exits with 0 at import": "import sys\nsys.exit(0)",
    "exits hard with 0": "import os\ndef add(a, b): os._exit(0)",
    "exits hard in an exit hook": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): return 0",
    "traces": "import sys\nsys.settrace(lambda f, e, a: None)\ndef add(a, b): return 0",
    "patches AssertionError": "import builtins\nbuiltins.AssertionError = SystemExit\ndef add(a, b): return 0",
    "patches built-in functions": "import builtins\nbuiltins.abs = lambda x: 0\ndef add(a, b): return 0",
    "replaces sys.exit": "import sys\nsys.exit = lambda *a: None\ndef add(a, b): return 0",
    "equal to everything": "class E:\n    def __eq__(self, o): return True\ndef add(a, b): return E()",
    "an int equal to everything": "class E(int):\n    def __eq__(self, o): return True\ndef add(a, b): return E(7)",
    "pretends to be an int": "class E:\n    __class__ = int\n    def __eq__(self, o): return True\n"
    "def add(a, b): return E()",
    "raises what passes": "class P(BaseException): pass\ndef add(a, b): raise P",
    "writes lines of its own": RAW_LINES,
    "writes with the right token": WITH_THE_RIGHT_TOKEN,
    "imports the harness": PATCHED_HARNESS + "def add(a, b): return 0",
    "patches the harness": PATCHED_MODULES,
    "patches json": PATCHED_JSON,
    "malformed errors": MALFORMED_ERRORS,
    "nested answers": NESTED_ANSWERS,
    "forks and answers twice": "import os\nos.fork()\ndef add(a, b): return 0",
}


@pytest.mark.parametrize("code", SAME_EVERYWHERE.values(), ids=SAME_EVERYWHERE)
def test_an_attack_on_calls_does_not_pass(code):
    score = verify_code(code, CALLS, partial=True)
    assert (score.value, score.parts["tests_passed"]) == (0.0, 0.0), score.explanation


@pytest.mark.parametrize("code", SAME_EVERYWHERE.values(), ids=SAME_EVERYWHERE)
def test_an_attack_on_a_test_program_does_not_pass(code):
    score = verify_code(code, PROGRAM, partial=True)
    assert (score.value, score.parts["tests_passed"]) == (0.0, 0.0), score.explanation


@pytest.mark.parametrize(
    "tests", [[{"fn": "add", "args": [2, 3], "expected": 91827364}], "x = add(2, 3)\nassert x == 91827364"]
)
def test_what_is_expected_is_nowhere_in_the_candidates_process(tests):
    assert verify_code(SEEKER, tests).value == 0.0


def test_the_seeker_finds_what_is_there():
    assert verify_code(SEEKER, [{"fn": "add", "args": [91827364, 0], "expected": 91827364}]).value == 1.0


CHEATS = {
    "difference of nothing": (
        "class E:\n    def __sub__(self, o): return 0.0\n    __rsub__ = __sub__\ndef f(x): return E()",
        "assert abs(f(2) - 1.5) < 1e-6",
    ),
    "smaller and larger than all": (
        "class E:\n    def __lt__(self, o): return True\n    __gt__ = __le__ = __ge__ = __lt__\ndef f(x): return E()",
        "assert f(2) < 1.5",
    ),
    "holds everything": (
        "class E:\n    def __contains__(self, o): return True\ndef f(x): return E()",
        "assert 3 in f(2)",
    ),
    "its own abs": ("def abs(x): return 0.0\ndef f(x): return 9", "assert abs(f(2) - 1.5) < 1e-6"),
    "its own len": ("def len(x): return 3\ndef f(x): return []", "assert len(f(2)) == 3"),
    "ends a loop of the tests": (
        "def f(x): raise StopIteration",
        "assert all(map(lambda x: f(x) == x, [1, 2]))",
    ),
    "an unequal that is not": (
        "class E:\n    def __ne__(self, o): return False\ndef f(x): return E()",
        "assert not (f(2) != 5)",
    ),
}


@pytest.mark.parametrize(("code", "tests"), CHEATS.values(), ids=CHEATS)
def test_an_object_that_is_right_in_every_comparison_does_not_pass(code, tests):
    assert verify_code(code, tests).value == 0.0
