"""Agreement between annotators, against published and hand-worked numbers."""

from __future__ import annotations

import pytest

from groundrule.algorithms.agreement import (
    FIRST,
    SECOND,
    TIE,
    agreement,
    bootstrap,
    cohen_kappa,
    coincidence_table,
    ordinal_alpha,
    tau_b,
)
from groundrule.algorithms.preference_summary import summarise
from groundrule.data import Ranking

AB, AC, BC = ("a", "b"), ("a", "c"), ("b", "c")


def outcomes(values):
    """What two-by-two comparison of these numbers says; the higher one is better."""
    places = range(len(values))
    return {
        (str(i), str(j)): TIE + (values[i] > values[j]) - (values[i] < values[j])
        for i in places
        for j in places
        if i < j
    }


def test_tau_b_is_that_of_the_example_in_scipys_documentation():
    # scipy.stats.kendalltau: 10 pairs, 2 in the same order, 6 in opposite; one side ties 2, the other 1.
    assert tau_b(outcomes([12, 2, 1, 12, 2]), outcomes([1, 4, 7, 1, 0])) == pytest.approx(
        -0.47140452079103173
    )


def test_tau_b_is_1_for_one_order_and_minus_1_for_the_reverse():
    assert tau_b(outcomes([1, 2, 3]), outcomes([10, 20, 30])) == 1.0
    assert tau_b(outcomes([1, 2, 3]), outcomes([3, 2, 1])) == -1.0


def test_tau_b_needs_comparisons_that_both_made_and_both_did_not_only_tie():
    assert tau_b({AB: FIRST}, {AC: FIRST}) is None
    assert tau_b({AB: TIE}, {AB: FIRST}) is None


def test_kappa_of_a_two_by_two_table():
    # Observed (20 + 15) / 50 = 0.7; expected 0.5 * 0.6 + 0.5 * 0.4 = 0.5; (0.7 - 0.5) / 0.5 = 0.4.
    assert cohen_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)


def test_kappa_of_three_outcomes():
    # Rows 25, 15, 10 and columns 22, 18, 10 of 50. Observed (20 + 12 + 7) / 50 = 0.78;
    # expected (25 * 22 + 15 * 18 + 10 * 10) / 2500 = 0.368; (0.78 - 0.368) / 0.632 = 0.651899.
    assert cohen_kappa([[20, 4, 1], [1, 12, 2], [1, 2, 7]]) == pytest.approx(0.651899, abs=1e-6)


def test_kappa_is_not_defined_where_both_always_say_one_thing():
    assert cohen_kappa([[7, 0], [0, 0]]) is None
    assert cohen_kappa([[0, 0], [0, 0]]) is None


KRIPPENDORFF = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def test_alpha_is_that_of_krippendorffs_example_with_four_observers_and_missing_values():
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability"; the data are also the example of R's
    # irr::kripp.alpha, and fast-krippendorff tests its ordinal alpha of 0.815 on them.
    columns = zip(*(line.split() for line in KRIPPENDORFF.split("\n") if line), strict=True)
    units = [[int(value) - 1 for value in column if value != "."] for column in columns]
    table = coincidence_table(units, 5)
    assert [sum(row) for row in table] == pytest.approx([9, 13, 10, 5, 3])
    assert ordinal_alpha(table) == pytest.approx(0.815, abs=0.0005)


def test_alpha_of_three_outcomes_worked_by_hand():
    # Units (2, 2), (2, 1), (0, 0): o_22 = 2, o_21 = o_12 = 1, o_00 = 2; n_0, n_1, n_2 = 2, 1, 3; n = 6.
    # d_01 = (3 - 1.5)^2 = 2.25, d_02 = (6 - 2.5)^2 = 12.25, d_12 = (4 - 2)^2 = 4.
    # Observed 1 * 4 = 4; expected 2 * 1 * 2.25 + 2 * 3 * 12.25 + 1 * 3 * 4 = 90; 1 - 5 * 4 / 90 = 7/9.
    assert ordinal_alpha(coincidence_table([[2, 2], [2, 1], [0, 0]], 3)) == pytest.approx(7 / 9)


def test_alpha_is_not_defined_where_only_one_value_was_given():
    assert ordinal_alpha(coincidence_table([[1, 1], [1, 1]], 3)) is None


