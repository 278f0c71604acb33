"""The chain from principles to a better policy, with the tiny model, a scripted critic and a judge of short answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from constitutions import REVISION
from groundrule._util import jsonl
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.records import read_groups
from groundrule.errors import BudgetError, ConfigError, RunError, TrainingError
from groundrule.llm import registry
from groundrule.recipes import sft
from groundrule.recipes.constitution.chain import run_constitution
from groundrule.recipes.constitution.config import ConstitutionalConfig
from groundrule.rewards.neutral import neutral
from tiny import tiny_model
from tiny_training import tiny_chain, use_tiny_model, write_rule, write_scenarios

STAGES = (
    "answers",
    "revisions",
    "sft",
    "samples",
    "preferences",
    "rankings",
    "reward-model",
    "ppo",
    "dpo",
    "evaluation",
)


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_rule(tmp_path_factory.mktemp("rule"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_model(patch)
        patch.setattr(sft, "load_model", lambda name, *, device=None: tiny_model())
        patch.setattr(registry, "_TARGETS", {**registry._TARGETS, "test": "constitutions:named"})
        yield write_scenarios(tmp_path_factory.mktemp("set") / "scenarios.jsonl")


def chain(folder: Path, source: Path, rule: str, **sections: dict[str, Any] | None) -> ConstitutionalConfig:
    """A chain that takes seconds; a section that is None is left out."""
    defaults: dict[str, Any] = {
        "scenarios": {"source": str(source)},
        "constitution": {"critic": "test/critic", "judge": "test/judge"},
        "revisions": {"keep": "all", "exemplars": 0},
        "sft": {"lora": {"rank": 2}},
        "preferences": {"answers": 3, "held_out": 1},
        "reward_model": {"lora": {"rank": 2}},
        "ppo": {"steps": 1, "groups_per_step": 2, "group_size": 2, "lora": {"rank": 2}},
        "dpo": {"lora": {"rank": 2}, "pairs_per_step": 4},
        "evaluation": {"judges": [rule], "attempts": 1},
        "run": {"folder": str(folder)},
    }
    return tiny_chain(ConstitutionalConfig, defaults, sections)


def run(config: ConstitutionalConfig, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """What the stages gave, and what was reported."""
    lines: list[str] = []
    return asyncio.run(run_constitution(config, report=lines.append, **more)), lines


@pytest.fixture(scope="module")
def whole(source: Path, rule: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A chain that ran through. Read it only."""
    folder = tmp_path_factory.mktemp("whole") / "chain"
    return folder, run(chain(folder, source, rule))[0]


def test_every_stage_leaves_a_file_with_what_it_gave(whole: Any) -> None:
    folder, results = whole
    places = {n: folder / "rlhf" if n in STAGES[5:9] else folder for n in STAGES}

    assert tuple(results) == STAGES
    assert {n: json.loads((p / f"{n}.json").read_text())["result"] for n, p in places.items()} == results


def test_revisions_are_conversations_that_the_warm_up_reads(whole: Any) -> None:
    folder, results = whole
    members = [member for group in read_groups(folder / "revisions.jsonl") for member in group]

    assert {key: results["revisions"][key] for key in ("prompts", "rounds", "revisions", "rows")} == {
        "prompts": 4,
        "rounds": 8,
        "revisions": 8,
        "rows": 8,
    }
    assert {m.messages()[-1]["content"] for m in members} == {REVISION}
    assert [m.metadata["round"] for m in members] == [1, 2] * 4
    assert members[1].metadata["critiques"] == "Too long.\n\nToo long."
    assert results["sft"]["examples"] == 8


def test_preferences_are_rankings_by_the_constitution(whole: Any) -> None:
    folder, results = whole
    rankings = read_rankings(folder / "preferences.jsonl")

    assert len(rankings) == results["preferences"]["comparisons"] > 0
    assert {(r.source, r.annotator) for r in rankings} == {("constitution", "judge")}
    for ranking in rankings:
        [pair] = ranking.pairs() or [None]
        if pair is not None:
            assert len(neutral(pair.chosen.text)) < len(neutral(pair.rejected.text))  # As it was shown.
            assert ranking.certainty == pytest.approx(max(ranking.metadata["p"], 1 - ranking.metadata["p"]))
    counted = sum(row["comparisons"] for row in results["preferences"]["principles"].values())
    assert (counted, results["preferences"]["sampled"]) == (len(rankings), 0.0)


