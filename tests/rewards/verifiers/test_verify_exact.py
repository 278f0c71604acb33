"""Text and form: what does not count, and what must never be taken away."""

from __future__ import annotations

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers import verify_exact, verify_regex


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Paris.", "paris"),
        ("  New   York ", "New York"),
        ("“Yes!”", "yes"),
        ("Well-known", "well known"),
        ("don't", "don’t"),
        ("U.S.A.", "USA"),
        ("ＡＢＣ", "abc"),
        ("1,000.0", "1000"),
        ("3.50", 3.5),
        ("-5", "−5"),
        ("5.", "5"),
        ("10:30", "10:30"),
        ("<think>Rome?</think>Paris", "Paris"),
        ("?", "?"),
        ("London", ["Paris", "London"]),
    ],
)
def test_the_same_text_is_right(answer, reference):
    assert verify_exact(answer, reference).value == 1.0


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("-5", "5"),
        ("3.5", "35"),
        ("10²", "102"),
        ("2½", "21/2"),
        ("1/2", "12"),
        ("10:30", "1030"),
        ("3-5", "35"),
        ("5%", "5"),
        ("$5", "5"),
        ("1,5", "15"),
        ("?", "!"),
        ("", "Paris"),
        ("Paris or London", "Paris"),
        ("the Paris", "Paris"),
        ("<think>Paris</think>", "Paris"),
        ("12345678901234567890", "12345678901234567891"),
    ],
)
def test_another_text_is_wrong(answer, reference):
    assert verify_exact(answer, reference).value == 0.0


def test_articles_are_left_out_when_asked():
    assert verify_exact("The Hague is a city", "Hague is city", normalise=("case", "articles")).value == 1.0


@pytest.mark.parametrize(
    ("answer", "reference"), [("paris", "Paris"), ("a  b", "a b"), ("1.0", "1"), ("Paris.", "Paris")]
)
def test_everything_counts_when_nothing_is_normalised(answer, reference):
    assert verify_exact(answer, reference, normalise=()).value == 0.0


@pytest.mark.parametrize("reference", [[], "", " ", None, [None]])
def test_without_a_reference_there_is_no_score(reference):
    assert verify_exact("Paris", reference).reason == "bad_reference: there is no reference text"


def test_an_unknown_step_is_named():
    with pytest.raises(ConfigError, match="normalise names 'accents'; known are case, space"):
        verify_exact("a", "a", normalise=("accents",))


@pytest.mark.parametrize(
    ("answer", "anywhere", "value"),
    [("42", False, 1.0), ("it is 42", False, 0.0), ("it is 42", True, 1.0), ("", True, 0.0)],
)
def test_a_pattern_matches_the_whole_answer_or_a_part(answer, anywhere, value):
    assert verify_regex(answer, r"\d+", anywhere=anywhere, timeout_s=60).value == value


def test_a_pattern_that_backtracks_for_ever_gives_no_score():
    assert verify_regex("a" * 50 + "!", "(a+)+", timeout_s=0.5).reason.startswith(
        "timeout: no result within 0.5 s"
    )


def test_a_broken_pattern_is_the_callers_mistake():
    with pytest.raises(ConfigError, match=r"'\(' is no regular expression"):
        verify_regex("a", "(")
