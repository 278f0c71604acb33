"""The ledger and the budget."""

import json
import threading

import pytest

from groundrule.data import ChatReply, ChatRequest, Usage
from groundrule.errors import BudgetError, ConfigError, DeadlineError, ProviderError
from groundrule.llm import Budget, Ledger, Price, ScriptedClient, current_ledger, use_ledger
from groundrule.llm.cost import Call
from groundrule.llm.metered import MeteredClient

REQUEST = ChatRequest(model="o3", messages=({"role": "user", "content": "hi"},), purpose="judge/ruler")


def call(cost: float | None, purpose: str = "judge/ruler", tokens: int = 10) -> Call:
    return Call("m", purpose, tokens, 1, 0, cost)


def test_a_known_price_counts_cached_tokens_at_their_own():
    price = Price(prompt=2.0, completion=8.0, cached=0.5)
    assert price.cost_usd(Usage(1_000_000, 100_000, 400_000)) == pytest.approx(1.2 + 0.2 + 0.8)


def test_tokens_that_were_not_counted_have_no_price():
    assert Price(2.0, 8.0).cost_usd(Usage()) is None


def test_an_unknown_price_makes_the_total_unknown_and_never_zero():
    ledger = Ledger()
    ledger.record(call(0.5))
    ledger.record(call(None))
    total = ledger.total()
    assert total.cost_usd is None
    assert (total.known_cost_usd, total.unpriced_calls, total.prompt_tokens) == (0.5, 1, 20)
    assert "unknown price" in str(total)


def test_totals_are_kept_per_purpose():
    ledger = Ledger()
    ledger.record(call(0.5))
    ledger.record(call(0.25, "rollout"))
    assert ledger.total("rollout").cost_usd == 0.25
    assert ledger.total("nothing").calls == 0
    assert sorted(ledger.purposes()) == ["judge/ruler", "rollout"]


def test_dated_snapshots_have_the_price_of_their_model():
    assert Ledger().price_of("openai/o3-2025-04-16") == Price(prompt=2.0, completion=8.0, cached=0.5)
    assert Ledger().price_of("openai/no-such-model") is None


def test_prices_can_be_given():
    assert Ledger(prices={"mine/m": Price(1.0, 2.0)}).price_of("mine/m") == Price(1.0, 2.0)


async def test_a_metered_client_fills_in_the_cost():
    client = MeteredClient(ScriptedClient([ChatReply("x", usage=Usage(1000, 100))]), provider="openai")
    with use_ledger(Ledger()) as ledger:
        reply = await client.complete(REQUEST)
    assert reply.cost_usd == pytest.approx(0.0028)
    assert ledger.total("judge/ruler").cost_usd == pytest.approx(0.0028)


@pytest.mark.parametrize(
    ("error", "cost"), [(ProviderError("busy", status=503), 0.0), (DeadlineError("too late"), None)]
)
async def test_a_failed_call_is_counted(error, cost):
    client = MeteredClient(ScriptedClient([error]), provider="openai")
    with use_ledger(Ledger()) as ledger, pytest.raises(type(error)):
        await client.complete(REQUEST)
    assert (ledger.total().failed_calls, ledger.total().cost_usd) == (1, cost)


async def test_a_free_endpoint_costs_nothing():
    client = MeteredClient(ScriptedClient(["x"]), provider="ollama", is_free=True)
    with use_ledger(Ledger()) as ledger:
        await client.complete(REQUEST)
    assert ledger.total().cost_usd == 0.0


async def test_the_same_model_name_elsewhere_has_no_known_price():
    client = MeteredClient(ScriptedClient([ChatReply("x", usage=Usage(1, 1))]), provider="hosted_vllm")
    with use_ledger(Ledger()):
        assert (await client.complete(REQUEST)).cost_usd is None


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (Budget(usd=0.5), r"\$0\.5000 of the budget of \$0\.5"),
        (Budget(tokens=11), "11 tokens are used of a budget of 11"),
    ],
)
def test_a_budget_stops_the_next_call(budget, message):
    ledger = Ledger(budget=budget)
    ledger.start()
    ledger.record(call(0.5))
    with pytest.raises(BudgetError, match=message):
        ledger.start()


def test_calls_under_way_count_against_the_budget_of_calls():
    ledger = Ledger(budget=Budget(calls=2))
    ledger.start()
    ledger.start()
    with pytest.raises(BudgetError, match="2 calls"):
        ledger.start()


def test_a_dollar_budget_warns_once_about_unknown_prices(caplog):
    ledger = Ledger(budget=Budget(usd=1.0))
    ledger.record(call(None))
    ledger.record(call(None))
    assert caplog.text.count("does not cover") == 1


def test_a_negative_budget_is_refused():
    with pytest.raises(ConfigError, match="usd=-1"):
        Budget(usd=-1)


def test_calls_from_many_threads_are_all_counted():
    ledger = Ledger()
    threads = [
        threading.Thread(target=lambda: [ledger.record(call(0.001)) for _ in range(200)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.total().calls == 1600


def test_calls_are_appended_to_a_file(tmp_path):
    ledger = Ledger(path=tmp_path / "costs.jsonl")
    ledger.record(call(None))
    record = json.loads((tmp_path / "costs.jsonl").read_text())
    assert record["purpose"] == "judge/ruler"
    assert record["cost_usd"] is None


def test_a_ledger_in_use_replaces_the_process_ledger_for_the_block():
    process = current_ledger()
    with use_ledger(Ledger()) as ledger:
        assert current_ledger() is ledger
    assert current_ledger() is process