def test_what_learns_begins_as_the_revised_model(whole: Any) -> None:
    folder, _ = whole
    config = json.loads((folder / "rlhf" / "ppo" / "config.json").read_text())

    assert config["policy"]["base_model"] == str(folder / "sft")


def test_all_are_compared_with_the_model_that_the_chain_began_with(whole: Any, rule: str) -> None:
    folder, results = whole
    found = results["evaluation"]["policies"]

    assert list(found) == ["revised", "ppo", "dpo"]
    assert {name: row["role"] for name, row in found["dpo"]["judges"].items()} == {
        rule: "no part in the training",
        "constitution/customer-support": "made the preferences",
        f"local/reward-model/{folder}/rlhf/reward-model": "PPO was trained on it",
    }


def test_what_is_done_is_not_done_again(whole: Any, source: Path, rule: str) -> None:
    folder, results = whole
    again, lines = run(chain(folder, source, rule))

    assert again == results
    assert [line.partition(" (")[0] for line in lines] == [f"{name}: done" for name in STAGES]


def test_another_setting_of_a_stage_that_is_done_is_refused_by_name(
    whole: Any, source: Path, rule: str
) -> None:
    with pytest.raises(
        RunError,
        match=r"revisions.json was made with revisions.rounds = 2.*says 3;.*"
        r"\(sft.json, samples.json, preferences.json, evaluation.json, sft/, rlhf/, evaluation/\)",
    ):
        run(chain(whole[0], source, rule, revisions={"rounds": 3}))


def test_until_stops_after_a_stage_and_an_unknown_one_is_refused(
    source: Path, rule: str, tmp_path: Path
) -> None:
    config = chain(tmp_path / "chain", source, rule, ppo=None)

    assert list(run(config, until="revisions")[0]) == ["answers", "revisions"]
    with pytest.raises(
        ConfigError, match=r"this chain has no stage 'ppo'; its stages are answers, .*, dpo, eval"
    ):
        run(config, until="ppo")


def test_revisions_that_were_interrupted_go_on_behind_the_last_finished_prompt(
    source: Path, rule: str, tmp_path: Path
) -> None:
    folder = tmp_path / "chain"
    with pytest.raises(BudgetError, match=r"raise \[budget\] and start the same command again"):
        run(chain(folder, source, rule, budget={"calls": 10}), until="revisions")
    finished = [r["scenario_id"] for _, r in jsonl.read(folder / "revision-log.jsonl")]
    results, _ = run(chain(folder, source, rule, budget={"calls": 18}), until="revisions")

    assert 0 < len(finished) < 4
    assert results["revisions"]["rows"] == 8
    assert len(list(jsonl.read(folder / "revision-log.jsonl"))) == 4


def test_a_critic_that_writes_nothing_ends_the_chain_with_the_reason(
    source: Path, rule: str, tmp_path: Path
) -> None:
    config = chain(tmp_path / "chain", source, rule, constitution={"critic": "test/silent"})
    with pytest.raises(TrainingError, match=r"test/silent wrote no revision of 4 answers .*'empty': 8"):
        run(config, until="revisions")


def test_other_preferences_can_be_learned_from_beside_these(
    whole: Any, source: Path, rule: str, tmp_path: Path
) -> None:
    given = read_rankings(whole[0] / "preferences.jsonl")[:2]
    write_rankings(tmp_path / "people.jsonl", [r.model_copy(update={"source": "human"}) for r in given])
    config = chain(tmp_path / "chain", source, rule, preferences={"also": str(tmp_path / "people.jsonl")})
    results, _ = run(config, until="preferences")

    sources = [r.source for r in read_rankings(tmp_path / "chain" / "preferences.jsonl")]
    assert (results["preferences"]["others"], sources[-2:]) == (2, ["human", "human"])


def test_a_constitution_that_cannot_be_used_is_said_before_anything_is_loaded(
    source: Path, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="'suport' cannot be read"):
        run(chain(tmp_path / "chain", source, rule, constitution={"file": "suport"}))
    assert not (tmp_path / "chain").exists()


def test_a_chain_without_anything_that_learns_is_refused(source: Path, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither \[ppo\] nor \[dpo\] is there"):
        chain(tmp_path, source, rule, ppo=None, dpo=None)


def test_the_policy_criticises_itself_unless_another_is_named() -> None:
    config = ConstitutionalConfig.model_validate({"dpo": {}})
    assert (config.critic, config.judge) == ("local/smollm2-135m", "local/smollm2-135m")
