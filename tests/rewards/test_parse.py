"""Judges' replies as they come: each kind of damage is read right or refused by name."""

import json
import time
from pathlib import Path

import pytest

from groundrule.data import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.llm.scripted import reply_of
from groundrule.rewards import parse_judge_reply
from groundrule.rewards.parse import parse_chat_reply
from groundrule.rewards.verdict import parse_verdict

CASES = json.loads((Path(__file__).parents[1] / "cases" / "judge_replies.json").read_text("utf-8"))

GOOD = (
    '{"scores": [{"trajectory_id": "1", "explanation": "a", "score": 0.9}, '
    '{"trajectory_id": "2", "explanation": "b", "score": 0.2}]}'
)
DRAFT = GOOD.replace("0.9", "0.1")


def scores(reply: str, n: int = 2) -> list[float]:
    return [said.score for said in parse_judge_reply(reply, n)]


def kind(reply: str, n: int = 2) -> str:
    with pytest.raises(JudgeReplyError) as caught:
        parse_judge_reply(reply, n)
    return caught.value.kind


def one(score: str) -> str:
    """A reply about one trajectory whose score is written like this."""
    return f'{{"scores": [{{"trajectory_id": "1", "explanation": "", "score": {score}}}]}}'


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_reply_is_read_or_refused_as_the_case_says(case):
    message = case.get("message") or {"content": case["reply"]}
    reply = reply_of({**message, "finish_reason": case.get("finish_reason", "stop")})
    if "error" in case:
        with pytest.raises(JudgeReplyError) as caught:
            parse_chat_reply(reply, case["n"])
        assert caught.value.kind == case["error"]
        assert caught.value.detail == case.get("detail", caught.value.detail)
    else:
        assert [said.score for said in parse_chat_reply(reply, case["n"])] == case["scores"]


def test_explanations_stay_with_their_ids():
    reply = (
        '{"scores": [{"trajectory_id": 2, "explanation": "二", "score": 0}, '
        '{"trajectory_id": 1, "explanation": "一", "score": 1}]}'
    )
    assert [(s.trajectory_id, s.explanation, s.score) for s in parse_judge_reply(reply, 2)] == [
        ("1", "一", 1.0),
        ("2", "二", 0.0),
    ]


def test_a_reply_cut_at_its_length_is_truncated_however_complete_it_looks():
    with pytest.raises(JudgeReplyError) as caught:
        parse_judge_reply(GOOD, 2, "length")
    assert caught.value.kind == "truncated"


def test_length_is_checked_before_refusal_and_emptiness():
    with pytest.raises(JudgeReplyError) as caught:
        parse_chat_reply(ChatReply(content=None, refusal="no", finish_reason="length"), 2)
    assert caught.value.kind == "truncated"


def test_a_content_filter_is_a_refusal():
    with pytest.raises(JudgeReplyError) as caught:
        parse_chat_reply(ChatReply(content="", finish_reason="content_filter"), 2)
    assert caught.value.kind == "refusal"


def test_a_refusal_part_in_a_list_of_parts_is_a_refusal():
    parts = [{"type": "refusal", "refusal": "I will not grade this."}]
    with pytest.raises(JudgeReplyError) as caught:
        parse_chat_reply(ChatReply(content=parts), 2)
    assert caught.value.kind == "refusal"


@pytest.mark.parametrize(
    "reply",
    [
        f"<think>{DRAFT}</think>{GOOD}",
        f"<think>\nfirst {DRAFT}\n</think>\n\n```json\n{GOOD}\n```",
        f"first {DRAFT}\n</think>\n{GOOD}",
        f"<think>a <think>b</think> {DRAFT} </think>{GOOD}",
        f'<think>{{"scores": [ and so on</think>{GOOD}',
        f"<thinking>{DRAFT}</thinking>{GOOD}",
        f"<reasoning>{DRAFT}</reasoning>{GOOD}",
        f"[THINK]{DRAFT}[/THINK]{GOOD}",
        f"<|channel|>analysis<|message|>{DRAFT}<|end|>{GOOD}",
    ],
)
def test_the_answer_counts_and_not_a_draft_in_the_thinking(reply):
    assert scores(reply) == [0.9, 0.2]


