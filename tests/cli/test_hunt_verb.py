"""`groundrule rubric hunt`: from scenarios of known truth to rates, cases and proposals, also after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fakes import prompt_of
from groundrule.errors import LlmError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Rubric

asked: list[str] = []
"""What the prover was asked for: "sneaky" or "helpful", in order."""
MONTHS = {"answer": "For four months.", "flaw": "gives four months as the term"}


def named(name: str, params: dict[str, Any]) -> ScriptedClient:
    """Models of these tests. `prover` is wrong by months, `judge` takes whatever says "four" for right."""

    def prover(request):
        asked.append(request.purpose.removeprefix("prover/"))
        if name == "interrupted" and len(asked) > 3:
            raise KeyboardInterrupt
        if name == "dumb":
            raise LlmError("no answer")
        return MONTHS if asked[-1] == "sneaky" else "For 28 days."

    def judge(request):
        text = prompt_of(request).split(" ANSWER>>>\n")[1].split("\n<<<")[0]
        return {"quote": text, "verdict": "same" if "four" in text else "different"}

    return ScriptedClient(judge if name.startswith("judge") else prover)


@pytest.fixture(autouse=True)
def nothing_asked_yet(judge_named):
    asked.clear()
    judge_named("test", "test_hunt_verb:named")


@pytest.fixture
def tasks(tmp_path) -> Path:
    truth = {"kind": "regex", "reference": "(?i)(four weeks|28 days)", "anywhere": True}
    rows = [
        {"id": name, "question": question, "reference": "four weeks", "metadata": {"truth": truth}}
        for name, question in (
            ("book", "How long may I keep a book?"),
            ("film", "How long may I keep a film?"),
        )
    ]
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def with_judge(*options: object) -> tuple[object, ...]:
    return ("--prover", "test/prover", "--judge", "test/judge", *options)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_hunt_ends_with_rates_cases_and_proposals(groundrule, tasks, tmp_path):
    done = groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 2))

    assert done.code == 0
    assert done.out.splitlines() == [
        "8 answers, 2 wrong ones accepted, 0 without a score",
        "false accepts: 4 of 4 (100.0%, 95 % interval 51.0% to 100.0%)",
        "false rejects: 4 of 4 (100.0%, 95 % interval 51.0% to 100.0%)",
        f"-> {tmp_path}/tasks.hunt/cases.jsonl, {tmp_path}/tasks.hunt/proposed.toml",
    ]
    cases = lines(tmp_path / "tasks.hunt" / "cases.jsonl")
    assert [(c["scenario_id"], c["answer"], c["expected"], c["got"]) for c in cases] == [
        ("book", "For four months.", 0.0, 1.0),
        ("film", "For four months.", 0.0, 1.0),
    ]


def test_what_it_proposes_fits_into_a_rubric_file(groundrule, tasks, tmp_path):
    groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    proposed = (tmp_path / "tasks.hunt" / "proposed.toml").read_text()
    sound = '[[criteria]]\nid = "term"\ntext = "names four weeks as the term"\n\n'

    assert [c.text for c in Rubric.parse(sound + proposed).criteria if c.pitfall] == [MONTHS["flaw"]]


def test_its_cases_are_a_test_of_another_verifier(groundrule, tasks, tmp_path):
    groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    done = groundrule("verify", tmp_path / "tasks.hunt" / "cases.jsonl", "--kind", "exact")

    assert (done.code, done.out.startswith("2 of 2 answers have a score, mean 0.000")) == (0, True)


def test_a_budget_that_is_used_up_ends_it_and_a_larger_one_goes_on(groundrule, tasks, tmp_path):
    # An answer takes a call of the prover and three votes: of 16 calls for one round 9 allow some of the four.
    hunt = ("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    first = groundrule(*hunt, "--budget-calls", 9)
    kept = lines(tmp_path / "tasks.hunt" / "attempts.jsonl")
    asked.clear()
    second = groundrule(*hunt, "--budget-calls", 40)

    assert first.code == 1
    assert "the budget of the hunt is used up (9 calls" in first.err
    assert "it goes on from here" in first.err
    assert [k["score"]["value"] is not None for k in kept] == [True] * len(kept)
    assert 0 < len(kept) < 4
    assert (second.code, len(asked)) == (0, 4 - len(kept))
    assert second.out.startswith("4 answers, 2 wrong ones accepted, 0 without a score")


def test_a_hunt_that_is_stopped_by_hand_has_lost_nothing(groundrule, tasks, tmp_path, monkeypatch):
    monkeypatch.setattr("groundrule.rewards.universal.adversary.AT_ONCE", 1)
    stopped = groundrule("rubric", "hunt", tasks, "--prover", "test/interrupted", "--judge", "test/judge")
    folder = tmp_path / "tasks.hunt"

    assert stopped.code == 130
    assert [(a["scenario_id"], a["role"]) for a in lines(folder / "attempts.jsonl")] == [
        ("book", "sneaky"),
        ("book", "helpful"),
        ("film", "sneaky"),
    ]
    assert len(lines(folder / "cases.jsonl")) == 2


def test_more_rounds_go_on_where_fewer_ended(groundrule, tasks):
    groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    done = groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 3))

    assert (len(asked), done.out.splitlines()[0]) == (
        12,
        "12 answers, 2 wrong ones accepted, 0 without a score",
    )


@pytest.mark.parametrize(
    "change",
    [("--seed", 1), ("--judge", "test/judge-2"), ("--layers", "reference"), ("--prover", "test/other")],
)
def test_attempts_of_other_settings_are_not_gone_on_with(groundrule, tasks, change):
    hunt = ("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    groundrule(*hunt)
    groundrule(*hunt, *change)

    assert len(asked) == 8


def test_of_a_scenario_that_has_changed_neither(groundrule, tasks):
    hunt = ("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    groundrule(*hunt)
    tasks.write_text(tasks.read_text().replace("a film", "a map"))
    groundrule(*hunt)

    assert len(asked) == 6


def test_cases_of_an_earlier_hunt_are_not_left_beside_one_that_found_none(groundrule, tasks, tmp_path):
    groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    done = groundrule("rubric", "hunt", tasks, "--prover", "test/prover", "--layers", "check", "--rounds", 1)

    assert done.out.splitlines()[0] == "4 answers, 0 wrong ones accepted, 4 without a score"
    assert sorted(p.name for p in (tmp_path / "tasks.hunt").iterdir()) == ["attempts.jsonl", "costs.jsonl"]


def test_a_command_that_cannot_work_takes_nothing_away(groundrule, tasks, tmp_path):
    groundrule("rubric", "hunt", tasks, *with_judge("--rounds", 1))
    groundrule("rubric", "hunt", tasks, "--prover", "opnai/o3", "--judge", "test/judge")

    assert len(lines(tmp_path / "tasks.hunt" / "cases.jsonl")) == 2


def test_a_prover_that_never_answers_is_failed_work(groundrule, tasks):
    done = groundrule("rubric", "hunt", tasks, "--prover", "test/dumb", "--judge", "test/judge")

    assert (done.code, "no answer could be had and verified: round 1: " in done.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--prover", "test/prover"], "a hunt needs --judge NAME"),
        (["--prover", "opnai/o3", "--judge", "test/judge"], "did you mean openai/o3?"),
        (["--prover", "test/prover", "--judge", "test/judge", "--rounds", "0"], "--rounds"),
    ],
)
def test_options_that_cannot_work_are_wrong_input(groundrule, tasks, options, said):
    done = groundrule("rubric", "hunt", tasks, *options)

    assert (done.code, said in done.err) == (2, True)


def test_scenarios_of_unknown_truth_are_wrong_input(groundrule, tasks):
    tasks.write_text('{"id": "sea", "question": "Describe the sea."}\n')
    done = groundrule("rubric", "hunt", tasks, *with_judge())

    assert (done.code, "the scenario 'sea' has neither" in done.err) == (2, True)
