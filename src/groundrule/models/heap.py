"""Memory that the C library keeps though nobody uses it.

A graph's tensors have many sizes, and what glibc's heap gets back from one graph has gaps of other sizes than the next
one asks for. So a process grows far beyond what it ever uses at once: by 1.5 GiB for a 135M model. Giving the unused
pages back costs the time of touching fresh ones later, which is why it is done only where much lies idle.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

IDLE_MIB = 1024
"""Unused memory that is left alone."""


class _Heap(ctypes.Structure):
    """What `mallinfo2` tells, in bytes; see its manual page."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


def give_back_idle_memory() -> None:
    """Return unused pages to the system where much lies idle. Without glibc it does nothing."""
    library = _glibc()
    if library is not None and library.mallinfo2().fordblks > IDLE_MIB * 2**20:
        library.malloc_trim(0)


@functools.cache
def _glibc() -> Any:
    """None on other systems, and with a glibc before 2.33."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL("libc.so.6")
        library.mallinfo2.restype = _Heap
        library.malloc_trim.argtypes = [ctypes.c_size_t]
    except (OSError, AttributeError):
        return None
    return library
