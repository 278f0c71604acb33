"""The numbers of the demonstration's table, from made-up evaluations."""

from groundrule.recipes.demo import bootstrap_interval, demo_config, summary


def evaluation(step: int, scores: list[float], facts: list[float]) -> dict:
    answers = [
        {"scenario_id": f"s{i}", "kind": "plain", "score": score, "checks": {"facts": fact, "words": 10}}
        for i, (score, fact) in enumerate(zip(scores, facts, strict=True))
    ]
    return {"step": step, "judge": {}, "checks": {"distinct": 0.5 * step}, "answers": answers}


def test_the_table_holds_means_before_and_after():
    before, after = evaluation(0, [0.2, 0.4], [0.0, 0.0]), evaluation(2, [0.6, 0.8], [1.0, 0.0])
    rows = summary(demo_config(steps=2, seed=0), before, after)["rows"]
    assert (round(rows["judge"]["before"], 3), round(rows["judge"]["after"], 3)) == (0.3, 0.7)
    assert (rows["facts"]["before"], rows["facts"]["after"]) == (0.0, 0.5)


def test_distinct_answers_come_from_the_whole_evaluation():
    before, after = evaluation(0, [0.2], [0.0]), evaluation(2, [0.6], [1.0])
    assert summary(demo_config(steps=2, seed=0), before, after)["rows"]["distinct"]["after"] == 1.0


def test_a_check_that_does_not_apply_has_no_number():
    before, after = evaluation(0, [0.2], [0.0]), evaluation(2, [0.6], [1.0])
    row = summary(demo_config(steps=2, seed=0), before, after)["rows"]["grounded"]
    assert (row["before"], row["after"], row["pairs"]) == (None, None, 0)


def test_the_bootstrap_interval_of_equal_differences_is_a_point():
    assert bootstrap_interval([0.25] * 8) == (0.25, 0.25)


def test_the_bootstrap_interval_holds_the_mean_and_is_repeatable():
    differences = [0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    low, high = bootstrap_interval(differences)
    assert (low, high) == bootstrap_interval(differences)
    assert low < 0.5 < high


def test_no_differences_give_no_interval():
    assert bootstrap_interval([]) == (None, None)
