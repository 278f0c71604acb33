"""The state that the tools left decides, and waste and forbidden calls cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from groundrule.data import History, Trajectory
from groundrule.rewards.verifiers import verify_final_state

INITIAL = {
    "orders": {
        "17": {"status": "open", "total": 20.0, "at": 1},
        "18": {"status": "open", "total": 5.0, "at": 1},
    },
    "refunds": [],
}
EXPECTED = {
    "orders": {
        "17": {"status": "cancelled", "total": 20.0, "at": 1},
        "18": {"status": "open", "total": 5.0, "at": 1},
    },
    "refunds": [{"order": "17", "amount": 20.0}],
}


def attempt(*calls: tuple[str, dict[str, Any]], final: Any = EXPECTED) -> Trajectory:
    """A conversation in which these tools were called."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Cancel order 17."}]
    for number, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        turns.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]})
        turns.append({"role": "tool", "tool_call_id": f"c{number}", "content": "done"})
    turns.append({"role": "assistant", "content": "Order 17 is cancelled and refunded."})
    metadata = {} if final is None else {"final_state": json.dumps(final)}
    return Trajectory(messages_and_choices=turns, metadata=metadata)


READ = ("get_order", {"id": "17"})
CANCEL = ("cancel", {"id": "17"})
REFUND = ("refund", {"id": "17", "amount": 20.0})


def test_the_expected_state_is_worth_one():
    assert verify_final_state(attempt(READ, CANCEL, REFUND), EXPECTED).value == 1.0


def test_a_claim_without_the_change_is_worth_nothing():
    score = verify_final_state(attempt(final=INITIAL), EXPECTED, initial=INITIAL)
    assert (score.value, score.explanation) == (
        0.0,
        'orders.17.status: expected "cancelled", found "open"; '
        'refunds.0: expected {"order": "17", "amount": 20.0}, found nothing',
    )


def test_half_of_the_changes_are_worth_a_half_with_the_initial_state_known():
    half = {**EXPECTED, "refunds": []}
    scores = [verify_final_state(attempt(final=half), EXPECTED, initial=i).value for i in (INITIAL, None)]
    assert scores == [0.5, 0.0]


def test_harm_elsewhere_is_taken_off_the_changes():
    harmed = {
        **EXPECTED,
        "orders": {**EXPECTED["orders"], "18": {"status": "cancelled", "total": 5.0, "at": 1}},
    }
    assert verify_final_state(attempt(final=harmed), EXPECTED, initial=INITIAL).value == 0.5


def test_what_should_stay_untouched_and_did_not_is_never_below_zero():
    assert verify_final_state(attempt(final={}), INITIAL, initial=INITIAL).value == 0.0


def test_a_call_that_asks_again_is_waste():
    score = verify_final_state(attempt(READ, READ, CANCEL, REFUND), EXPECTED)
    assert (score.value, score.parts["redundant"]) == (1 - 1 / 8, 1.0)


def test_asking_again_after_a_change_is_no_waste():
    trajectory = attempt(READ, CANCEL, READ, REFUND)
    assert verify_final_state(trajectory, EXPECTED, changing_calls=("cancel", "refund")).value == 1.0


def test_asking_again_after_reading_something_else_is_waste_when_the_changing_tools_are_named():
    trajectory = attempt(READ, ("get_user", {"id": "3"}), READ, CANCEL)
    scores = [verify_final_state(trajectory, EXPECTED, changing_calls=c).value for c in (("cancel",), None)]
    assert scores == [1 - 1 / 8, 1.0]


def test_a_change_made_twice_in_a_row_is_redundant():
    score = verify_final_state(attempt(REFUND, REFUND), EXPECTED, changing_calls=("refund",))
    assert score.parts["redundant"] == 1.0


def test_calls_above_the_most_are_waste():
    assert (
        verify_final_state(attempt(READ, CANCEL, REFUND, ("ping", {})), EXPECTED, most_calls=2).value == 0.75
    )


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"forbidden_calls": ["refund"]}, 0.0),
        ({"forbidden_calls": [("refund", {"amount": 20.0})]}, 0.0),
        ({"forbidden_calls": [("refund", {"amount": 30.0})]}, 1.0),
        ({"forbidden_calls": ["delete_user"]}, 1.0),
        ({"allowed_calls": ["cancel", "refund"]}, 1.0),
        ({"allowed_calls": ["cancel"]}, 0.0),
    ],
)
def test_a_forbidden_call_is_a_veto(options, value):
    assert verify_final_state(attempt(CANCEL, REFUND), EXPECTED, **options).value == value


def test_a_forbidden_call_of_a_sub_agent_counts():
    trajectory = attempt()
    trajectory.additional_histories = [History(messages_and_choices=attempt(REFUND).messages_and_choices)]
    assert verify_final_state(trajectory, EXPECTED, forbidden_calls=["refund"]).value == 0.0


def test_a_change_of_what_is_protected_is_a_veto():
    touched = {**EXPECTED, "orders": {**EXPECTED["orders"], "18": {"status": "lost", "total": 5.0, "at": 1}}}
    score = verify_final_state(attempt(final=touched), EXPECTED, initial=INITIAL, protected=["orders.18"])
    assert (score.value, score.parts["forbidden"]) == (0.0, 1.0)


def test_ignored_paths_and_tiny_differences_of_numbers_do_not_count():
    final = json.loads(json.dumps(EXPECTED))
    final["orders"]["17"]["at"] = 99
    final["refunds"][0]["amount"] = 20.0 + 1e-12
    assert verify_final_state(attempt(final=final), EXPECTED, ignore=["orders.*.at"]).value == 1.0


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"a": True}, {"a": 1}),
        ({"a": None}, {}),
        ({"a": 1}, {"a": "1"}),
        ({"a": []}, {"a": {}}),
        ({"a": ["x"]}, {"a": {"0": "x"}}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": {}}}, {"a": {}}),
    ],
)
def test_values_of_different_kinds_differ(wanted, found):
    assert verify_final_state(attempt(final=found), wanted).value == 0.0


def test_the_state_may_come_from_a_function():
    score = verify_final_state(attempt(final=None), EXPECTED, state=lambda trajectory: EXPECTED)
    assert score.value == 1.0


@pytest.mark.parametrize(
    ("final", "reason"), [(None, "there is no final state"), ([1], "there is no final state")]
)
def test_without_a_final_state_there_is_no_score(final, reason):
    assert verify_final_state(attempt(final=final), EXPECTED).reason.startswith(reason)


def test_a_final_state_that_is_no_json_gives_no_score():
    trajectory = Trajectory(metadata={"final_state": "{"})
    assert verify_final_state(trajectory, EXPECTED).reason.startswith('metadata["final_state"] is not JSON')