def test_two_annotators_of_one_prompt():
    said = agreement([{"ann": {AB: FIRST, AC: FIRST, BC: TIE}, "bob": {AB: FIRST, AC: SECOND, BC: FIRST}}])
    assert (said.annotators, said.prompts, said.comparisons, said.both_order) == (2, 1, 3, 2)
    assert said.same_order.value == 0.5
    assert said.tau_b.value == 0.0
    # In both directions, each half: ann ties 1 of 3, bob none; first and second share the rest.
    # Observed 1/3; expected 1/3 * 1/2 + 0 + 1/3 * 1/2 = 1/3.
    assert said.kappa.value == pytest.approx(0.0)
    assert said.alpha is None
    assert (said.same_order.low, said.same_order.high) == (None, None)


def test_three_annotators_get_alpha_instead_of_kappa():
    said = agreement([{"ann": {AB: FIRST}, "bob": {AB: FIRST}, "cleo": {AB: SECOND}}])
    # In both directions: o_02 + o_20 = 2 of 3, n_0 = n_2 = 1.5; both disagreements have one distance d.
    # 1 - (3 - 1) * 1 d / (1.5 * 1.5 d) = 1 - 2 / 2.25 = 1/9.
    assert said.alpha.value == pytest.approx(1 / 9)
    assert said.kappa is None
    assert (said.comparisons, said.same_order.value) == (3, pytest.approx(1 / 3))


def test_which_answer_is_called_the_first_makes_no_difference():
    one = [{"ann": {AB: FIRST, AC: TIE}, "bob": {AB: FIRST, AC: FIRST}}]
    turned = [{"ann": {AB: SECOND, AC: TIE}, "bob": {AB: SECOND, AC: SECOND}}]
    assert agreement(one).kappa == agreement(turned).kappa


def test_prompts_of_one_annotator_say_nothing():
    assert agreement([{"ann": {AB: FIRST}}, {"bob": {AB: FIRST}}]) is None
    assert agreement([]) is None


def test_the_interval_holds_the_value_and_is_the_same_every_time():
    agree, not_agree = {"ann": {AB: FIRST}, "bob": {AB: FIRST}}, {"ann": {AB: FIRST}, "bob": {AB: SECOND}}
    said = agreement([agree] * 15 + [not_agree] * 5)
    assert said.same_order.value == 0.75
    assert 0.5 <= said.same_order.low < 0.75 < said.same_order.high <= 0.95
    assert said == agreement([agree] * 15 + [not_agree] * 5)


def test_a_measure_that_is_rarely_defined_has_no_interval():
    assert (
        bootstrap([1, 0, 0, 0, 0, 0], lambda drawn: 1.0 if 1 in drawn and drawn[0] == 1 else None).low is None
    )


def ranking(*tiers, annotator, prompt="Refunds?", ids="abcdef"):
    texts = [text for tier in tiers for text in tier]
    name = dict(zip(texts, ids, strict=False))
    return Ranking(
        prompt=prompt,
        answers=[{"id": name[text], "text": text} for text in texts],
        order=[[name[text] for text in tier] for tier in tiers],
        annotator=annotator,
    )


def test_answers_are_matched_by_content_whatever_their_ids():
    summary = summarise(
        [ranking(["X"], ["Y"], annotator="ann"), ranking(["X"], ["Y"], annotator="bob", ids="qr")]
    )
    assert summary.agreement.same_order.value == 1.0
    assert (summary.rankings, summary.prompts, summary.answers, summary.pairs) == (2, 1, 2, 2)


def test_what_one_annotator_says_both_ways_does_not_count_for_agreement():
    summary = summarise(
        [
            ranking(["X"], ["Y"], annotator="ann"),
            ranking(["Y"], ["X"], annotator="ann"),
            ranking(["X"], ["Y"], annotator="bob"),
        ]
    )
    assert (summary.agreement, summary.wavering) == (None, 1)
    assert [c.is_opposite for c in summary.contradictions] == [True]


def test_rankings_without_a_name_count_for_no_agreement():
    summary = summarise([ranking(["X"], ["Y"], annotator=None), ranking(["X"], ["Y"], annotator="bob")])
    assert summary.agreement is None
    assert summary.annotators == {"(no name)": 1, "bob": 1}


def test_length_bias_is_the_share_of_pairs_in_which_the_longer_answer_is_chosen():
    summary = summarise([ranking(["long"], ["s", "t"], ["also longer"], annotator="ann")])
    # Pairs: long > s, long > t, and each of three against the longest: 2 of 5.
    assert summary.length.longer_chosen.value == pytest.approx(0.4)
    assert (summary.length.chosen, summary.length.rejected) == (pytest.approx(2.8), pytest.approx(7.0))
    assert summary.ties == 1


def test_a_summary_of_ties_only_measures_nothing():
    summary = summarise([ranking(["X", "Y"], annotator="ann")])
    assert (summary.pairs, summary.ties, summary.length) == (0, 1, None)
