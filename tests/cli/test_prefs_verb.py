"""`groundrule prefs`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fakes import chat
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.preference_records import read_rankings
from groundrule.data.runs import Run

CONFIG = {"judge": {"model": "openai/o3"}}


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def pair(chosen, rejected, **more):
    return {"prompt": "Refunds?", "chosen": chosen, "rejected": rejected, **more}


def group(**scores):
    members = [Trajectory(messages_and_choices=chat(text), reward=reward) for text, reward in scores.items()]
    return TrajectoryGroup(members, scenario_id="shop-1")


@pytest.fixture
def run(tmp_path):
    """Two steps; in the second all scores are close."""
    with Run.create(tmp_path / "run", CONFIG) as made:
        made.record_step(1, [group(yes=0.9, no=0.1, perhaps=0.5)], {})
        made.record_step(2, [group(never=0.5, ever=0.52)], {})
    return tmp_path / "run"


def test_a_run_becomes_rankings(groundrule, run, tmp_path):
    result = groundrule("prefs", "from-run", run, "--out", tmp_path / "out.jsonl")
    assert result.code == 0
    assert (
        result.out
        == f"2 rankings with 3 pairs and 1 ties from 2 groups of 2 steps -> {tmp_path / 'out.jsonl'}\n"
    )
    first, second = read_rankings(tmp_path / "out.jsonl")
    assert [(p.chosen.text, p.rejected.text) for p in first.pairs()] == [
        ("yes", "perhaps"),
        ("yes", "no"),
        ("perhaps", "no"),
    ]
    assert second.pairs() == []
    assert (first.annotator, first.source, first.scenario_id) == ("openai/o3", "ruler", "shop-1")


def test_the_rewards_of_a_verifier_alone_are_a_rule(groundrule, tmp_path):
    config = {"judge": {"model": "local/likelihood", "verifier": "math", "combine": "verifier"}}
    with Run.create(tmp_path / "run", config) as made:
        made.record_step(1, [group(yes=1, no=0)], {})
    groundrule("prefs", "from-run", tmp_path / "run", "--out", tmp_path / "out.jsonl")
    [ranking] = read_rankings(tmp_path / "out.jsonl")
    assert (ranking.annotator, ranking.source) == ("math", "rule")


def test_steps_and_margin_can_be_chosen(groundrule, run, tmp_path):
    out = tmp_path / "out.jsonl"
    assert groundrule("prefs", "from-run", run, "--out", out, "--steps", "2", "--margin", "0.01").code == 0
    assert [len(r.pairs()) for r in read_rankings(out)] == [1]
    assert groundrule("prefs", "from-run", run, "--out", out, "--steps", "1-2", "--margin", "0.4").code == 0
    assert [len(r.pairs()) for r in read_rankings(out)] == [3, 0]


def test_a_run_without_a_pair_is_a_failure_and_writes_nothing(groundrule, run, tmp_path):
    result = groundrule("prefs", "from-run", run, "--out", tmp_path / "out.jsonl", "--steps", "2")
    assert result.code == 1
    assert "no pair of answers in 1 groups is 0.05 apart; nothing written" in result.err
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--steps", "7-9"), "has no groups of steps 7-9; it has 1 to 2"),
        (("--steps", "3-"), "'3-' is not A-B, such as 3-10, or one step"),
        (("--steps", "all"), "'all' is not A-B"),
        (("--margin", "-1"), "--margin"),
        (("--margin", "nan"), "margin is nan"),
    ],
)
def test_wrong_steps_and_margins_are_wrong_input(groundrule, run, tmp_path, arguments, said):
    result = groundrule("prefs", "from-run", run, "--out", tmp_path / "out.jsonl", *arguments)
    assert result.code == 2
    assert said in result.err


def test_a_folder_that_is_no_run_is_wrong_input(groundrule, tmp_path):
    assert groundrule("prefs", "from-run", tmp_path, "--out", tmp_path / "o.jsonl").code == 2


def test_check_says_what_a_file_holds(groundrule, tmp_path):
    ranking = {
        "prompt": "Returns?",
        "answers": [{"id": "a", "text": "Yes, do."}, {"id": "b", "text": "No."}, {"id": "c", "text": "Hm."}],
        "order": ["a", ["b", "c"]],
        "source": "human",
    }
    said = [
        pair("Yes.", "No.", annotator="ann", margin=1),
        pair("Yes.", "No.", annotator="bob"),
        {**ranking, "annotator": "ann"},
        {**ranking, "annotator": "bob", "order": ["a", "b", "c"]},
    ]
    result = groundrule("prefs", "check", lines(tmp_path / "p.jsonl", *said))
    assert result.code == 0
    assert result.out.splitlines() == [
        "4 rankings of 5 answers to 2 prompts: 7 pairs (1 with a margin), 1 ties",
        "annotators: ann 2, bob 2",
        "sources: (not said) 2, human 2",
        "length: chosen 6 characters, rejected 3; the longer one is chosen in 93% (no bias: 50%)",
        "agreement of 2 annotators on 2 prompts, 4 comparisons:",
        "  same order   100% of the 3 that both order (chance: 50%)",
        "  tau-b        0.908",
        "  Cohen's kappa (better, tied, worse)   0.600",
        "contradictions: none",
    ]


def test_check_names_contradictions_with_their_lines_and_fails(groundrule, tmp_path):
    said = [pair("A", "B"), pair("B", "C", annotator="ann"), pair("B", "C"), pair("C", "A")]
    file = lines(tmp_path / "p.jsonl", *said)
    before = file.read_bytes()
    result = groundrule("prefs", "check", file)
    assert result.code == 1
    assert "contradictions: 0 pairs in both directions, 1 cycles" in result.out
    assert "lines 1, 3, 4: an annotator without a name on 'Refunds?'" in result.out
    assert file.read_bytes() == before


def test_check_as_json_has_the_same(groundrule, tmp_path):
    result = groundrule(
        "prefs", "check", lines(tmp_path / "p.jsonl", pair("A", "B"), pair("B", "A")), "--json"
    )
    record = json.loads(result.out)
    assert result.code == 1
    assert (record["pairs"], record["agreement"]) == (2, None)
    assert [(c["lines"], c["answers"]) for c in record["contradictions"]] == [([1, 2], ["A", "B"])]


def test_convert_goes_to_our_form_and_back(groundrule, tmp_path):
    theirs = {
        "chosen": [{"role": "user", "content": "Refunds?"}, {"role": "assistant", "content": "Yes."}],
        "rejected": [{"role": "user", "content": "Refunds?"}, {"role": "assistant", "content": "No."}],
        "set": "x",
    }
    ours, pairs = tmp_path / "ours.jsonl", tmp_path / "pairs.jsonl"
    result = groundrule("prefs", "convert", lines(tmp_path / "in.jsonl", theirs), "--out", ours)
    assert (result.code, result.out) == (0, f"1 rankings with 1 pairs and 0 ties -> {ours}\n")
    assert groundrule("prefs", "convert", ours, "--out", pairs, "--to", "pairs").code == 0
    record = json.loads(pairs.read_text())
    assert record["prompt"] == [{"role": "user", "content": "Refunds?"}]
    assert record["chosen"] == [{"role": "assistant", "content": "Yes."}]
    assert record["metadata"] == {"set": "x"}


def test_convert_says_which_rankings_gave_no_pair(groundrule, tmp_path):
    tied = {
        "prompt": "Q?",
        "answers": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}],
        "order": [["a", "b"]],
    }
    file = lines(tmp_path / "in.jsonl", tied)
    result = groundrule("prefs", "convert", file, "--out", tmp_path / "o.jsonl", "--to", "pairs")
    assert result.out.splitlines()[-1] == "1 rankings are all ties and gave no pair"


def test_a_wrong_line_is_wrong_input_and_nothing_is_written(groundrule, tmp_path):
    file = lines(tmp_path / "in.jsonl", pair("A", "B"), pair("A", "A"))
    result = groundrule("prefs", "convert", file, "--out", tmp_path / "o.jsonl")
    assert result.code == 2
    assert result.err == (
        f"error: {file}, line 2, column rejected: the chosen answer is the rejected one; leave the pair out\n"
    )
    assert not (tmp_path / "o.jsonl").exists()


def test_neither_help_nor_check_imports_what_training_needs(tmp_path):
    file = lines(tmp_path / "p.jsonl", pair("A", "B"))
    program = (
        "import sys; from click.testing import CliRunner; from groundrule.cli.main import cli; "
        f"assert CliRunner().invoke(cli, ['prefs', 'check', {str(file)!r}]).exit_code == 0; "
        "print([m for m in ('torch', 'openai', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_takes_under_one_cpu_second():
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "groundrule", "prefs", "check", "--help"], capture_output=True, check=True
    )
    after = os.times()
    assert after.children_user - before.children_user + after.children_system - before.children_system < 1.0
