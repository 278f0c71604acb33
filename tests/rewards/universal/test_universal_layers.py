"""The universal verifier, layer by layer, with judges whose replies are written down."""

from __future__ import annotations

import pytest

from fakes import chat, prompt_of, scores_json
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Rubric, Ruler, UniversalVerifier, apply_scores
from groundrule.rewards.universal.case import cases_of
from groundrule.rewards.universal.reference import ReferenceLayer
from groundrule.rewards.universal.rubric import RubricCriterion
from groundrule.rewards.universal.verdict import majority

QUESTION = "How long may I keep a book?"


def group(
    *answers: str, question: str = QUESTION, scenario_id: str | None = None, **metadata
) -> TrajectoryGroup:
    members = [Trajectory(messages_and_choices=chat(a, question=question)) for a in answers]
    return TrajectoryGroup(members, scenario_id=scenario_id, metadata=metadata)


def vote(verdict: str, quote: str = "") -> dict[str, str]:
    return {"quote": quote, "verdict": verdict}


def silent() -> ScriptedClient:
    """Fails when it is asked."""
    return ScriptedClient([])


def verifier(judge=None, **more) -> UniversalVerifier:
    return UniversalVerifier(judge_model=judge or silent(), **more)


def criteria(*rows: dict) -> Rubric:
    return Rubric(criteria=[RubricCriterion(**row) for row in rows])


RUBRIC = criteria(
    {"id": "term", "text": "names four weeks as the term", "weight": 3.0, "essential": True},
    {"id": "where", "text": "says where to return it", "weight": 1.0},
    {"id": "tone", "text": "never blames the reader", "kind": "judgement", "weight": 1.0},
    {"id": "fine", "text": "threatens a fine", "pitfall": True},
)
FULL = "You may keep it for four weeks. Bring it back to the desk."


def examiner(said: dict[str, tuple[str, str]]) -> ScriptedClient:
    """Answers by the text of a criterion, wherever it stands in the list."""

    def answer(request):
        listed = [line.partition(". ") for line in prompt_of(request).splitlines() if line[:1].isdigit()]
        by_text = {c.text: said[c.id] for c in RUBRIC.criteria}
        return {
            "criteria": [
                {"criterion": number, "verdict": by_text[text][0], "quote": by_text[text][1]}
                for number, _, text in listed
                if text in by_text
            ]
        }

    return ScriptedClient(answer)


ALL_MET = {
    "term": ("met", "four weeks"),
    "where": ("met", "to the desk"),
    "tone": ("met", ""),
    "fine": ("unmet", ""),
}


async def test_a_check_by_name_decides_without_a_judge():
    scores = await verifier().score(group(r"\boxed{28}", r"\boxed{4}", check="math", reference="28"))
    assert [s.value for s in scores] == [1.0, 0.0]


async def test_a_check_takes_a_reference_and_settings_of_its_own():
    check = {"kind": "regex", "reference": "four weeks", "anywhere": True}
    verdicts = await verifier().verdicts(group(FULL, "For a month.", check=check))
    assert [(v.score, v.layer, v.reliability) for v in verdicts] == [(1.0, "check", 1.0), (0.0, "check", 1.0)]


async def test_a_hurdle_fails_answers_and_passes_none():
    check = {"kind": "regex", "reference": "(?s).{1,40}", "decides": False}
    verdicts = await verifier().verdicts(group("Four weeks.", FULL, check=check, reference="four weeks"))
    assert [(v.score, v.layer) for v in verdicts] == [(1.0, "reference"), (0.0, "check")]


async def test_a_passed_hurdle_alone_is_no_score():
    check = {"kind": "regex", "reference": ".*", "decides": False}
    [score] = await verifier().score(group("Four weeks.", check=check))
    assert (
        score.reason == "no layer applies: the scenario has no check and no reference, and there is no rubric"
    )


async def test_a_check_that_cannot_decide_hands_on():
    [verdict] = await verifier().verdicts(group("four weeks", check="code", reference="four weeks"))
    assert (verdict.score, verdict.layer) == (1.0, "reference")


