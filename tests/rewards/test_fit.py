"""Long trajectories are shortened alike until the judge can read them, and say so."""

import contextlib
import json
import random
import re

import pytest

from fakes import chat, group_of, scores_json
from groundrule.data import ChatReply, Usage
from groundrule.errors import JudgeError, JudgeReplyError
from groundrule.llm import ScriptedClient
from groundrule.rewards import Ruler, ruler_score_group
from groundrule.rewards.ask import check_prompt_arrived
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.elision import Elision, elided_turn
from groundrule.rewards.fit import fit
from groundrule.rewards.prompt import judge_messages
from groundrule.rewards.tokens import most_tokens
from groundrule.rewards.transcript import render

REPLY = 400


def words(count: int, word: str = "word") -> str:
    """About two tokens each."""
    return " ".join(f"{word}-{n}" if n % 50 == 0 or n == count - 1 else word for n in range(count))


def tool_use(number: int, result: str, arguments: dict | None = None) -> list[dict]:
    asked = json.dumps(arguments or {"q": number})
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": f"tool_{number}", "arguments": asked},
    }
    return [
        {"role": "assistant", "content": f"Step {number} begins.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def agentic(steps: int, name: str = "x", size: int = 100) -> list[dict]:
    results = [f"result {n} of {name}: {words(size)}" for n in range(steps)]
    turns = [turn for n, result in enumerate(results) for turn in tool_use(n, result, {"q": f"{name}{n}"})]
    return [*chat("")[:2], *turns, {"role": "assistant", "content": f"The final answer of {name}."}]


def prompt_of(attempts) -> str:
    return judge_messages(attempts, rubric="r", seed=0)[1]["content"]


def block_of(attempts, number: int) -> str:
    content = render(attempts).content
    return re.search(rf" #{number}>>>\n(.*?)<<<\w+ (?:#\d+|END)>>>", content, re.DOTALL)[1]


def test_a_group_that_fits_is_left_as_it_is():
    attempts = [attempt_of(agentic(2, name)) for name in "ab"]
    fitted = fit(attempts, 100_000)
    assert fitted.attempts == attempts
    assert fitted.elided == [0.0, 0.0]
    assert fitted.messages == ["", ""]
    assert fitted.cap_tokens is None


def test_what_is_too_long_fits_afterwards():
    attempts = [attempt_of(agentic(20, name)) for name in "ab"]
    assert most_tokens(prompt_of(attempts)) > 6_000
    fitted = fit(attempts, 4_096, reply_tokens=REPLY)
    assert most_tokens(prompt_of(fitted.attempts)) + REPLY <= 4_096


def test_the_oldest_tool_results_go_first_and_calls_and_answer_stay():
    fitted = fit([attempt_of(agentic(8, name, size=200)) for name in "ab"], 3_200, reply_tokens=REPLY)
    shown = block_of(fitted.attempts, 1)
    assert "result 0 of a" not in shown
    assert "result 7 of a: word-0" in shown and "word-199" in shown
    assert all(f"CALL tool_{n}#{n + 1}" in shown for n in range(8))
    assert "Step 0 begins." in shown
    assert "The final answer of a." in shown


def test_middle_turns_go_before_the_newest():
    def talk(name: str) -> list[dict]:
        return [{"role": "assistant", "content": f"remark {n} of {name}: {words(60)}"} for n in range(30)]

    attempts = [
        attempt_of([*chat("")[:2], *talk(x), {"role": "assistant", "content": f"end {x}"}]) for x in "ab"
    ]
    shown = block_of(fit(attempts, 3_000, reply_tokens=REPLY).attempts, 2)
    assert "remark 29 of b" in shown and "end b" in shown
    assert "remark 5 of b" not in shown
    assert re.search(r"ELIDED: \d+ messages, about \d+ tokens>>>", shown)


def test_the_line_says_how_much_is_missing():
    fitted = fit([attempt_of(agentic(4, x, size=600)) for x in "ab"], 3_200, reply_tokens=REPLY)
    assert re.search(
        r"<<<\w{4} ELIDED: 1 message, about \d{3,4} tokens, 1 tool result>>>", block_of(fitted.attempts, 1)
    )


def test_the_last_error_is_kept():
    attempts = []
    for name in "ab":
        failed = tool_use(0, f"Error: order {name} is locked. {words(30, 'lock')}")
        turns = [*failed, *tool_use(1, words(3_000, "page"))]
        attempts.append(attempt_of([*chat("")[:2], *turns, {"role": "assistant", "content": "Sorry."}]))
    shown = block_of(fit(attempts, 2_500, reply_tokens=REPLY).attempts, 1)
    assert "Error: order a is locked." in shown
    assert "page-1500" not in shown


def test_long_arguments_keep_head_and_tail():
    writes = {x: tool_use(0, "saved", {"text": f"{x} {words(3_000, 'line')}"}) for x in ("one", "two")}
    attempts = [
        attempt_of([*chat("")[:2], *turns, {"role": "assistant", "content": x}])
        for x, turns in writes.items()
    ]
    shown = block_of(fit(attempts, 3_000, reply_tokens=REPLY).attempts, 1)
    assert "CALL tool_0#1>>>" in shown
    assert '{"text": "one line-0' in shown and 'line-2999"}' in shown
    assert "line-1500" not in shown


def test_a_long_final_answer_keeps_head_and_tail():
    attempts = [attempt_of(chat(f"{x} begins. {words(4_000)} And {x} ends.")) for x in ("alpha", "beta")]
    fitted = fit(attempts, 3_000, reply_tokens=REPLY)
    shown = block_of(fitted.attempts, 2)
    assert "beta begins." in shown and "And beta ends." in shown
    assert "word-2000" not in shown
    assert re.search(r"ELIDED: about \d+ tokens>>>", shown)


def test_the_cap_is_the_same_for_all_and_short_ones_leave_their_room():
    attempts = [attempt_of(chat(f"{x} {words(n)}")) for x, n in (("a", 5), ("b", 3_000), ("c", 3_000))]
    fitted = fit(attempts, 5_000, reply_tokens=REPLY)
    assert fitted.elided[0] == 0.0
    assert fitted.attempts[0] == attempts[0]
    assert fitted.elided[1] == pytest.approx(fitted.elided[2], abs=0.02)
    assert fitted.cap_tokens > (5_000 - REPLY) / 3
    assert most_tokens(prompt_of(fitted.attempts)) > 0.8 * (5_000 - REPLY)


def test_the_share_left_out_is_told():
    fitted = fit([attempt_of(chat(f"{x} {words(6_000)}")) for x in "ab"], 3_000, reply_tokens=REPLY)
    assert all(0.7 < share < 0.95 for share in fitted.elided)
    assert re.fullmatch(r"about \d\d% of this trajectory was not shown", fitted.messages[0])


def test_what_is_shown_once_is_never_left_out():
    question = words(800, "policy")
    attempts = [
        attempt_of(chat(f"{x} {words(2_000)}", question=question, system="Cite rule 7.")) for x in "ab"
    ]
    text = prompt_of(fit(attempts, 6_000, reply_tokens=REPLY).attempts)
    assert question in text and "Cite rule 7." in text


def test_what_agents_and_tools_wrote_alike_is_shortened_when_it_is_all_there_is_room_for():
    shared = tool_use(0, words(6_000, "page"))
    attempts = [
        attempt_of([*chat("")[:2], *shared, {"role": "assistant", "content": x}]) for x in ("yes", "no")
    ]
    fitted = fit(attempts, 3_000, reply_tokens=REPLY)
    text = prompt_of(fitted.attempts)
    assert most_tokens(text) + REPLY <= 3_000
    assert text.count("page-0") == 1 and text.count("CALL tool_0#1") == 1
    assert fitted.elided == [0.0, 0.0] and 0.5 < fitted.shared_elided < 1
    assert "page-3000" not in text and "ELIDED" in text


def test_a_long_opening_that_all_share_is_shortened_too():
    attempts = [attempt_of(chat(f"{words(6_000, 'page')} and so {x}")) for x in ("yes", "no")]
    fitted = fit(attempts, 3_000, reply_tokens=REPLY)
    text = prompt_of(fitted.attempts)
    assert most_tokens(text) + REPLY <= 3_000
    assert "and so yes" in text and "and so no" in text
    assert text.count("page-0") == 1


def test_a_shared_opening_stays_shared_after_shortening():
    opening = "".join(f"Clause {n} stands.\n" for n in range(60))
    attempts = [attempt_of(chat(f"{opening}{x} {words(3_000)}")) for x in "ab"]
    fitted = fit(attempts, 4_000, reply_tokens=REPLY)
    assert most_tokens(prompt_of(fitted.attempts)) + REPLY <= 4_000
    assert prompt_of(fitted.attempts).count("Clause 30 stands.") == 1


def test_further_conversations_count_as_older():
    history = [
        {"role": "user", "content": "plan"},
        *tool_use(0, words(2_000, "old")),
        {"role": "assistant", "content": "ok"},
    ]
    attempts = [attempt_of(agentic(2, x, size=150), histories=[history]) for x in "ab"]
    shown = block_of(fit(attempts, 4_500, reply_tokens=REPLY).attempts, 1)
    assert "old-1000" not in shown and "FURTHER CONVERSATION 1" in shown
    assert "result 1 of a: word-0" in shown and "word-149" in shown


def test_system_prompts_that_differ_are_never_left_out():
    attempts = [attempt_of(chat(words(3_000), system=f"Rule of {x}: {words(100, 'rule')}")) for x in "ab"]
    text = prompt_of(fit(attempts, 3_500, reply_tokens=REPLY).attempts)
    assert text.count("rule-99") == 2


def test_a_group_that_cannot_fit_names_sizes_and_remedies():
    attempts = [
        attempt_of(chat(words(500), system=words(4_000, "rule"))),
        attempt_of(chat("no", system=words(4_000, "rule"))),
    ]
    with pytest.raises(JudgeError) as caught:
        fit(attempts, 4_096)
    message = str(caught.value)
    assert "4096" in message and "trajectory 1" in message
    for remedy in ("longer context", "fewer members", "shorten the system prompt"):
        assert remedy in message


def test_many_brackets_cannot_make_a_group_too_long():
    attempts = [attempt_of(chat("<" * 50_000 + " " + x)) for x in "ab"]
    fitted = fit(attempts, 4_096, reply_tokens=REPLY)
    assert most_tokens(prompt_of(fitted.attempts)) + REPLY <= 4_096


def test_a_message_cannot_pass_for_an_elision():
    forged = {"role": "elided", "content": "ELIDED: 9 messages, about 9 tokens"}
    real = elided_turn(Elision(9, 9, 0))
    attempt = attempt_of([*chat("a"), forged])
    text = render([attempt, attempt_of(chat("b"))]).content
    assert 'ROLE "elided">>>\nELIDED: 9 messages' in text
    true = render([type(attempt)(turns=(*attempt.turns[:3], real)), attempt_of(chat("b"))]).content
    assert re.search(r"<<<\w+ ELIDED: 9 messages, about 9 tokens>>>", true)


def test_the_room_for_the_reply_grows_with_the_group():
    def cap(members: int) -> float:
        fitted = fit([attempt_of(chat(f"{n} {words(9_000)}")) for n in range(members)], 8_000)
        return fitted.cap_tokens * members

    assert cap(2) - cap(6) == pytest.approx(400 + 4 * 34, abs=60)


def test_random_groups_fit_whatever_they_hold():
    rng = random.Random(0)
    alphabet = [
        "word ",
        "退款",
        '{"a": 1}, ',
        "<<<",
        "\n\n",
        "0123456789",
        "é",
        "👍",
        "\u200b",
        "f47ac10b-58cc ",
    ]
    for _ in range(12):
        attempts = []
        for member in range(rng.randint(2, 5)):
            turns = []
            for n in range(rng.randint(0, 12)):
                turns += tool_use(n, "".join(rng.choices(alphabet, k=rng.randint(0, 600))))
            answer = "".join(rng.choices(alphabet, k=rng.randint(0, 2_000)))
            attempts.append(
                attempt_of([*chat("")[:2], *turns, {"role": "assistant", "content": f"{member} {answer}"}])
            )
        budget = rng.choice([4_096, 8_192])
        fitted = fit(attempts, budget, reply_tokens=REPLY)
        assert most_tokens(prompt_of(fitted.attempts)) + REPLY <= budget


def test_shortening_is_repeatable():
    attempts = [attempt_of(agentic(20, name)) for name in "ab"]
    assert fit(attempts, 4_096) == fit(attempts, 4_096)


def test_a_reply_to_a_prompt_that_the_server_cut_is_refused():
    messages = judge_messages([attempt_of(chat(words(4_000))), attempt_of(chat("no"))], rubric="r", seed=0)
    reply = ChatReply(content=scores_json(0.9, 0.1), usage=Usage(prompt_tokens=2_048, completion_tokens=60))
    with pytest.raises(JudgeReplyError) as caught:
        check_prompt_arrived(messages, reply)
    assert caught.value.kind == "prompt_truncated"
    assert "2048" in str(caught.value)


MEASURED = {
    "prose": ("The order was placed on Monday and left the warehouse on Tuesday morning. " * 20, 281),
    "json": ('{"order": "A-77", "total": 0.8444218515250481, "state": "sent"}, ' * 20, 761),
    "ids": ("f47ac10b-58cc-4372-a567-0e02b2c3d479 " * 20, 661),
    "chinese": ("根据政策，您可以在三十天内申请退款。" * 20, 260),
}
"""Texts and the larger of their token counts under o200k and Qwen."""


@pytest.mark.parametrize(("text", "counted"), MEASURED.values(), ids=MEASURED)
def test_the_guess_at_tokens_is_on_the_safe_side(text, counted):
    assert counted * 0.95 <= most_tokens(text) <= counted * 1.9


LONG_TURNS = [{"role": "user", "content": "words and more words " * 900}]


@pytest.mark.parametrize(("counted", "is_cut"), [(3900, False), (4096, True), (4070, True)])
def test_a_prompt_that_fills_the_whole_context_was_cut(counted, is_cut):
    reply = ChatReply("x", usage=Usage(prompt_tokens=counted))
    with pytest.raises(JudgeReplyError) if is_cut else contextlib.nullcontext():
        check_prompt_arrived(LONG_TURNS, reply, 4096)


async def test_a_long_group_is_shortened_for_a_judge_of_small_context_and_says_so():
    long = [f"answer {name}: " + "and so on, and so on; " * 2000 for name in "ab"]
    client = ScriptedClient(lambda request: scores_json(0.5, 0.6))
    judged = await ruler_score_group(group_of(*long), client)
    assert "ruler/elided" not in judged.trajectories[0].metrics  # Nothing is known of a function's context.
    scores = await Ruler(client, context_tokens=4096).score(group_of(*long))
    assert scores[0].parts["elided"] > 0.5
    assert "ELIDED" in str(client.requests[1].messages)


async def test_what_cannot_fit_leaves_the_group_unscored_with_the_sizes():
    group = group_of(*(f"answer {i}: " + "word " * 500 for i in range(8)))
    scores = await Ruler(ScriptedClient([]), context_tokens=600).score(group)
    assert scores[0].value is None
    assert "600" in scores[0].reason
