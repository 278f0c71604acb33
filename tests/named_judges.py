"""Judges that tests register under a name: `judge_named("test", "named_judges:keyword")`."""

from __future__ import annotations

from typing import Any

from fakes import KeywordJudge
from groundrule.data import Score, TrajectoryGroup
from groundrule.data.messages import text_of
from groundrule.errors import LlmError
from groundrule.llm import ScriptedClient

WORTH = {"Within thirty days.": 0.9, "Ask someone else.": 0.1}


def keyword(name: str, params: dict[str, Any]) -> ScriptedClient:
    """Knows the answers of `WORTH`."""
    return ScriptedClient(KeywordJudge(WORTH))


def lister(name: str, params: dict[str, Any]) -> ScriptedClient:
    """Finds one demand in every system prompt."""
    demand = {"id": "c1", "text": "promises nothing", "kind": "avoid", "weight": 2, "veto": True}
    return ScriptedClient(lambda request: {"criteria": [demand]})


def down(name: str, params: dict[str, Any]) -> ScriptedClient:
    """Never answers."""
    return ScriptedClient(lambda request: LlmError("the judge is down"))


def longest(name: str, params: dict[str, Any]) -> LongestIsBest:
    """A scorer that compares nothing and calls nothing."""
    return LongestIsBest()


class LongestIsBest:
    """Scores an answer by its number of characters, in hundreds."""

    def __init__(self) -> None:
        self.groups = 0

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        self.groups += 1
        answers = [text_of(member.messages()[-1]["content"]) for member in group]
        return [Score(value=len(answer) / 100, explanation=f"{len(answer)} characters") for answer in answers]