async def test_a_function_of_the_users_own_is_a_check(tmp_path):
    (tmp_path / "mine.py").write_text("def brief(answer):\n    return float(len(answer) < 12)\n")
    check = f"{tmp_path}/mine.py:brief"
    assert [s.value for s in await verifier().score(group("Four weeks.", FULL, check=check))] == [1.0, 0.0]


@pytest.mark.parametrize("check", ["openai/o3", {"reference": "x"}, 7, {"kind": "math", "decides": "no"}])
async def test_a_check_that_is_none_is_a_wrong_setting(check):
    with pytest.raises(ConfigError):
        await verifier().score(group("Four weeks.", check=check))


async def test_the_reference_in_another_dress_costs_no_call():
    judge = silent()
    [verdict] = await verifier(judge).verdicts(group("  FOUR weeks! ", reference="four weeks"))
    assert (verdict.score, verdict.evidence, len(judge.requests)) == (1.0, ("FOUR weeks!",), 0)


async def test_most_votes_decide_and_their_share_is_the_reliability():
    judge = ScriptedClient([vote("same", "28 days"), vote("different"), vote("same", "28 days")])
    [verdict] = await verifier(judge).verdicts(group("For 28 days.", reference="four weeks"))
    assert verdict.score == 1.0
    assert verdict.reliability == pytest.approx(2 / 3)
    assert verdict.evidence == ("28 days",)
    assert verdict.parts == {"votes/same": 2.0, "votes/different": 1.0}


async def test_a_quote_that_is_not_in_the_answer_makes_a_vote_count_against_it():
    judge = ScriptedClient([vote("same", "four weeks")] * 3)
    [score] = await verifier(judge).score(group("For a year.", reference="four weeks"))
    assert score.value == 0.0
    assert score.parts["votes/invalid_quote"] == 3.0
    assert "3 of these said so with a quote that is not in the answer" in score.explanation


async def test_a_quote_from_the_question_does_not_count():
    judge = ScriptedClient([vote("same", "keep a book")] * 3)
    [score] = await verifier(judge).score(group("For a year.", reference="four weeks"))
    assert score.value == 0.0


async def test_a_single_digit_is_a_quote_where_it_stands_alone():
    judge = ScriptedClient([vote("same", "4")] * 6)
    scores = await verifier(judge).score(
        group("It is 4, of course.", "It is 14, of course.", reference="4 weeks")
    )
    assert sorted(s.value for s in scores) == [0.0, 1.0]


async def test_votes_that_do_not_decide_are_no_score():
    judge = ScriptedClient([vote("unclear"), vote("same", "a while"), vote("different")])
    [score] = await verifier(judge).score(group("For a while.", reference="four weeks"))
    assert score.value is None
    assert score.reason == "the votes on the reference do not decide: 1 same, 1 different of 3"


async def test_a_judge_that_is_down_is_no_score():
    judge = ScriptedClient(lambda request: LlmError("the judge is down"))
    [score] = await verifier(judge).score(group("For 28 days.", reference="four weeks"))
    assert score.value is None
    assert "the judge is down" in score.reason


async def test_the_votes_show_the_two_texts_in_changing_order():
    judge = ScriptedClient([vote("different")] * 3)
    await verifier(judge).score(group("For 28 days.", reference="four weeks"))
    prompts = [r.messages[1]["content"] for r in judge.requests]
    assert sorted(p.index(" ANSWER>>>") < p.index(" REFERENCE>>>") for p in prompts) == [False, True, True]


async def test_an_answer_that_is_the_reference_is_still_shown_as_an_answer():
    layer = ReferenceLayer(verifier().judges, votes=1)
    [case] = cases_of(group("four weeks"))
    content = layer.messages(layer.judges[0], case, ["four weeks"], 0)[1]["content"]
    assert [line for line in content.splitlines() if line == "four weeks"] == ["four weeks", "four weeks"]


