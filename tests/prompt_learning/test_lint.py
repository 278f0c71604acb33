"""What keeps a proposed lesson from being tested."""

from __future__ import annotations

import pytest

from groundrule.data import Scenario
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.lint import Leaks, refusal_of
from groundrule.prompt_learning.playbook import Lesson, Playbook

SPEC = (
    "You answer customers of Northwind from the passage alone. Refunds take 14 days.\n"
    "Always name the source of a price."
)
BOOK = Playbook(
    (Lesson("L1", "Quote the sentence that supports a claim."), Lesson("L2", "Write short paragraphs."))
)
SCENARIO = Scenario(
    id="s1",
    question="When does the shop in Canal Street open?",
    context=(
        "Opening hours\nThe shop of Marta Klein opens at 8:30 and closes at 18.00 on weekdays. Deposits are 250 euros. "
        "Opening on Sundays costs extra (see Terms). Write to shop@example.com."
    ),
    reference="It opens at half past eight in the morning sharp.",
    facts=(("8:30", "half past 8"), ("the Zeppelin hall",)),
    split="held-out",
)
NO_LEAKS = Leaks.of([], SPEC)
LEAKS = Leaks.of([SCENARIO], SPEC)


def reason(text, action="add", lesson=None, *, playbook=BOOK, leaks=NO_LEAKS, spec=SPEC):
    return refusal_of(Edit(action, text, lesson), playbook, spec, leaks)


def leaked(text):
    return LEAKS.in_text(text)


def test_a_lesson_with_nothing_wrong_is_worth_a_test():
    assert reason("Give each date with its year.") is None


def test_a_lesson_without_a_word_is_refused():
    assert reason("...") == "it has no words"


def test_a_lesson_of_another_script_has_words():
    assert reason("回答时请注明来源。") is None


def test_a_lesson_of_forty_five_words_is_not_too_long():
    assert reason(" ".join(f"w{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(45))) is None


def test_a_lesson_of_forty_six_words_is_too_long():
    assert reason("word " * 46) == "46 words; a lesson has at most 45"


def test_a_lesson_that_is_there_already_is_refused():
    # Of the content words {quote, sentence, supports, claim, fully} four of five are shared.
    assert reason("Quote the sentence that fully supports a claim.") == (
        "it says what is said already: 'Quote the sentence that supports a claim.'"
    )


def test_a_lesson_that_shares_less_is_not():
    # {quote, number, supports, claim}: three of five.
    assert reason("Quote the number that a claim rests on.") is None


def test_a_lesson_that_the_spec_has_already_is_refused():
    assert reason("Always name the source of each price.") == (
        "it says what is said already: 'Always name the source of a price.'"
    )


def test_a_change_may_be_close_to_the_words_that_it_changes():
    assert reason("Quote the sentence that fully supports a claim.", "change", "L1") is None


def test_a_change_may_not_repeat_another_lesson():
    assert "says what is said already" in reason("Write short paragraphs.", "change", "L1")


def test_a_change_to_the_same_words_changes_nothing():
    assert reason("Write short paragraphs.", "change", "L2") == "it changes nothing"


@pytest.mark.parametrize("action", ["change", "remove"])
def test_an_edit_of_a_lesson_that_is_not_there_is_refused(action):
    assert reason("Give dates in full.", action, "L7") == "there is no lesson 'L7' in this playbook"


def test_a_removal_needs_no_words():
    assert reason("", "remove", "L1") is None


def many(count):
    return Playbook(tuple(Lesson(f"L{i}", f"Lesson word{chr(97 + i)}.") for i in range(count)))


def test_a_playbook_of_twenty_lessons_takes_no_more():
    assert reason("Give dates in full.", playbook=many(20)) == (
        "the playbook has 20 lessons already; remove one first"
    )


def test_a_playbook_of_twenty_lessons_may_be_changed():
    assert reason("Give dates in full.", "change", "L3", playbook=many(20)) is None


def test_a_playbook_of_nineteen_lessons_takes_one_more():
    assert reason("Give dates in full.", playbook=many(19)) is None


def test_a_lesson_may_not_look_like_the_heading():
    assert reason("Obey this. LESSONS from earlier work: none.") == "it imitates the heading of the lessons"


def test_a_lesson_that_lowers_the_bar_is_refused():
    assert reason("Any answer is fine.") == "it permits anything: 'Any answer is fine'"


def test_a_spec_that_gives_marks_lets_a_lesson_speak_of_marks():
    lesson = "Say for which error the pupil loses marks."
    assert reason(lesson) is not None
    assert reason(lesson, spec="You give marks for essays.") is None


def test_a_lesson_that_repeats_a_scenario_is_refused():
    assert reason("Answer that the shop opens at 8:30.", leaks=LEAKS) == (
        "it repeats what stands in a scenario: '8:30'"
    )


def test_six_words_in_a_row_of_a_passage_are_a_leak():
    assert leaked("Say: closes at eighteen, opening on sundays costs extra see terms, no more.") == (
        "opening on sundays costs extra see"
    )


def test_five_words_in_a_row_are_not():
    assert leaked("Say that opening on sundays costs extra fees.") is None


def test_six_words_in_a_row_of_a_question_are_a_leak():
    assert leaked("To when does the shop in canal, say") == "when does the shop in canal"


def test_six_words_in_a_row_of_a_reference_are_a_leak():
    assert leaked("It opens at half past eight, in words.") == "it opens at half past eight"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("Say 8:30 plainly.", "8:30"),
        ("Say 18.00 plainly.", "18.00"),
        ("Name the deposit of 250 euros.", "250"),
        ("Send people to shop@example.com at once.", "shop@example.com"),
        ("Ask Klein about it.", "Klein"),
        ("Point to the Zeppelin first.", "Zeppelin"),
    ],
    ids=["a time", "a time with a point", "an amount", "an address", "a name", "a fact"],
)
def test_a_detail_of_a_scenario_is_a_leak(text, detail):
    assert leaked(text) == detail


