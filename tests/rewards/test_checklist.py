"""The spec as a checklist: criteria, evidence, sums."""

import json

import pytest

from fakes import chat, group_of, prompt_of
from groundrule.data import ChatReply, Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError, JudgeError, JudgeReplyError
from groundrule.llm import ReplyCache, ScriptedClient
from groundrule.rewards import Ruler
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.checklist import Checklist, Criterion, extract_checklist
from groundrule.rewards.checklist.reader import own_text
from groundrule.rewards.checklist.verdicts import Finding, assess, is_quoted, read_verdicts

LIST = Checklist(
    criteria=[
        Criterion(id="period", text="names the period for returns", weight=3.0),
        Criterion(id="invented", text="invents nothing", kind="avoid", weight=1.0, veto=True),
    ]
)
EXTRACTED = {
    "criteria": [{"id": "c1", "text": "answers from the context", "kind": "do", "weight": 2, "veto": False}]
}


def findings(period: tuple[str, str], invented: tuple[str, str] = ("met", "")) -> dict[str, Finding]:
    return {"period": Finding(*period), "invented": Finding(*invented)}


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (findings(("met", "within 21 days")), 1.0),
        (findings(("met", "Within  21 DAYS.")), 1.0),
        (findings(("met", "within 30 days")), 0.25),
        (findings(("met", "")), 0.25),
        (findings(("broken", "")), 0.25),
        (findings(("met", "within 21 days"), ("broken", "a voucher")), 0.075),
        (findings(("met", "within 21 days"), ("broken", "a free lamp")), 1.0),
        (findings(("met", "within 21 days"), ("unclear", "")), 1.0),
        (findings(("n/a", ""), ("met", "")), 1.0),
        (findings(("unclear", ""), ("met", "")), None),
        (findings(("n/a", ""), ("n/a", "")), None),
    ],
)
def test_only_what_a_quote_shows_counts(found, value):
    assessed = assess(found, LIST, "You may return it within 21 days, and you get a voucher.")
    assert assessed.value == pytest.approx(value)


def test_a_breach_is_named_with_its_quote():
    assessed = assess(findings(("met", "21 days"), ("broken", "a voucher")), LIST, "21 days and a voucher")
    assert assessed.explanation == "breaks invented (invents nothing): 'a voucher'"


def test_a_quote_needs_more_than_punctuation():
    assert not is_quoted("...", "anything ...")
    assert is_quoted("二十一天", "您可以在二十一天内退书。")


def test_the_users_words_are_no_evidence_of_what_the_agent_did():
    attempt = attempt_of(
        [
            {"role": "user", "content": "is it 21 days?"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [{"id": "x", "function": {"name": "look", "arguments": '{"book": "atlas"}'}}],
            },
            {"role": "tool", "tool_call_id": "x", "content": "returns: 14 days"},
        ]
    )
    text = own_text(attempt)
    assert "21 days" not in text
    assert "atlas" in text
    assert "returns: 14 days" in text


def reply(*verdicts: dict[str, tuple[str, str]]) -> dict:
    return {
        "trajectories": [
            {
                "trajectory_id": str(number),
                "verdicts": [
                    {"criterion": name, "verdict": verdict, "quote": quote}
                    for name, (verdict, quote) in said.items()
                ],
            }
            for number, said in enumerate(verdicts, start=1)
        ]
    }


GOOD = {"period": ("met", "21 days"), "invented": ("met", "")}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (reply(GOOD), "missing_ids"),
        (reply(GOOD, GOOD, GOOD), "unknown_ids"),
        (reply(GOOD, {"period": ("met", "")}), "missing_ids"),
        (reply(GOOD, {**GOOD, "tone": ("met", "")}), "unknown_ids"),
        (reply(GOOD, {**GOOD, "period": ("yes", "")}), "wrong_type"),
        ({"trajectories": "all good"}, "wrong_type"),
        ({"scores": []}, "invalid_json"),
    ],
)
def test_a_reply_that_leaves_a_doubt_is_refused(data, kind):
    with pytest.raises(JudgeReplyError) as caught:
        read_verdicts(ChatReply(content=json.dumps(data)), 2, LIST)
    assert caught.value.kind == kind


def test_a_reply_that_was_cut_is_refused_however_complete():
    with pytest.raises(JudgeReplyError) as caught:
        read_verdicts(ChatReply(content=json.dumps(reply(GOOD)), finish_reason="length"), 1, LIST)
    assert caught.value.kind == "truncated"