@pytest.mark.parametrize(("votes", "temperature"), [(1, None), (3, 1.0)])
async def test_several_votes_are_drawn_and_a_single_one_is_not(votes, temperature):
    judge = ScriptedClient([vote("different")] * votes)
    await verifier(judge, votes=votes).score(group("For 28 days.", reference="four weeks"))
    assert [r.params.get("temperature") for r in judge.requests] == [temperature] * votes
    assert len({r.params.get("seed") for r in judge.requests}) == votes


async def test_the_parameters_of_the_judge_go_before_our_own():
    judge = ScriptedClient([vote("different")] * 3)
    params = {"temperature": 0.3, "response_format": None}
    await verifier(judge, judge_params=params).score(group("For 28 days.", reference="four weeks"))
    sent = judge.requests[0].params
    assert (sent["temperature"], "response_format" in sent) == (0.3, False)


async def test_any_of_several_references_is_right():
    [score] = await verifier().score(group("28 days", reference=["four weeks", "28 days"]))
    assert score.value == 1.0


async def test_equal_answers_are_verified_once():
    judge = ScriptedClient([vote("same", "28 days")] * 3)
    scores = await verifier(judge).score(group("For 28 days.", "For 28 days.", reference="four weeks"))
    assert ([s.value for s in scores], len(judge.requests)) == ([1.0, 1.0], 3)


async def test_the_reliability_of_a_group_comes_from_its_votes():
    judge = ScriptedClient(
        lambda r: vote("same", "28 days") if "For 28 days." in prompt_of(r) else vote("different")
    )
    scores = await verifier(judge).score(group("For 28 days.", "For a year.", reference="four weeks"))
    assert scores.metrics == {"judge/by_reference": 2.0, "judge_reliability": 1.0}


