"""`groundrule constitution`: from its file to its tables, and constitutions to look at."""

from __future__ import annotations

import json

import pytest

from groundrule.recipes import sft
from tiny import tiny_model
from tiny_training import use_tiny_model, write_rule, write_scenarios


@pytest.fixture
def config(monkeypatch, tmp_path, judge_named):
    """A chain that takes seconds."""
    use_tiny_model(monkeypatch)
    monkeypatch.setattr(sft, "load_model", lambda name, *, device=None: tiny_model())
    judge_named("test", "constitutions:named")
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
        [constitution]
        critic = "test/critic"
        judge = "test/judge"
        [revisions]
        rounds = 1
        [sft.lora]
        rank = 2
        [preferences]
        held_out = 0
        [dpo.lora]
        rank = 2
        [evaluation]
        judges = ["rules.py:short"]
        attempts = 1
        [run]
        name = "tiny"
        """
    )
    return path


def test_the_chain_ends_with_tables_and_a_report(groundrule, config, tmp_path):
    done = groundrule("constitution", config)

    assert done.code == 0
    assert "revisions: 4 in 4 rounds" in done.out
    assert "first wins" in done.out
    assert "revised against the start: 2 held-out scenarios x 1 sampled answers" in done.out
    assert "dpo against the start: 2 held-out scenarios x 1 sampled answers" in done.out
    assert "report: runs/constitution/tiny/rlhf/dpo/report.html" in done.out


def test_until_stops_after_a_stage_wherever_the_option_stands(groundrule, config, tmp_path):
    done = groundrule("constitution", "--until", "answers", config, "--run", tmp_path / "chain")

    assert done.code == 0
    assert [p.name for p in (tmp_path / "chain").glob("*.json")] == ["answers.json"]


def test_json_is_one_object_on_the_output_and_progress_beside_it(groundrule, config):
    done = groundrule("constitution", "run", config, "--until", "revisions", "--json")

    assert json.loads(done.out)["revisions"]["rows"] == 4
    assert "answers: begins" in done.err


def test_a_key_that_is_not_known_is_named_with_the_nearest(groundrule, config):
    done = groundrule("constitution", config, "--set", "revisions.round=3")

    assert (done.code, done.out) == (2, "")
    assert "unknown key 'revisions.round'; did you mean 'rounds'?" in done.err


def test_check_says_what_is_in_a_constitution(groundrule):
    done = groundrule("constitution", "check", "customer-support")

    assert done.code == 0
    assert done.out.startswith(
        "customer-support: 8 principles, 1 exemplars, tags form, grounded, helpful, honest, content "
    )


def test_check_names_the_line_of_what_is_wrong(groundrule, tmp_path):
    (tmp_path / "c.toml").write_text('[[principles]]\nid = "a"\nwieght = 2\n')
    done = groundrule("constitution", "check", "c.toml")

    assert done.code == 2
    assert "c.toml, line 1, column critique_request: is missing" in done.err


def test_show_prints_the_principles(groundrule):
    done = groundrule("constitution", "show", "helpful-honest-harmless")

    assert done.code == 0
    assert done.out.count("  question: ") == 18
    assert "no-tools-for-harm [harmless], weight 1.5" in done.out


def test_show_of_one_that_is_not_there_names_the_nearest(groundrule):
    done = groundrule("constitution", "show", "helpful-honest-harmles")

    assert done.code == 2
    assert "did you mean 'helpful-honest-harmless'?" in done.err
