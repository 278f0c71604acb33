"""The checks that no judge uses, by hand-counted examples."""

import pytest

from groundrule.data.scenario import Scenario
from groundrule.rewards.checks import (
    check_answer,
    facts_mentioned,
    longest_run,
    summarise,
    words_of,
)

BAKERY = Scenario(
    id="bakery-1",
    system="Answer from the passage.",
    question="When is the bread ready?",
    context="Bread is ready at 6:30. Cakes need two days notice; write to orders@example.com.",
    facts=(("6:30", "half past six"),),
)


def test_words_are_lower_case_and_numbers_keep_their_separators():
    assert words_of("At 6:30, the baker’s Bread!") == ["at", "6:30", "the", "baker's", "bread"]


def test_an_answer_made_of_the_passage_is_fully_grounded():
    assert check_answer("Bread is ready at 6:30.", BAKERY).grounded == 1.0


def test_content_words_that_the_passage_lacks_lower_the_share():
    # Content words: bread, ready, 6:30, free, coffee; the first three are in the passage.
    assert check_answer("Bread is ready at 6:30 with free coffee.", BAKERY).grounded == pytest.approx(0.6)


def test_declining_is_not_measured_as_ungrounded():
    check = check_answer("I can’t find that in the documents.", BAKERY)
    assert (check.abstains, check.grounded) == (True, None)


def test_an_answer_without_content_words_has_no_groundedness():
    assert check_answer("Yes, it is.", BAKERY).grounded is None


def test_an_empty_answer_is_counted_without_an_error():
    check = check_answer("", BAKERY)
    assert (check.words, check.grounded, check.copied, check.facts) == (0, None, 0.0, 0.0)


def test_numbers_and_addresses_that_nobody_gave_are_counted():
    check = check_answer("At 7 or 6:30; write to bread@example.com or orders@example.com.", BAKERY)
    assert (check.unsupported_numbers, check.unsupported_emails) == (1, 1)


def test_a_number_from_the_question_counts_as_supported():
    scenario = BAKERY.model_copy(update={"question": "Can I have 12 rolls?"})
    assert check_answer("12 rolls are fine.", scenario).unsupported_numbers == 0


def test_the_copied_share_is_the_longest_run_over_all_words():
    # "is ready at 6:30" is the longest run: 4 of 8 words.
    assert check_answer("Our lovely warm loaf is ready at 6:30", BAKERY).copied == 0.5


def test_a_fact_counts_in_any_of_its_forms():
    assert facts_mentioned("Come at half past  SIX.", BAKERY.facts) == 1.0


def test_a_fact_inside_a_longer_number_does_not_count():
    assert facts_mentioned("It takes 300 days.", [["30", "thirty"]]) == 0.0


def test_a_price_with_a_currency_sign_is_found():
    assert facts_mentioned("It costs £5, or £55 a year.", [["£5"]]) == 1.0


def test_without_facts_there_is_no_share():
    assert facts_mentioned("anything", []) is None


def test_half_of_the_facts_give_a_half():
    assert facts_mentioned("It is blue.", [["blue"], ["heavy"]]) == 0.5


def test_the_longest_run_is_found_anywhere():
    assert longest_run("a b c x b c d".split(), "z b c d a".split()) == 3


def test_distinct_is_answers_over_questions():
    other = BAKERY.model_copy(update={"id": "bakery-2", "question": "And the cakes?"})
    assert summarise(["Same.", "same. "], [BAKERY, other])["distinct"] == 0.5


def test_means_leave_out_what_does_not_apply():
    second = BAKERY.model_copy(update={"id": "bakery-2"})
    summary = summarise(["I can't find that.", "Bread is ready at 6:30."], [BAKERY, second])
    assert (summary["grounded"], summary["abstains"], summary["facts"]) == (1.0, 0.5, 0.5)
