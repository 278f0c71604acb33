"""`groundrule reward-bench`."""

from __future__ import annotations

import json


def test_a_reward_is_measured_on_the_built_in_answers(groundrule):
    result = groundrule("reward-bench", "--reward", "rag", "--area", "grounding", "--json")
    (report,) = json.loads(result.out)
    assert report["name"] == "rag"
    assert report["accuracy"]["value"] > 0.8
    assert set(report["weights"]["concise"]) == {"without", "halved", "doubled"}
    assert result.code == (1 if report["flags"] else 0)


def test_two_rewards_are_shown_side_by_side(groundrule, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def short(answer):\n    return 1 / (1 + len(answer))\n")
    said = groundrule("reward-bench", "--reward", "rag", "--against", f"{mine}:short", "--area", "length").out
    assert f"rag against {mine}:short on the known-answer suite" in said
    assert "worst disagreements" in said


def test_a_reward_that_cannot_be_had_is_wrong_input(groundrule):
    result = groundrule("reward-bench", "--reward", "nowhere.py:f")
    assert result.code == 2
    assert "no such Python file" in result.err
