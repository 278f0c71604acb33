"""Rankings as a reward model reads them: the tokens of every answer, and which is better than which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from groundrule.algorithms.ranking_loss import Comparison
from groundrule.data.preferences import Ranking
from groundrule.errors import TrainingError
from groundrule.models.reward_model import RewardModel
from groundrule.models.tree import Path, token_tree


@dataclass(frozen=True)
class ReadRanking:
    """One ranking: one batch element, whose answers are computed together."""

    prompt: str
    """Equal for rankings of the same prompt."""
    paths: tuple[Path, ...]
    lengths: tuple[int, ...]
    """Characters of what the agent wrote, answer by answer."""
    tiers: tuple[tuple[int, ...], ...]
    comparisons: tuple[Comparison, ...]
    """All pairs of different tiers; none where every answer is tied."""
    ties: int
    certainty: float
    tokens: int
    """Unique ones: the prompt is counted once."""


def read_rankings(rankings: Sequence[Ranking], reward_model: RewardModel) -> list[ReadRanking]:
    """Raises `TrainingError` for an answer that the model cannot read whole."""
    return [_read(number, ranking, reward_model) for number, ranking in enumerate(rankings)]


def _read(number: int, ranking: Ranking, reward_model: RewardModel) -> ReadRanking:
    paths: list[Path] = []
    for answer in ranking.answers:
        path = reward_model.path([*ranking.prompt, *answer.messages], ranking.tools)
        if isinstance(path, str):
            raise TrainingError(f"ranking {number}, answer {answer.id!r}: {path}; or leave the answer out")
        paths.append(path)
    place = {answer.id: i for i, answer in enumerate(ranking.answers)}
    return ReadRanking(
        prompt=ranking.prompt_key,
        paths=tuple(paths),
        lengths=tuple(len(answer.text) for answer in ranking.answers),
        tiers=tuple(map(tuple, ranking.tiers)),
        comparisons=tuple(
            Comparison(place[pair.chosen.id], place[pair.rejected.id], pair.margin)
            for pair in ranking.pairs()
        ),
        ties=ranking.ties,
        certainty=ranking.certainty,
        tokens=token_tree(paths).unique_tokens,
    )


def bundles(rankings: Sequence[ReadRanking], tokens_at_once: int) -> Iterator[list[ReadRanking]]:
    """The rankings in order, as many together as fit; one that is too large is alone. None is taken apart."""
    bundle: list[ReadRanking] = []
    for ranking in rankings:
        if bundle and sum(r.tokens for r in bundle) + ranking.tokens > tokens_at_once:
            yield bundle
            bundle = []
        bundle.append(ranking)
    if bundle:
        yield bundle
