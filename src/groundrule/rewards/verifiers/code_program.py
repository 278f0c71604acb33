"""The candidate's side of an input-output test: its code as the main program, on real pipes.

The text of this file is sent into sandboxes: standard library only.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import types

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from typing import Any


def run(read: Any, write: int) -> None:
    """Run the code as `__main__`; its output and exit code are the verdict's business, not ours."""
    message = json.loads(read.readline())
    read.close()
    os.close(write)
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # Else made by `site`, which a sandbox leaves out.
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = ["solution.py"]
    exec(compile(message["code"], "solution.py", "exec"), main.__dict__)