def judging(request) -> dict:
    """Finds each answer in the prompt and decides by what it says."""
    prompt = prompt_of(request)
    answers = sorted(("within 21 days", "get a voucher too", "ask the shop"), key=prompt.index)
    said = {
        "within 21 days": GOOD,
        "get a voucher too": {"period": ("broken", ""), "invented": ("broken", "a voucher")},
        "ask the shop": {"period": ("broken", ""), "invented": ("met", "")},
    }
    return reply(*(said[answer] for answer in answers))


async def test_a_group_is_scored_criterion_by_criterion():
    client = ScriptedClient(judging)
    group = group_of("within 21 days", "get a voucher too", "ask the shop")
    scores = await Ruler(client, checklist=LIST, passes=2).score(group)
    assert [s.value for s in scores] == [1.0, 0.0, 0.25]
    assert scores.metrics["judge_reliability"] == 1.0
    assert "names the period for returns" in prompt_of(client.requests[0])


async def test_the_checklist_can_be_made_from_the_system_prompt_first():
    def judge(request):
        prompt = prompt_of(request)
        if "turn the system prompt" in prompt:
            return EXTRACTED
        quotes = sorted(("a good answer", "a bad one"), key=prompt.index)
        return reply(*({"c1": ("met" if q == "a good answer" else "broken", q)} for q in quotes))

    scores = await Ruler(ScriptedClient(judge), checklist="auto").score(
        group_of("a good answer", "a bad one")
    )
    assert [s.value for s in scores] == [1.0, 0.0]


async def test_a_judge_of_criteria_is_not_held_to_the_form_of_overall_scores():
    client = ScriptedClient(judging)
    group = group_of("within 21 days", "get a voucher too", "ask the shop")
    await Ruler(client, {"temperature": 0.0}, checklist=LIST).score(group)
    assert client.requests[0].params == {"temperature": 0.0}


async def test_different_system_prompts_cannot_share_a_checklist():
    group = TrajectoryGroup(
        [Trajectory(messages_and_choices=chat("one", system=s)) for s in ("Be brief.", "Be long.")]
    )
    with pytest.raises(JudgeError, match="share no system prompt"):
        await Ruler(ScriptedClient([]), checklist="auto").scores_or_raise(group)


async def test_extraction_is_asked_once_and_kept(tmp_path):
    client = ScriptedClient([EXTRACTED])
    cache = ReplyCache(tmp_path / "replies.sqlite")
    lists = [await extract_checklist("Answer from the context.", client, cache=cache) for _ in range(2)]
    assert lists[0] == lists[1]
    assert lists[0].criteria[0].weight == 2.0
    assert len(client.requests) == 1
    assert lists[0].fits("Answer from the context.")
    assert not lists[0].fits("Answer as you like.")


async def test_a_bad_extraction_is_asked_again():
    client = ScriptedClient([{"criteria": []}, EXTRACTED])
    assert len((await extract_checklist("Be brief.", client)).criteria) == 1


@pytest.mark.parametrize("spec", ["", "  \n"])
async def test_an_empty_spec_has_no_checklist(spec):
    with pytest.raises(ConfigError, match="system prompt is empty"):
        await extract_checklist(spec, ScriptedClient([]))


async def test_a_judge_that_is_no_chat_model_makes_no_checklist(judge_named):
    judge_named("long", "named_judges:longest")
    with pytest.raises(ConfigError, match="does not read instructions"):
        await extract_checklist("Be brief.", "long/any")


@pytest.mark.parametrize("name", ["list.toml", "list.json"])
def test_a_checklist_file_reads_back_equal(tmp_path, name):
    path = tmp_path / name
    odd = Criterion(id='q"1', text='Says "no" \\ never\nlies\x7f – 永不', weight=0.5)
    kept = Checklist(criteria=[*LIST.criteria, odd], spec_sha256="ab")
    kept.save(path)
    assert Checklist.load(path) == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("criteria = []", "criteria is"),
        ("[[criteria]]\nid = 'a'\ntext = 'x'\nwieght = 2", "wieght"),
        ("[[criteria]]\nid = 'a'\ntext = 'x'\n[[criteria]]\nid = 'a'\ntext = 'y'", "'a' is used twice"),
        ("[[criteria", "neither TOML nor JSON"),
    ],
)
def test_a_wrong_checklist_file_is_named_with_its_fault(tmp_path, text, said):
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        Checklist.load(path)
