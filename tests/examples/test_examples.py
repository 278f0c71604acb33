"""Every file in examples/ runs: with a scripted judge, and with the embedded model where it can."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes import KeywordJudge, scores_json
from groundrule.data import Trajectory
from groundrule.data.runs import Run
from groundrule.llm import ScriptedClient
from tiny_training import use_tiny_model

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = [
    "00_read_me_first",
    "01_ruler_on_messages",
    "02_score_a_group",
    "03_training_loop",
    "04_custom_rubric",
    "05_hybrid_reward",
    "06_hand_written",
    "07_hybrid_training",
    "08_universal_verifier",
]


@pytest.fixture
def example(monkeypatch):
    """Imports an example by its file's name, the way it imports its neighbours."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.fixture
def tiny_base_model(monkeypatch):
    use_tiny_model(monkeypatch)


FAITHFUL, INVENTED, EVASIVE, WORDY = (
    "You get your money back within 30 days, except",
    "Within 30 days, or as a shop credit",
    "I do not know how that works here.",
    "According to what I have been given",
)


def strict_judge() -> ScriptedClient:
    """Knows the four answers that examples 02, 04 and 05 share."""
    return ScriptedClient(KeywordJudge({FAITHFUL: 0.98, INVENTED: 0.2, EVASIVE: 0.05, WORDY: 0.96}))


async def rising_judge(messages):
    """The later an answer is shown, the better."""
    [count] = re.findall(r"trajectories 1 to (\d+)", messages[-1]["content"])
    return scores_json(*(i / 10 for i in range(1, int(count) + 1)))


def test_every_example_is_run_here():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == NAMES


def test_00_runs_as_a_script_and_prints_score_and_advantage_of_each_answer():
    command = [sys.executable, str(EXAMPLES / "00_read_me_first.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [line[:28] for line in done.stdout.splitlines()] == [
        "score 1.00  advantage +1.10 ",
        "score 0.25  advantage -0.74 ",
        "score 0.05  advantage -1.23 ",
        "score 0.90  advantage +0.86 ",
    ]


async def test_00_gives_the_scores_in_the_order_of_the_answers(example):
    assert await example("00_read_me_first").main() == [1.0, 0.25, 0.05, 0.9]


async def test_01_gives_each_message_list_its_score(example):
    judge = ScriptedClient(KeywordJudge({FAITHFUL: 0.97, INVENTED: 0.45, EVASIVE: 0.05}))
    scores = await example("01_ruler_on_messages").main(judge)
    assert [(s.trajectory_id, s.score) for s in scores] == [("1", 0.97), ("2", 0.45), ("3", 0.05)]


async def test_02_gives_each_trajectory_its_reward(example):
    judged = await example("02_score_a_group").main(strict_judge())
    assert judged.rewards == [0.98, 0.2, 0.05, 0.96]


async def test_02_prints_the_answers_best_first(example, capsys):
    await example("02_score_a_group").main(strict_judge())
    ranked = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d\. ", line)]
    assert [line[:8] for line in ranked] == ["1. 0.980", "2. 0.960", "3. 0.200", "4. 0.050"]


async def test_03_makes_a_step(example, tiny_base_model, tmp_path):
    assert (
        await example("03_training_loop").main(rising_judge, steps=1, base_model="tiny", path=tmp_path) == 1
    )


async def test_03_goes_on_where_it_was(example, tiny_base_model, tmp_path, capsys):
    for steps in (1, 2):
        await example("03_training_loop").main(rising_judge, steps=steps, base_model="tiny", path=tmp_path)
    said = [
        line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("step ")
    ]
    assert said == ["step 1", "step 2"]


async def test_04_shows_the_judge_the_rubric(example):
    module, judge = example("04_custom_rubric"), strict_judge()
    await module.main(judge)
    assert module.RUBRIC.strip() in judge.requests[0].messages[0]["content"]


async def test_05_adds_the_check_to_the_judges_score(example):
    judged = await example("05_hybrid_reward").main(strict_judge())
    assert judged.rewards == pytest.approx([1.98, 0.2, 0.05, 1.96])


async def test_05_keeps_both_signals_apart(example):
    judged = await example("05_hybrid_reward").main(strict_judge())
    kept = [(t.metrics["ruler_score"], t.metrics["address"]) for t in judged]
    assert kept == [(0.98, 1.0), (0.2, 0.0), (0.05, 0.0), (0.96, 1.0)]


async def test_06_shows_counting_and_judging_side_by_side(example, capsys):
    by_hand, judged = await example("06_hand_written").main(strict_judge())
    values = [score.value for score in by_hand]
    assert min(values[0], values[3]) > values[1] > values[2]
    assert judged.rewards == [0.98, 0.2, 0.05, 0.96]
    assert "no_unsupported_claims 0.50" in capsys.readouterr().out


async def test_07_keeps_judge_and_check_apart_in_the_run_folder(example, tiny_base_model, tmp_path, capsys):
    run = await example("07_hybrid_training").main(rising_judge, steps=1, base_model="tiny", path=tmp_path)
    groups = Run.open(run, read_only=True).groups(1)
    signals = [(t.reward, t.metrics["ruler_score"], t.metrics["correct"]) for g in groups for t in g]
    assert len(signals) == 8
    assert all(reward == pytest.approx(judge + correct) for reward, judge, correct in signals)
    assert len(re.findall(r"step-000001: reward .* = judge .* \+ correct [01]", capsys.readouterr().out)) == 8


def test_07_takes_either_way_of_writing_a_fact_for_right(example):
    module = example("07_hybrid_training")
    question = next(iter(module.SCENARIOS))

    def verdict(answer: str) -> float:
        turns = [("system", module.SYSTEM), ("user", question), ("assistant", answer)]
        return module.verify_correctness(
            Trajectory(messages_and_choices=[{"role": role, "content": text} for role, text in turns])
        )

    assert [verdict(a) for a in ("For 4 weeks.", "Four weeks!", "Until 20.")] == [1.0, 1.0, 0.0]


async def test_08_scores_every_answer_as_it_is_known_to_be(example):
    module = example("08_universal_verifier")
    scores = await module.main()
    known = {
        scenario.id: [answer["right"] for answer in scenario.metadata["answers"]]
        for name in ("triage", "biology", "policy", "writing")
        for scenario in module.load_scenarios(module.FOLDER / f"{name}.jsonl")
    }
    assert {name: [value > 0.5 for value in values] for name, values in scores.items()} == known


async def test_08_writes_notices_their_share(example):
    assert (await example("08_universal_verifier").main())["writing-1"] == pytest.approx(
        [1.0, 4 / 6, 0.0, 0.0]
    )


@pytest.mark.embedded
async def test_01_runs_with_the_embedded_model(example):
    scores = [s.score for s in await example("01_ruler_on_messages").main()]
    assert scores[0] == max(scores)


@pytest.mark.embedded
async def test_02_runs_with_the_embedded_model(example):
    judged = await example("02_score_a_group").main()
    assert judged.rewards[0] == max(judged.rewards)


@pytest.mark.embedded
async def test_03_runs_with_the_embedded_model(example, tmp_path):
    assert await example("03_training_loop").main(steps=1, path=tmp_path) == 1


@pytest.mark.embedded
async def test_05_runs_with_the_embedded_model(example):
    judged = await example("05_hybrid_reward").main()
    assert [t.metrics["address"] for t in judged] == [1.0, 0.0, 0.0, 1.0]
