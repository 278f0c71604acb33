"""`groundrule rlhf`: the chain from its file to its tables, with the tiny model."""

from __future__ import annotations

import json

import pytest

from tiny_training import use_tiny_model, write_rule, write_scenarios


@pytest.fixture
def config(monkeypatch, tmp_path):
    """A chain that takes seconds."""
    use_tiny_model(monkeypatch)
    write_rule(tmp_path)
    path = tmp_path / "chain.toml"
    path.write_text(
        f"""
        [scenarios]
        source = "{write_scenarios(tmp_path / "scenarios.jsonl")}"
        [policy]
        base_model = "tiny"
        max_tokens = 6
        temperature = 1.0
        [rankings]
        judge = "rules.py:short"
        margin = 0.001
        held_out = 2
        [reward_model.lora]
        rank = 2
        [ppo]
        steps = 1
        groups_per_step = 2
        group_size = 2
        lora = {{ rank = 2 }}
        [dpo.lora]
        rank = 2
        [evaluation]
        judges = ["rules.py:short"]
        [run]
        name = "tiny"
        """
    )
    return path


def test_the_chain_ends_with_a_table_for_each_policy_and_their_reports(groundrule, config, tmp_path):
    done = groundrule("rlhf", config)

    assert done.code == 0
    assert "reward model: right on" in done.out
    assert "ppo against the start: 2 held-out scenarios x 2 sampled answers; KL" in done.out
    assert "dpo against the start: 2 held-out scenarios x 2 sampled answers; KL" in done.out
    assert "report: runs/rlhf/tiny/ppo/report.html" in done.out
    assert (tmp_path / "runs" / "rlhf" / "tiny" / "dpo" / "report.html").exists()


def test_until_stops_after_a_stage(groundrule, config, tmp_path):
    done = groundrule("rlhf", config, "--until", "rankings", "--run", tmp_path / "chain")

    assert done.code == 0
    assert sorted(p.name for p in (tmp_path / "chain").glob("*.json")) == ["answers.json", "rankings.json"]


def test_json_is_one_object_on_the_output_and_progress_beside_it(groundrule, config):
    done = groundrule("rlhf", config, "--until", "answers", "--json")

    assert json.loads(done.out)["answers"]["answers"] == 24
    assert "answers: begins" in done.err


def test_a_key_that_is_not_known_is_named_with_the_nearest(groundrule, config):
    done = groundrule("rlhf", config, "--set", "rankings.answer=3")

    assert (done.code, done.out) == (2, "")
    assert "unknown key 'rankings.answer'; did you mean 'answers'?" in done.err


def test_a_person_who_is_to_rank_is_told_how(groundrule, config):
    done = groundrule("rlhf", config, "--set", "rankings.judge=human")

    assert done.code == 2
    assert "groundrule rank runs/rlhf/tiny/answers.jsonl --out runs/rlhf/tiny/human.jsonl" in done.err
