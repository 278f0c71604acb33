"""What learning a prompt leaves in its run folder beside what every run has.

spec.txt                    the system prompt that answers are judged by
prompt.txt                  the best prompt so far: the spec, and the lessons below it; may be edited by hand
rounds/step-000003.json     what a round saw, asked, refused, tested and decided
rounds/absorbed.json        which lessons were dropped before the first round, and how that was tested
evaluations/...final.json   the final test
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.errors import ConfigError, RunError
from groundrule.prompt_learning.absorbed import Dropped
from groundrule.prompt_learning.playbook import read_playbook
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.versions import Version

PROMPT_FILE, SPEC_FILE = "prompt.txt", "spec.txt"
_ROUNDS = "rounds"


def keep_spec(folder: Path, spec: str) -> None:
    """Note the spec in the run folder; raises `RunError` where the run began under another one."""
    path = folder / SPEC_FILE
    if path.exists() and path.read_text("utf-8").strip() != spec.strip():
        raise RunError(
            f"{folder} was begun with another system prompt ({path}), by which everything so far was judged; use that "
            "one, or another folder"
        )
    write_atomic(path, f"{spec}\n")


def read_spec(folder: Path) -> str:
    """The spec of a run; raises `RunError` where none is noted."""
    path = folder / SPEC_FILE
    if not path.exists():
        raise RunError(f"{folder} has no {SPEC_FILE}; name a run of groundrule learn-prompt")
    return path.read_text("utf-8").rstrip("\n")


def write_prompt(folder: Path, learner: RoundLearner) -> None:
    """The best prompt so far, as a person would paste it."""
    write_atomic(folder / PROMPT_FILE, f"{learner.policy.system_prompt}\n")


def take_hand_edits(folder: Path, state: LearnerState, spec: str) -> bool:
    """Make the lessons of an edited prompt file a version that everything goes on from; whether there were any.

    Raises `DataError` for a file that cannot be read as a prompt.
    """
    path = folder / PROMPT_FILE
    head = state.pool.head
    if not path.exists() or path.read_text("utf-8").strip() == head.playbook.below(spec).strip():
        return False
    known = head.playbook
    edited = read_playbook(path.read_text("utf-8"), spec, state.ids, known=known, source=str(path))
    if edited == known:
        return False
    number = state.pool.next_number
    state.pool.only(
        Version(number, edited, parent=head.number, how="hand", round=state.round, gains=dict(head.gains))
    )
    state.parent, state.carried = number, []
    return True


def write_round(folder: Path, number: int, record: Mapping[str, Any]) -> None:
    """What happened in a round."""
    _write(round_path(folder, number), record)


def round_path(folder: Path, number: int) -> Path:
    """Where the record of a round stands."""
    return folder / _ROUNDS / f"step-{number:06d}.json"


def absorbed_path(folder: Path) -> Path:
    """Where it stands what was dropped before the first round."""
    return folder / _ROUNDS / "absorbed.json"


def write_absorbed(folder: Path, found: Dropped) -> None:
    """What was dropped, kept, and why."""
    _write(absorbed_path(folder), asdict(found))


def read_text(path: str) -> str:
    """A prompt file; raises `ConfigError` where it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _write(path: Path, record: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
