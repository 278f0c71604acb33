"""Unused memory of the C library goes back to the system."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from groundrule.models import heap

needs_glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or heap._glibc() is None, reason="no glibc with mallinfo2"
)


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def with_gaps(mib: int) -> list[ctypes.Array]:
    """So much memory in small pieces of the heap of which every hundredth stays: trimming the end gives nothing."""
    pieces = [ctypes.create_string_buffer(b"x" * 65_536) for _ in range(mib * 16)]
    return pieces[::100]


def given_back_mib() -> float:
    """With 64 MiB of which nearly all lies idle."""
    kept = with_gaps(64)
    before = resident_mib()
    heap.give_back_idle_memory()
    assert kept
    return before - resident_mib()


@needs_glibc
def test_what_lies_idle_between_pieces_in_use_is_given_back(monkeypatch):
    monkeypatch.setattr(heap, "IDLE_MIB", 16)

    assert given_back_mib() > 32


@needs_glibc
def test_a_little_is_left_alone(monkeypatch):
    monkeypatch.setattr(heap, "IDLE_MIB", 10_000)

    assert given_back_mib() < 8


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(heap, "_glibc", lambda: None)

    assert heap.give_back_idle_memory() is None
