"""Tightening the system prompt changes what the judge reads, and nothing else does."""

from __future__ import annotations

from article import ARTICLE, four_answers
from fakes import prompt_of, scores_json
from groundrule.llm import ScriptedClient
from groundrule.rewards import ruler_score_group


async def prompt_under(system: str) -> str:
    judge = ScriptedClient([scores_json(0.1, 0.2, 0.3, 0.4)])
    await ruler_score_group(four_answers(system), judge)
    return prompt_of(judge.requests[0])


async def test_the_judge_reads_the_agents_own_system_prompt():
    assert ARTICLE["systems"]["strict"] in await prompt_under("strict")


async def test_strict_and_lax_differ_in_the_system_prompt_alone():
    strict, lax = ARTICLE["systems"]["strict"], ARTICLE["systems"]["lax"]
    assert (await prompt_under("lax")).replace(lax, strict) == await prompt_under("strict")


async def test_the_shared_question_is_shown_once_for_all_four_answers():
    assert (await prompt_under("strict")).count("[Retrieved context]: Refunds are available") == 1


async def test_every_answer_is_shown():
    prompt = await prompt_under("strict")
    assert [name for name, answer in ARTICLE["answers"].items() if answer not in prompt] == []
