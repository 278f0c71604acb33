"""Two hundred judge calls at once against a server that fails every fifth: nothing is lost, costs add up."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fakes import completion, group_of, scores_json
from groundrule.llm import Ledger, Price, use_ledger
from groundrule.llm.openai_client import OpenAIClient
from groundrule.llm.retry import Retry
from groundrule.rewards import Ruler

GROUPS, HANG_S, DEADLINE_S = 200, 12.0, 8.0
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


class Storm(ThreadingHTTPServer):
    """Every fifth request fails: refused, broken, left hanging, or cut, in turn."""

    request_queue_size = 512
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.seen = 0
        self.sent: Counter[str] = Counter()

    def fate(self) -> str:
        with self.lock:
            self.seen += 1
            number = self.seen
        fate = ("429", "500", "hang", "cut")[number // 5 % 4] if number % 5 == 0 else "good"
        with self.lock:
            self.sent[fate] += 1
        return fate


class Handler(BaseHTTPRequestHandler):
    server: Storm

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        fate = self.server.fate()
        verdict = scores_json(0.1, 0.4, 0.7, 0.9)
        if fate == "hang":
            time.sleep(HANG_S)
            return
        bodies: dict[str, tuple[int, Any]] = {
            "good": (200, completion(verdict, usage=USAGE)),
            "cut": (200, completion(verdict[:60], finish_reason="length", usage=USAGE)),
            "429": (429, {"error": {"message": "slow down", "code": "rate_limit"}}),
            "500": (500, {"error": {"message": "broken"}}),
        }
        status, body = bodies[fate]
        raw = json.dumps(body).encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def storm() -> Iterator[Storm]:
    server = Storm()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_every_group_ends_scored_or_with_a_reason_and_costs_add_up(storm):
    client = OpenAIClient(
        base_url=f"http://127.0.0.1:{storm.server_port}/v1",
        api_key="none",
        model="judge",
        retry=Retry(attempts=4, first_wait_s=0.01, max_wait_s=0.05, deadline_s=DEADLINE_S),
    )
    ruler = Ruler(client)
    ledger = Ledger(prices={"judge": Price(prompt=1.0, completion=10.0)})
    groups = [
        group_of(*(f"group {g}, answer {a}" for a in range(4)), scenario_id=str(g)) for g in range(GROUPS)
    ]
    with use_ledger(ledger):
        scores = await asyncio.gather(*(ruler.score(group) for group in groups))
    ended = Counter(
        "scored" if all(s.value is not None for s in of_group) else "reason" for of_group in scores
    )
    assert sum(ended.values()) == GROUPS
    assert all(s.value is not None or s.reason for of_group in scores for s in of_group)
    # A hanging call uses up its deadline, and a reply may be cut twice in a row; all else is asked again.
    reasons = [str(of_group[0].reason) for of_group in scores if of_group[0].value is None]
    assert all("no answer within 8 s" in reason or "truncated" in reason for reason in reasons)
    assert ended["scored"] >= GROUPS // 2
    answered = storm.sent["good"] + storm.sent["cut"]
    total = ledger.total()
    assert total.prompt_tokens == 1000 * answered
    assert total.known_cost_usd == pytest.approx(answered * 0.002)
    assert min(storm.sent[fate] for fate in ("429", "500", "hang", "cut")) >= 8
