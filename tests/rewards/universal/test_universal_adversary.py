"""The hunt: provers, truth, rates, test cases and proposed criteria; and the simulated judge."""

from __future__ import annotations

import json

import pytest

from fakes import prompt_of
from groundrule.data import Scenario, Score
from groundrule.errors import ConfigError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.rewards import Rubric, UniversalVerifier, hunt
from groundrule.rewards.functions import FunctionScorer
from groundrule.rewards.universal.adversary import group_of_answer
from groundrule.rewards.universal.rates import Rate
from groundrule.rewards.universal.simulated import NoisyExaminer

LOAN = Scenario(
    id="loan",
    question="How long may I keep a book?",
    reference="four weeks",
    metadata={"truth": {"kind": "regex", "reference": "(?i)(four weeks|28 days)", "anywhere": True}},
)
ESSAY = Scenario(id="essay", question="Describe the sea.")


def sneaky(*ploys: tuple[str, str], helpful: str = "For four weeks.") -> ScriptedClient:
    """Plays the wrong answers in turn, and always the same right one."""
    left = iter(ploys)

    def answer(request):
        if "wrong in its result" not in prompt_of(request):
            return helpful
        text, flaw = next(left)
        return {"answer": text, "flaw": flaw}

    return ScriptedClient(answer)


def accepts(*words: str) -> FunctionScorer:
    """A verifier that takes answers with one of these words."""
    return FunctionScorer(lambda answer: float(any(word in answer for word in words)))


async def test_a_wrong_answer_that_passes_is_a_success_and_a_right_one_that_does_not_a_false_reject():
    prover = sneaky(("For four months.", "gives months"), ("For two years.", "gives years"))
    found = await hunt(accepts("month"), prover, [LOAN], rounds=2)
    assert (found.false_accepts, found.false_rejects) == (Rate(1, 2), Rate(2, 2))
    assert [(p.answer, p.flaw) for p in found.successes] == [("For four months.", "gives months")]


async def test_a_sneaky_answer_that_is_right_by_accident_counts_among_the_right_ones():
    found = await hunt(accepts("four weeks", "28"), sneaky(("For 28 days.", "none")), [LOAN], rounds=1)
    assert (found.successes, found.false_accepts, found.false_rejects) == ([], Rate(0, 0), Rate(0, 2))


async def test_the_sneaky_prover_sees_how_its_last_answers_fared():
    prover = sneaky(("For four months.", ""), ("For two years.", ""))
    await hunt(accepts("month"), prover, [LOAN], rounds=2)
    told = [prompt_of(r) for r in prover.requests if "EARLIER ATTEMPT" in prompt_of(r)]
    assert len(told) == 1
    assert "was accepted" in told[0]
    assert "For four months." in told[0]


async def test_the_truth_is_never_shown_to_the_verifier():
    assert "truth" not in group_of_answer(LOAN, "For a year.").metadata


async def test_where_no_check_knows_a_second_judge_does_and_the_rates_stay_empty():
    second = ScriptedClient(["It has no water. Verdict: WRONG", "Fine. Verdict: RIGHT"])
    found = await hunt(
        accepts("sea"), sneaky(("A sea of sand.", "no water"), helpful="The sea is wet."), [ESSAY], 1,
        second_judge=second,
    )  # fmt: skip
    assert [(p.is_right, p.truth_by) for p in found.ploys] == [(False, "judge"), (True, "judge")]
    assert (len(found.successes), found.false_accepts) == (1, Rate(0, 0))


async def test_what_nobody_can_judge_is_no_success():
    second = ScriptedClient(["Hard to say. Verdict: UNSURE"] * 2)
    found = await hunt(accepts("sea"), sneaky(("A sea.", "")), [ESSAY], 1, second_judge=second)
    assert ([p.truth_by for p in found.ploys], found.successes) == (["nobody", "nobody"], [])


async def test_a_scenario_without_any_truth_is_a_wrong_setting():
    with pytest.raises(ConfigError, match="'essay' has neither"):
        await hunt(accepts("sea"), sneaky(("A sea.", "")), [ESSAY], 1)


async def test_a_prover_that_fails_is_reported_and_the_others_go_on():
    def answer(request):
        return LlmError("no answer") if "wrong in its result" in prompt_of(request) else "For four weeks."

    found = await hunt(accepts("four"), ScriptedClient(answer), [LOAN], 1)
    assert (len(found.ploys), len(found.failed), found.false_rejects) == (1, 1, Rate(0, 1))


async def test_every_ploy_is_told_at_once_and_what_is_done_is_not_tried_again():
    told, prover = [], sneaky(("For four months.", ""), ("For two years.", ""))
    first = await hunt(accepts("month"), prover, [LOAN], rounds=1, on_each=told.append)
    both = await hunt(accepts("month"), prover, [LOAN], rounds=2, done=told, on_each=told.append)
    assert (len(prover.requests), len(first.ploys), len(told)) == (4, 2, 4)
    assert {(p.round, p.role, p.answer) for p in both.ploys} == {(p.round, p.role, p.answer) for p in told}
    assert sum("EARLIER ATTEMPT" in prompt_of(request) for request in prover.requests) == 1


