"""What every script has that runs the same thing with several seeds and keeps a result of each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def seeds_parser(description: str | None, name: str, seeds: Sequence[int]) -> argparse.ArgumentParser:
    """With `--seeds`, `--collect` for folders that are finished, and `--scratch` for those that are made."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(seeds))
    parser.add_argument("--collect", type=Path, nargs="+", help="finished folders")
    parser.add_argument("--scratch", type=Path, default=Path("runs/benchmarks") / name)
    return parser
