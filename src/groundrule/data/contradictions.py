"""Preferences of one annotator that cannot all be true: a pair in both directions, or a > b > c > a."""

from __future__ import annotations

import graphlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groundrule.data.answers import Answer, shown
from groundrule.data.messages import Message, text_of
from groundrule.data.preferences import PreferencePair

Graph = Mapping[str, Mapping[str, int]]
"""Answer -> each answer that it beats -> the position of the pair that says so."""


@dataclass(frozen=True)
class Contradiction:
    """Each of `answers` beats the next, and the last beats the first."""

    prompt: list[Message]
    annotator: str | None
    answers: tuple[Answer, ...]
    pairs: tuple[int, ...]
    """Positions of the pairs that say so, in the sequence that was searched."""

    @property
    def is_opposite(self) -> bool:
        """Whether it is one pair in both directions."""
        return len(self.answers) == 2

    def __str__(self) -> str:
        who = "an annotator without a name" if self.annotator is None else f"annotator {self.annotator!r}"
        chain = " > ".join(f"{a.id} {shown(a.text)}" for a in (*self.answers, self.answers[0]))
        return f"{who} on {shown(text_of(self.prompt[-1].get('content')))}: {chain}"


def contradictions(pairs: Sequence[PreferencePair]) -> list[Contradiction]:
    """For each prompt and annotator: every pair that stands in both directions, and one shortest longer cycle.

    Pairs without an annotator count as one annotator's. An answer is known by its content, not by its id.
    """
    graphs: dict[tuple[str, str | None], dict[str, dict[str, int]]] = {}
    for position, pair in enumerate(pairs):
        graph = graphs.setdefault((pair.prompt_key, pair.annotator), {})
        graph.setdefault(pair.chosen.key, {}).setdefault(pair.rejected.key, position)
    return [_told(steps, pairs) for graph in graphs.values() if _has_cycle(graph) for steps in _cycles(graph)]


def _has_cycle(graph: Graph) -> bool:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


def _cycles(graph: Graph) -> list[list[int]]:
    """The positions of the pairs of each cycle, in its order."""
    edges = [(a, b) for a, beaten in graph.items() for b in beaten]
    opposite = [
        [graph[a][b], graph[b][a]] for a, b in edges if a in graph.get(b, {}) and graph[a][b] < graph[b][a]
    ]
    longer: list[int] = []
    for a, b in edges:
        way = _way(graph, b, a)
        if way and (not longer or len(way) + 1 < len(longer)):
            longer = [graph[a][b], *way]
        if len(longer) == 3:
            break  # None is shorter.
    return [*opposite, *([longer] if longer else [])]


def _way(graph: Graph, start: str, end: str) -> list[int] | None:
    """The shortest chain of pairs from one answer down to another that is not the direct pair."""
    reached: dict[str, list[int]] = {start: []}
    waiting = deque([start])
    while waiting:
        answer = waiting.popleft()
        for beaten, position in graph.get(answer, {}).items():
            if answer == start and beaten == end:
                continue
            if beaten == end:
                return [*reached[answer], position]
            if beaten not in reached:
                reached[beaten] = [*reached[answer], position]
                waiting.append(beaten)
    return None


def _told(steps: Sequence[int], pairs: Sequence[PreferencePair]) -> Contradiction:
    first = pairs[steps[0]]
    return Contradiction(first.prompt, first.annotator, tuple(pairs[i].chosen for i in steps), tuple(steps))