async def test_a_rubric_gives_the_met_share_of_what_can_be_gained():
    judge = examiner({**ALL_MET, "where": ("unmet", "")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert verdict.score == pytest.approx(0.8)  # (3 + 1) of (3 + 1 + 1)
    assert verdict.evidence == ("four weeks",)
    assert verdict.explanation == "misses where (says where to return it)"


async def test_evidence_without_a_valid_quote_is_unmet():
    judge = examiner({**ALL_MET, "where": ("met", "to the librarian")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert verdict.score == pytest.approx(0.8)


async def test_what_a_tool_returned_is_no_evidence_of_what_the_agent_said():
    call = {"id": "1", "function": {"name": "look_up", "arguments": '{"term": "loan"}'}}
    turns = [
        *chat("", question=QUESTION)[:-1],
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "Books: four weeks."},
        {"role": "assistant", "content": "Bring it back to the desk."},
    ]
    asked = TrajectoryGroup([Trajectory(messages_and_choices=turns)])
    [case] = cases_of(asked)
    assert "look_up" in case.evidence
    [verdict] = await verifier(examiner(ALL_MET), rubric=RUBRIC).verdicts(asked)
    assert (verdict.score, verdict.evidence) == (0.0, ("to the desk",))


async def test_a_judgement_needs_no_quote():
    judge = examiner({**ALL_MET, "tone": ("met", "nowhere in it")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert (verdict.score, verdict.evidence) == (1.0, ("four weeks", "to the desk"))


async def test_an_essential_criterion_that_is_unmet_leaves_nothing():
    judge = examiner({**ALL_MET, "term": ("unmet", "")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert (verdict.score, verdict.explanation) == (
        0.0,
        "misses the essential term (names four weeks as the term)",
    )


async def test_a_pitfall_leaves_nothing_and_is_quoted():
    judge = examiner({**ALL_MET, "fine": ("met", "back to the desk")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert verdict.score == 0.0
    assert verdict.explanation == "has the pitfall fine (threatens a fine): 'back to the desk'"


async def test_a_pitfall_without_a_valid_quote_is_none():
    judge = examiner({**ALL_MET, "fine": ("met", "or you will pay")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert verdict.score == 1.0


async def test_up_to_30_percent_may_stay_open_and_the_rest_decides():
    judge = examiner({**ALL_MET, "where": ("cannot_assess", "")})
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert (verdict.score, verdict.parts["assessed"]) == (1.0, pytest.approx(5 / 6))


async def test_more_than_30_percent_that_cannot_be_assessed_is_no_score():
    judge = examiner({**ALL_MET, "where": ("cannot_assess", ""), "tone": ("cannot_assess", "")})
    [score] = await verifier(judge, rubric=RUBRIC).score(group(FULL))
    assert score.reason == "33% of the rubric cannot be assessed, more than 30%"


async def test_an_essential_criterion_that_cannot_be_assessed_is_no_score():
    judge = examiner({**ALL_MET, "term": ("cannot_assess", "")})
    [score] = await verifier(judge, rubric=RUBRIC).score(group(FULL))
    assert score.reason == "the essential criterion term cannot be assessed"


async def test_a_veto_counts_even_where_much_cannot_be_assessed():
    judge = examiner(
        {"term": ("unmet", ""), **dict.fromkeys(("where", "tone", "fine"), ("cannot_assess", ""))}
    )
    [verdict] = await verifier(judge, rubric=RUBRIC).verdicts(group(FULL))
    assert verdict.score == 0.0


async def test_a_programmatic_criterion_asks_nobody():
    rubric = criteria(
        {"id": "brief", "text": "has at most 30 characters", "kind": "programmatic", "check": "regex",
         "reference": "(?s).{1,30}"}
    )  # fmt: skip
    judge = silent()
    verdicts = await verifier(judge, rubric=rubric).verdicts(group("Four weeks.", FULL))
    assert ([v.score for v in verdicts], [v.reliability for v in verdicts]) == ([1.0, 0.0], [1.0, 1.0])


async def test_the_order_of_the_criteria_depends_on_the_seed_and_says_nothing_of_weights():
    shown = set()
    for seed in range(8):
        judge = examiner(ALL_MET)
        await verifier(judge, rubric=RUBRIC, seed=seed).score(group(FULL))
        text = judge.requests[0].messages[0]["content"]
        assert "essential" not in text
        shown.add(tuple(sorted(RUBRIC.criteria, key=lambda c: text.index(c.text))))
    assert len(shown) > 3


async def test_most_readings_decide_each_criterion():
    said = iter([ALL_MET, {**ALL_MET, "where": ("unmet", "")}, {**ALL_MET, "where": ("unmet", "")}])
    judges = [examiner(next(said)) for _ in range(3)]
    order = iter(judges)
    judge = ScriptedClient(lambda request: next(order)._play(request))
    [verdict] = await verifier(judge, rubric=RUBRIC, readings=3).verdicts(group(FULL))
    assert verdict.score == pytest.approx(0.8)
    assert sorted(verdict.readings) == pytest.approx([0.8, 0.8, 1.0])
    assert verdict.reliability == pytest.approx((1 + 1 + 1 + 2 / 3) / 4)


async def test_the_rubric_is_asked_where_the_reference_does_not_decide():
    def judge(request):
        return examiner(ALL_MET)._play(request) if "Criteria" in prompt_of(request) else vote("unclear")

    [verdict] = await verifier(ScriptedClient(judge), rubric=RUBRIC).verdicts(
        group(FULL, reference="28 days")
    )
    assert (verdict.score, verdict.layer, verdict.calls) == (1.0, "rubric", 4)


async def test_a_rubric_of_another_system_prompt_is_not_used():
    rubric = RUBRIC.model_copy(update={"spec_sha256": "0" * 64})
    [score] = await verifier(rubric=rubric).score(group(FULL))
    assert score.reason == "the rubric was made from another system prompt than this group's"


async def test_rubrics_may_go_by_scenario():
    judge = examiner(ALL_MET)
    checked = verifier(judge, rubric={"loan": RUBRIC})
    [known] = await checked.score(group(FULL, scenario_id="loan"))
    [unknown] = await checked.score(group(FULL, scenario_id="other"))
    assert (known.value, unknown.value) == (1.0, None)


async def test_layers_can_be_left_out():
    [score] = await verifier(layers=["check"]).score(group("four weeks", reference="four weeks"))
    assert score.value is None


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"layers": ["checks"]}, "did you mean 'check'"),
        ({"layers": []}, "the layers are"),
        ({"votes": 2}, "odd"),
        ({"readings": 0}, "odd"),
    ],
)
def test_a_wrong_setting_says_what_is_right(more, said):
    with pytest.raises(ConfigError, match=said):
        verifier(**more)


async def test_a_judge_that_reads_nothing_is_a_wrong_setting(judge_named):
    judge_named("test", "named_judges:longest")
    with pytest.raises(ConfigError, match="verify answers"):
        await UniversalVerifier(judge_model="test/longest").score(group("28 days", reference="four weeks"))


async def test_the_relative_pass_orders_what_is_level_and_nothing_at_0():
    relative = ScriptedClient(
        lambda r: scores_json(*[0.2 if "FOUR" in part else 1.0 for part in blocks(prompt_of(r))])
    )
    checked = verifier(relative=Ruler(relative))
    scores = await checked.score(
        group("FOUR WEEKS", "four  weeks!", ":", "Solution:", reference="four weeks")
    )
    assert [s.value for s in scores] == pytest.approx([0.96, 1.0, 0.0, 0.0])  # 1 - 0.05 x (1 - 0.2)
    assert (scores[0].parts["level"], scores[0].parts["relative"]) == (1.0, 0.2)


async def test_a_relative_pass_that_fails_leaves_the_levels():
    relative = ScriptedClient(lambda request: LlmError("down"))
    checked = verifier(relative=Ruler(relative))
    scores = await checked.score(group("FOUR WEEKS", "four  weeks!", reference="four weeks"))
    assert [s.value for s in scores] == [1.0, 1.0]


def blocks(prompt: str) -> list[str]:
    return prompt.split(">>>\n")[-3:-1]


def test_calls_are_counted_before_they_are_made_and_can_be_fewer():
    full = verifier(rubric=RUBRIC, relative=Ruler(silent()))
    counted = [full.calls_for(4), full.cheaper().calls_for(4), full.cheaper().cheaper().calls_for(4)]
    assert counted == [17, 16, 8]
    assert full.cheaper().cheaper().cheaper() is None


async def test_parts_and_explanation_reach_the_trajectory():
    judge = examiner(ALL_MET)
    checked = verifier(judge, rubric=RUBRIC)
    scored = apply_scores(group(FULL), await checked.score(group(FULL)), name="universal")
    metrics = scored.trajectories[0].metrics
    assert (metrics["universal_score"], metrics["universal/criterion/where"]) == (1.0, 1.0)
    assert metrics["universal/layer/rubric"] == 1.0


@pytest.mark.parametrize(
    ("votes", "asked", "found"),
    [
        ([True, True, False], 3, True),
        ([True, False, False], 3, False),
        ([True, False, None], 3, None),
        ([True, None, None], 3, None),
        ([False, False, None], 3, False),
        ([], 3, None),
    ],
)
def test_a_majority_needs_most_of_those_asked(votes, asked, found):
    assert majority(votes, asked) is found


async def test_as_the_judge_of_a_group_by_name_it_scores_like_itself(tmp_path, judge_named):
    judge_named("test", "test_universal_layers:approving")
    RUBRIC.save(tmp_path / "r.toml")
    by_name = Ruler(f"universal/{tmp_path / 'r.toml'}", {"judge": "test/x"})
    assert [s.value for s in await by_name.score(group(FULL, ":"))] == [1.0, 0.0]


def approving(name, params) -> ScriptedClient:
    return examiner(ALL_MET)


def test_by_name_it_takes_a_rubric_file_and_a_judge(tmp_path, judge_named):
    from groundrule.llm import registry

    judge_named("test", "named_judges:keyword")
    RUBRIC.save(tmp_path / "r.toml")
    made = registry.make(f"universal/{tmp_path / 'r.toml'}", {"judge": "test/x", "votes": 1})
    assert (made.rubric, made.votes) == (RUBRIC, 1)
    assert registry.make("universal/-", {"judge": "test/x"}).rubric is None
    with pytest.raises(ConfigError, match="judge"):
        registry.make("universal/-", {})
