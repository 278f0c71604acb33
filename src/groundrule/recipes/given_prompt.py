"""A prompt that was learned, given to an agent whose weights are trained: shown to it, and not to its judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from groundrule._util.files import write_atomic
from groundrule.data.scenario import Scenario
from groundrule.errors import RunError
from groundrule.prompt_learning.playbook import LessonIds, read_playbook
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.prompt_learning.files import PROMPT_FILE, read_text
from groundrule.recipes.prompt_learning.material import only_spec


@dataclass(frozen=True)
class GivenPrompt:
    """What the agent reads, and what it is judged by."""

    text: str
    spec: str

    def keep_in(self, folder: Path) -> None:
        """Note it in the run folder; raises `RunError` where the run began under another prompt."""
        path = folder / PROMPT_FILE
        if path.exists() and path.read_text("utf-8").strip() != self.text:
            raise RunError(
                f"{folder} was begun under another prompt ({path}); a run keeps to one: use that, or another folder"
            )
        write_atomic(path, f"{self.text}\n")


def learned_prompt(config: TrainingConfig, scenarios: Sequence[Scenario]) -> GivenPrompt | None:
    """The file of `policy.playbook`; None without one.

    Raises `ConfigError` for a file that cannot be read or scenarios of several system prompts, `DataError` where the
    file stands below another system prompt than the scenarios'.
    """
    source = config.policy.playbook
    if source is None:
        return None
    spec = only_spec(config.policy.system, scenarios)
    playbook = read_playbook(read_text(source), spec, LessonIds(), source=source)
    return GivenPrompt(playbook.below(spec), spec)