def test_thinking_that_never_ends_leaves_no_answer():
    assert kind(f"<think>{GOOD}") == "empty"


def test_thinking_tags_inside_an_explanation_are_text():
    assert scores(GOOD.replace('"a"', '"it prints </think> and <think>"')) == [0.9, 0.2]


def test_two_equal_verdicts_are_one():
    assert scores(GOOD + "\nTo repeat:\n" + GOOD) == [0.9, 0.2]


def test_two_verdicts_that_disagree_are_ambiguous():
    assert kind(DRAFT + "\nCorrection:\n" + GOOD) == "ambiguous"


def test_a_complete_verdict_followed_by_an_incomplete_one_is_ambiguous():
    correction = '{"scores": [{"trajectory_id": "1", "score": 0.4}]}'
    assert kind(f"{GOOD}\nCorrection: {correction}") == "ambiguous"


def test_an_example_that_does_not_fit_may_precede_the_verdict():
    assert scores(f"The format is {one('0.0')}. Now:\n{GOOD}") == [0.9, 0.2]


def test_a_verdict_followed_by_one_that_is_cut_off_is_invalid():
    assert kind(GOOD + '\nCorrection: {"scores": [{"traj') == "invalid_json"


def test_cut_json_is_never_completed():
    for length in range(1, len(GOOD)):
        assert kind(GOOD[:length]) == "invalid_json"


def test_the_scores_inside_a_cut_object_do_not_count_as_a_bare_list():
    assert kind('{"scores": [{"trajectory_id": "1", "score": 0.5}], "note": "cut', 1) == "invalid_json"


def test_a_bare_list_of_scores_is_taken():
    assert scores('[{"trajectory_id": "2", "score": 0.2}, {"trajectory_id": "1", "score": 0.9}]') == [
        0.9,
        0.2,
    ]


def test_a_key_given_twice_is_ambiguous():
    assert kind('{"scores": [{"trajectory_id": "1", "score": 0.9, "score": 0.1}]}', 1) == "ambiguous"


def test_a_key_given_twice_is_seen_in_json_that_needs_mending():
    assert kind("{'scores': [{'trajectory_id': '1', 'score': 0.9, 'score': 0.1},]}", 1) == "ambiguous"


@pytest.mark.parametrize("written", ["1e-1", "0.1", '"0.1"', '" +.1 "', '"0.10"'])
def test_a_tenth_is_read_in_each_spelling(written):
    assert scores(one(written), 1) == [0.1]


@pytest.mark.parametrize(
    "written",
    [
        "true",
        "false",
        '"8/10"',
        '"85%"',
        '"0.8x"',
        '"1e-1"',
        '""',
        '"high"',
        "[0.5]",
        "{}",
        "85%",
        "8/10",
        "0.8x",
        "0.",
        '"1."',
        '"٠.٩"',
    ],
)
def test_what_is_no_plain_number_is_a_wrong_type(written):
    assert kind(one(written), 1) == "wrong_type"


@pytest.mark.parametrize(
    "written", ["NaN", "Infinity", "-Infinity", '"nan"', '"-inf"', '"Infinity"', "nan", "1e999"]
)
def test_what_is_not_finite_is_refused(written):
    assert kind(one(written), 1) == "non_finite"


@pytest.mark.parametrize("written", ["-0.1", "1.0000001", "7", "100", '"1.5"', '"-0.1"', "1e9"])
def test_out_of_range_is_refused_and_never_clamped(written):
    assert kind(one(written), 1) == "out_of_range"


@pytest.mark.parametrize("written", ["0.9 5", "0. 9", "1 0", '"0." "9"', "0.9 0.2", "- 1", "0.9 // of 1"])
def test_two_numbers_never_become_one(written):
    assert kind(one(written), 1) == "invalid_json"


def test_a_null_score_is_missing():
    assert kind(one("null"), 1) == "missing_score"