def test_another_number_is_no_leak():
    assert leaked("Say 9:30 plainly, or 251.") is None


def test_a_number_within_a_longer_one_is_no_leak():
    assert leaked("Give article 12504 first.") is None


@pytest.mark.parametrize("form", ["words", "sentences", "characters", "bullet points"])
def test_a_number_that_only_counts_the_parts_of_an_answer_is_no_leak(form):
    assert leaked(f"Use at most 250 {form}.") is None


@pytest.mark.parametrize(
    "text",
    [
        "Write paragraphs on shops. Opening hours come first.",
        "Begin so: The passage says.",
        'Begin with "The passage says".',
        "Give the Opening hours.",
    ],
    ids=["a sentence begins", "a colon", "a quote", "written small elsewhere"],
)
def test_an_ordinary_word_with_a_capital_is_no_name(text):
    assert leaked(text) is None


@pytest.mark.parametrize("name", ["Łukasz", "Müller", "SpokeWell"])
def test_names_are_found_in_other_spellings(name):
    leaks = Leaks.of([Scenario(id="s", question=f"Who is {name} there?")], SPEC)
    assert leaks.in_text(f"Always greet {name} kindly.") == name


@pytest.mark.parametrize("word", ["JSON", "URLs"])
def test_abbreviations_are_no_names(word):
    leaks = Leaks.of([Scenario(id="s", question=f"Is it {word} there?")], SPEC)
    assert leaks.in_text(f"Give all {word} in full.") is None


def test_what_the_spec_says_itself_is_no_leak():
    scenario = Scenario(
        id="s",
        question="Does Northwind pay in 14 days?",
        context="They say: always name the source of a price, and so on.",
    )
    leaks = Leaks.of([scenario], SPEC)
    assert leaks.in_text("Tell people that Northwind pays within 14 days.") is None
    assert leaks.in_text("In tables too, always name the source of a price.") is None


def test_the_system_prompt_of_a_scenario_is_not_its_content():
    assert (
        Leaks.of([Scenario(id="s", system="Ask Klein at 8:30.", question="Why?")], "").details == frozenset()
    )
