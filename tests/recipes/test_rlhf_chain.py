"""The chain from answers to a better policy, with the tiny model and a rule that likes short answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundrule._util import jsonl
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, RunError, TrainingError
from groundrule.recipes.rlhf import policy
from groundrule.recipes.rlhf.chain import STAGES, run_rlhf
from groundrule.recipes.rlhf.config import RlhfConfig
from tiny_training import tiny_chain, use_tiny_model, write_rule, write_scenarios


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_rule(tmp_path_factory.mktemp("rule"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_model(patch)
        yield write_scenarios(tmp_path_factory.mktemp("set") / "scenarios.jsonl")


def chain(folder: Path, source: Path, rule: str, **sections: dict[str, Any] | None) -> RlhfConfig:
    """A chain that takes seconds; a section that is None is left out."""
    defaults: dict[str, Any] = {
        "scenarios": {"source": str(source)},
        "rankings": {"judge": rule, "margin": 0.001, "held_out": 2},
        "reward_model": {"lora": {"rank": 2}},
        "ppo": {
            "steps": 2,
            "groups_per_step": 2,
            "group_size": 2,
            "lora": {"rank": 2},
            "learning_rate": 0.01,
        },
        "dpo": {"lora": {"rank": 2}, "learning_rate": 0.01, "pairs_per_step": 4},
        "evaluation": {"judges": [rule]},
        "run": {"folder": str(folder)},
    }
    return tiny_chain(RlhfConfig, defaults, sections)


def run(config: RlhfConfig, **more: Any) -> tuple[dict[str, Any], list[str]]:
    """What the stages gave, and what was reported."""
    lines: list[str] = []
    return asyncio.run(run_rlhf(config, report=lines.append, **more)), lines


def weights(folder: Path, stage: str) -> bytes:
    """Of the last checkpoint of a stage."""
    return max(folder.glob(f"{stage}/checkpoints/*/adapter_model.safetensors")).read_bytes()


@pytest.fixture(scope="module")
def whole(source: Path, rule: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A chain that ran through. Read it only."""
    folder = tmp_path_factory.mktemp("whole") / "chain"
    return folder, run(chain(folder, source, rule))[0]


def test_every_stage_leaves_a_file_with_what_it_gave(whole: Any) -> None:
    folder, results = whole

    assert tuple(results) == STAGES
    assert {name: json.loads((folder / f"{name}.json").read_text())["result"] for name in STAGES} == results


def test_the_scenarios_that_the_reward_model_is_measured_on_are_not_learned_from(whole: Any) -> None:
    folder, _ = whole

    assert {r.scenario_id for r in read_rankings(folder / "rankings.jsonl")} <= {
        f"train-{i}" for i in range(1, 5)
    }
    assert {r.scenario_id for r in read_rankings(folder / "held-out-rankings.jsonl")} <= {
        "held-out-1",
        "held-out-2",
    }


def test_rankings_of_a_rule_say_so(whole: Any, rule: str) -> None:
    ranking = read_rankings(whole[0] / "rankings.jsonl")[0]

    assert (ranking.source, ranking.annotator) == ("rule", rule)


def test_ppo_is_trained_on_the_reward_model_and_logs_the_rule(whole: Any, rule: str) -> None:
    folder, _ = whole
    with Run.open(folder / "ppo", read_only=True) as done:
        member = done.groups(1)[0].trajectories[0]

    assert member.reward == pytest.approx(
        member.metrics[f"ruler/jury/local/reward-model/{folder}/reward-model"]
    )
    assert f"ruler/jury/{rule}" in member.metrics


def test_both_policies_are_compared_with_the_start_by_everyone(whole: Any, rule: str) -> None:
    folder, results = whole
    found = results["evaluation"]["policies"]

    assert list(found) == ["ppo", "dpo"]
    assert {name: row["role"] for name, row in found["ppo"]["judges"].items()} == {
        rule: "ranked the answers",
        f"local/reward-model/{folder}/reward-model": "PPO was trained on it",
    }
    assert [row["pairs"] for row in found["dpo"]["judges"].values()] == [4, 4]


def test_a_reward_model_that_is_there_already_is_measured_and_not_trained(
    whole: Any, source: Path, rule: str, tmp_path: Path
) -> None:
    folder, results = whole
    given = {"folder": str(folder / "reward-model")}

    found, _ = run(chain(tmp_path / "chain", source, rule, reward_model=given), until="reward-model")

    assert found["reward-model"]["steps"] == []
    assert found["reward-model"]["evaluation"] == results["reward-model"]["evaluation"]


