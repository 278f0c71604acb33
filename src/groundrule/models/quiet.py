"""Loading and converting without transformers' own progress bars: ours says what is going on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers draws no bars."""
    from transformers.utils import logging as noise

    shown = noise.is_progress_bar_enabled()
    noise.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            noise.enable_progress_bar()