async def test_a_budget_that_is_used_up_ends_the_hunt_with_what_it_has_found():
    prover = sneaky(("For four months.", ""), ("For two years.", ""))
    with use_ledger(Ledger(budget=Budget(calls=3))) as ledger:
        found = await hunt(accepts("month"), prover, [LOAN], rounds=3)
    assert (len(found.ploys), found.failed, ledger.total().calls) == (3, (), 3)
    assert str(found).endswith("stopped early: the budget of 3 calls is used up; raise Budget(calls=...)")


async def test_an_answer_whose_verifier_ran_out_of_budget_is_no_ploy():
    judge = ScriptedClient(lambda request: {"quote": "For four months.", "verdict": "same"})
    verifier = UniversalVerifier(judge_model=judge, layers=["reference"])
    with use_ledger(Ledger(budget=Budget(calls=4))):  # Two answers, and two of six votes.
        found = await hunt(verifier, sneaky(("For four months.", "")), [LOAN], rounds=1)
    assert (found.ploys, found.stopped is None, len(judge.requests)) == ((), False, 2)


async def test_abstentions_are_in_no_rate():
    unsure = FunctionScorer(lambda answer: Score.none("cannot tell"))
    found = await hunt(unsure, sneaky(("For a year.", "")), [LOAN], 1)
    assert (found.abstained, found.false_accepts, found.false_rejects) == (2, Rate(0, 0), Rate(0, 0))


async def test_successes_become_records_that_verify_reads(tmp_path):
    found = await hunt(accepts("month"), sneaky(("For four months.", "gives months")), [LOAN], 1)
    found.save_cases(tmp_path / "cases.jsonl")
    [record] = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]
    assert record == {
        "id": "loan-sneaky-1",
        "scenario_id": "loan",
        "question": "How long may I keep a book?",
        "answer": "For four months.",
        "reference": "four weeks",
        "expected": 0.0,
        "got": 1.0,
        "flaw": "gives months",
    }


async def test_flaws_become_pitfalls_that_fit_into_a_rubric_file():
    prover = sneaky(("For four months.", "gives four months as the term"))
    patches = (await hunt(accepts("month"), prover, [LOAN], 1)).patches()
    first = '[[criteria]]\nid = "term"\ntext = "names four weeks as the term"\n\n'
    added = Rubric.parse(first + patches.partition("\n")[2]).criteria[1]
    assert (added.id, added.text, added.pitfall) == ("hunt-1", "gives four months as the term", True)


async def test_without_successes_there_is_nothing_to_propose():
    assert (await hunt(accepts("x"), sneaky(("For a year.", "gives a year")), [LOAN], 1)).patches() == ""


async def test_the_whole_loop_with_a_judge_that_can_be_fooled():
    def judge(request):
        text = request.messages[1]["content"].split(" ANSWER>>>\n")[1].split("\n<<<")[0]
        return {"quote": text, "verdict": "same" if "four" in text else "different"}

    verifier = UniversalVerifier(judge_model=ScriptedClient(judge))
    prover = sneaky(("For four months.", "gives months"), ("A year.", "gives a year"), helpful="28 days.")
    found = await hunt(verifier, prover, [LOAN], 2)
    assert (found.false_accepts, found.false_rejects) == (Rate(1, 2), Rate(2, 2))


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [(Rate(0, 30), 0.0, 0.1135), (Rate(5, 50), 0.0435, 0.2136), (Rate(10, 10), 0.7225, 1.0)],
)
def test_the_interval_is_wilsons(rate, low, high):
    assert rate.ci95 == pytest.approx((low, high), abs=5e-4)


def test_a_rate_of_nothing_has_no_interval():
    assert (Rate(0, 0).share, Rate(0, 0).ci95, str(Rate(0, 0))) == (None, None, "none of 0")


def group(number: int):
    task = Scenario(id=f"q{number}", question=f"What is item {number}?", reference=f"thing {number}")
    return group_of_answer(task, f"It is the thing of number {number}.")


async def share_right(**faults: float) -> float:
    """Of 200 right answers, those that a single vote takes for right."""
    judge = NoisyExaminer(lambda statement, task, answer: True, **faults)
    checked = UniversalVerifier(judge_model=judge, votes=1, layers=["reference"])
    scores = [(await checked.score(group(n)))[0].value for n in range(200)]
    return sum(scores) / 200


async def test_the_simulated_judge_errs_as_often_as_it_is_told():
    assert await share_right(error=0.0) == 1.0
    assert 0.68 < await share_right(error=0.25) < 0.82


async def test_errors_in_common_are_not_removed_by_votes():
    judge = NoisyExaminer(lambda statement, task, answer: True, error=0.25, common_error=1.0)
    checked = UniversalVerifier(judge_model=judge, votes=5, layers=["reference"])
    verdicts = [(await checked.verdicts(group(n)))[0] for n in range(60)]
    assert {v.reliability for v in verdicts} == {1.0}
    assert 0 < sum(v.score == 0.0 for v in verdicts) < 60


async def test_invented_quotes_do_not_pass():
    judge = NoisyExaminer(lambda statement, task, answer: False, error=1.0, invented_quotes=1.0)
    [score] = await UniversalVerifier(judge_model=judge).score(group(1))
    assert (score.value, score.parts["votes/invalid_quote"]) == (0.0, 3.0)