def test_a_stage_that_is_done_is_not_done_again(whole: Any, source: Path, rule: str) -> None:
    folder, results = whole
    again, lines = run(chain(folder, source, rule))

    assert again == results
    assert [line.partition(" (")[0] for line in lines] == [f"{name}: done" for name in STAGES]


def test_a_chain_that_was_stopped_between_stages_ends_with_the_same_weights(
    whole: Any, source: Path, rule: str, tmp_path: Path
) -> None:
    config = chain(tmp_path / "chain", source, rule)
    for stage in ("rankings", "reward-model", "dpo"):
        run(config, until=stage)

    assert weights(tmp_path / "chain", "ppo") == weights(whole[0], "ppo")
    assert weights(tmp_path / "chain", "dpo") == weights(whole[0], "dpo")


def test_dpo_that_was_stopped_inside_goes_on_from_its_last_checkpoint(
    whole: Any, source: Path, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = chain(tmp_path / "chain", source, rule, ppo=None)
    monkeypatch.setattr(policy, "SAVE_EVERY", 2)

    def stop(line: str) -> None:
        if line.startswith("DPO step 3/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run_rlhf(config, until="dpo", report=stop))
    run(config, until="dpo")

    assert weights(tmp_path / "chain", "dpo") == weights(whole[0], "dpo")


def test_another_setting_of_a_stage_that_is_done_is_refused_by_name(
    whole: Any, source: Path, rule: str
) -> None:
    with pytest.raises(RunError, match=r"rankings.json was made with rankings.margin = 0.001.*says 0.1;"):
        run(chain(whole[0], source, rule, rankings={"margin": 0.1}))


def test_a_chain_without_a_policy_to_train_is_refused(source: Path, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neither \[ppo\] nor \[dpo\] is there"):
        chain(tmp_path, source, rule, ppo=None, dpo=None)


def test_an_unknown_stage_is_refused(source: Path, rule: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no stage 'rewards'; the stages are answers, rankings,"):
        run(chain(tmp_path, source, rule), until="rewards")


def test_rankings_that_are_all_ties_end_the_chain_with_the_reason(
    source: Path, rule: str, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=r"in none is one answer above another.*lower rankings.margin"):
        run(chain(tmp_path / "chain", source, rule, rankings={"margin": 2.0}), until="rankings")


def test_rankings_of_a_file_are_parted_by_prompt(whole: Any, source: Path, rule: str, tmp_path: Path) -> None:
    given = read_rankings(whole[0] / "rankings.jsonl")
    write_rankings(tmp_path / "given.jsonl", [*given, *given])
    config = chain(
        tmp_path / "chain", source, rule, rankings={"file": str(tmp_path / "given.jsonl"), "held_out": 1}
    )

    results, _ = run(config, until="rankings")

    learned = {r.prompt_key for r in read_rankings(tmp_path / "chain" / "rankings.jsonl")}
    measured = {r.prompt_key for r in read_rankings(tmp_path / "chain" / "held-out-rankings.jsonl")}
    assert list(results) == ["rankings"]
    assert len(measured) == 1 and not learned & measured


def test_a_person_is_asked_by_the_name_of_the_command(source: Path, rule: str, tmp_path: Path) -> None:
    config = chain(tmp_path / "chain", source, rule, rankings={"judge": "human"})

    with pytest.raises(ConfigError, match=r"`groundrule rank .*answers.jsonl --out .*human.jsonl`, then run"):
        run(config)


def test_what_a_person_ranked_is_learned_from(whole: Any, source: Path, rule: str, tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    config = chain(folder, source, rule, rankings={"judge": "human", "held_out": 1})
    run(config, until="answers")
    write_rankings(folder / "human.jsonl", read_rankings(whole[0] / "rankings.jsonl"))

    results, _ = run(config, until="rankings")

    assert results["rankings"]["held_out_rankings"] == 1


def test_a_set_without_held_out_scenarios_is_refused_where_they_are_needed(
    source: Path, rule: str, tmp_path: Path
) -> None:
    only_train = [record for _, record in jsonl.read(source) if record["split"] == "train"]
    jsonl.write(tmp_path / "s.jsonl", only_train)

    with pytest.raises(
        ConfigError, match="no scenario with split 'held-out', so there is nothing to measure"
    ):
        run(chain(tmp_path / "chain", tmp_path / "s.jsonl", rule))