@pytest.mark.parametrize("written", ["true", "1.0", '["1"]'])
def test_an_id_that_is_no_text_or_integer_is_a_wrong_type(written):
    assert kind(f'{{"scores": [{{"trajectory_id": {written}, "score": 0.5}}]}}', 1) == "wrong_type"


def test_a_score_without_an_id_is_missing_ids():
    assert kind('{"scores": [{"score": 0.5}]}', 1) == "missing_ids"


def test_scores_that_are_no_list_are_a_wrong_type():
    assert kind('{"scores": {"1": 0.9, "2": 0.2}}') == "wrong_type"


def test_an_empty_object_in_a_fence_has_no_scores():
    assert kind("```json\n{}\n```") == "missing_ids"


def test_braces_in_prose_are_no_answer():
    assert kind('I looked at {"a": 1} and {b: 2} and found nothing.') == "invalid_json"


def test_an_unclosed_quotation_in_the_prose_does_not_hide_the_verdict():
    assert scores('Trajectory 1 wrote {"name": "x" and stopped. ' + GOOD) == [0.9, 0.2]


def test_only_invisible_characters_are_empty():
    assert kind("\ufeff\u200b \n") == "empty"


@pytest.mark.parametrize(
    "reply",
    [
        "{scores: [{trajectory_id: 1, explanation: 'it\\'s \"good\"', score: .5}]}",
        '{"scores": [{"trajectory_id": "1", "explanation": "\\alpha and \\(x\\)", "score": 0.5,},],}',
        '{"scores": [{"trajectory_id": "1", "explanation": "two\nlines", "score": 0.5}]}',
        "{'scores': [{'trajectory_id': 1, 'explanation': None, 'score': 0.5}]}",
    ],
)
def test_slips_of_syntax_are_mended(reply):
    assert scores(reply, 1) == [0.5]


def test_missing_commas_between_objects_are_mended():
    assert scores(GOOD.replace("}, {", "} {")) == [0.9, 0.2]


@pytest.mark.parametrize(
    "reply",
    [
        '{"a":' * 100_000,
        "[" * 300_000,
        '{"' * 200_000,
        "[{" * 100_000 + "]",
        "<think>" * 50_000,
        "</think>" * 50_000,
        "[[" * 20 + "]]" * 20,
    ],
)
def test_huge_and_deep_replies_are_refused_quickly(reply):
    started = time.perf_counter()
    assert kind(reply) in ("invalid_json", "empty", "missing_ids")
    assert time.perf_counter() - started < 5


def test_a_long_tail_of_blanks_is_ignored():
    assert scores(GOOD + "\n \t" * 100_000) == [0.9, 0.2]


def test_a_number_with_thousands_of_digits_is_refused():
    assert kind(one("9" * 5000), 1) == "invalid_json"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Absolutely not [CORRECT]. Verdict: INCORRECT", "INCORRECT"),
        ("Verdict: CORRECT\nOn reflection. Verdict: **INCORRECT**", "INCORRECT"),
        ("<think>Verdict: CORRECT</think>Verdict: [[incorrect]]", "INCORRECT"),
        ("This is INCORRECT.", "INCORRECT"),
        ("verdict = correct", "CORRECT"),
    ],
)
def test_a_verdict_is_read_as_a_whole_word(reply, label):
    assert parse_verdict(reply, ["CORRECT", "INCORRECT"]) == label


def test_a_word_that_begins_like_a_label_is_not_that_label():
    with pytest.raises(JudgeReplyError) as caught:
        parse_verdict("Absolutely.", ["A", "B"])
    assert caught.value.kind == "invalid_json"


@pytest.mark.parametrize("reply", ["CORRECT or INCORRECT?", "Verdict: not CORRECT", "Verdict: "])
def test_a_verdict_in_doubt_is_ambiguous(reply):
    with pytest.raises(JudgeReplyError) as caught:
        parse_verdict(reply, ["CORRECT", "INCORRECT"])
    assert caught.value.kind == "ambiguous"
