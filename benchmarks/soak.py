"""A server under full load of everything at once, watched until the end.

    python benchmarks/soak.py [--minutes 20] [--model smollm2-135m] [--seed 0]

Starts `groundrule serve` as a program with a key and few places, then asks from many connections: whole answers and
streams, several choices, tools, JSON by schema, stop strings, log-probabilities, conversations that grow, long
prompts, with seeds and without; clients that leave in the middle; bodies that are nonsense; bursts of more than can
wait. It fails (exit code 1) when

- a greedy or seeded answer differs from what the idle server said at the start. Where a greedy text goes on with
  another token that was as likely within 0.001 (its neighbours in the batch change the last bits), that is counted
  apart as a near tie;
- an answer has not the form that was asked for, or nonsense is not refused as it should be;
- a request has not ended after five minutes, or the server still works on something when all have;
- the memory of the server at the end is more than 5 % above that after the first quarter (medians);
- the server answers with a 5xx, dies, or does not end with 0 at SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import secrets
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from _machine import publish
from _processes import Running, address_in
from _soak_client import Answer, Client, Left, Reply
from _soak_requests import TURNS, known, loose, nonsense, turn, unread, user

MAX_ROWS, MAX_WAITING = 16, 48
WORKERS = 20
BURST, BURST_EVERY_S = 80, 20.0
STUCK_S = 300.0
NEAR_TIE = 1e-3
MOST_FILLING = 120
"""Long prompts asked at the start, at most: filling the cache must not be taken for a leak."""
MOST_GROWTH = 0.05


class Soak:
    """What is asked, what must come back, and what did."""

    def __init__(self, client: Client, model: str, seed: int) -> None:
        self.client, self.model = client, model
        self.rng = random.Random(seed)
        self.known = known(model)
        self.nonsense = nonsense(model)
        self.reference: dict[str, list[Answer]] = {}
        self.conversation: list[Answer] = []
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.near_ties: list[dict[str, Any]] = []

    async def learn(self) -> None:
        """Ask everything that has one answer, one after the other."""
        for name, body in self.known.items():
            reply = await self.client.chat(body)
            if reply.status != 200:
                raise SystemExit(f"{name}: {reply.status} {reply.body[:300]!r}")
            self.reference[name] = reply.answers()
        self.conversation = [answer async for answer in self._conversation()]

    async def fill(self, server: Running) -> None:
        """Ask new things until the server's memory stands still: its cache of prompts is full then."""
        held = [server.resident_mb()]
        while len(held) < MOST_FILLING and (len(held) <= 8 or held[-1] > 1.01 * held[-9]):
            await self.client.chat(unread(self.model, len(held)))
            held.append(server.resident_mb())
        print(f"{held[0]:.0f} MB, after {len(held) - 1} long prompts {held[-1]:.0f} MB", file=sys.stderr)

    async def _conversation(self) -> Any:
        said: list[dict[str, Any]] = []
        for number, text in enumerate(TURNS):
            said = [*said, *user(text)]
            answer = await self._chat(turn(self.model, said), f"turn {number + 1}")
            if answer is None:
                return
            yield answer[0]
            said = [*said, {"role": "assistant", "content": answer[0].text}]

    async def work(self, until: float) -> None:
        """One connection after another, of all kinds."""
        kinds: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.ask_known, 10),
            (self.ask_loose, 4),
            (self.converse, 2),
            (self.leave, 5),
            (self.send_nonsense, 4),
        ]
        while time.monotonic() < until:
            [kind] = self.rng.choices([k for k, _ in kinds], [weight for _, weight in kinds])
            await self.guarded(kind)

    async def guarded(self, kind: Callable[[], Awaitable[None]]) -> None:
        """Whatever goes wrong in a request is a fault of the run and not its end."""
        try:
            async with asyncio.timeout(STUCK_S):
                await kind()
        except TimeoutError:
            self.fault(f"{kind.__name__}: no end after {STUCK_S:g} s")
        except (OSError, ValueError, KeyError, IndexError) as error:
            self.fault(f"{kind.__name__}: {type(error).__name__}: {error}")

    async def ask_known(self) -> None:
        name = self.rng.choice(sorted(self.known))
        found = await self._chat({**self.known[name], "stream": self.rng.random() < 0.5}, name)
        if found is not None:
            self.compare(name, self.known[name], self.reference[name], found)

    async def ask_loose(self) -> None:
        body = loose(self.model, self.rng.randrange(10**6))
        found = await self._chat({**body, "stream": self.rng.random() < 0.5}, "loose")
        if found is None:
            return
        if len(found) != body["n"] or any(not 0 < len(a.tokens) <= body["max_tokens"] for a in found):
            self.fault(f"loose: {[len(a.tokens) for a in found]} tokens for {body}")

    async def converse(self) -> None:
        number = 0
        async for answer in self._conversation():
            wanted = self.conversation[number]
            if not self.compare(f"turn {number + 1}", {"temperature": 0}, [wanted], [answer]):
                return
            number += 1

    async def leave(self) -> None:
        """Close the connection somewhere in the middle, or before anything came."""
        body = {
            **self.rng.choice(list(self.known.values())),
            "stream": self.rng.random() < 0.5,
            "max_tokens": 200,
        }
        moment = self.rng.choice([0.0, 0.02, self.rng.random(), 4 * self.rng.random()])
        announced = (
            len(json.dumps(body)) + 10 if self.rng.random() < 0.1 else None
        )  # Less is sent than was said.
        try:
            reply = await self.client.send(
                json.dumps(body).encode(), announced=announced, leave_after_s=moment
            )
        except Left:
            self.counts["left"] += 1
        else:
            self.count(reply)

    async def send_nonsense(self) -> None:
        wrong = self.rng.choice(self.nonsense)
        reply = await self.client.send(wrong.body, **wrong.more)
        self.count(reply)
        message = json.loads(reply.body)["error"]["message"] if reply.body else ""
        if reply.status != wrong.status or not message:
            self.fault(
                f"nonsense ({wrong.name}): {reply.status} instead of {wrong.status}: {reply.body[:200]!r}"
            )

    async def burst(self, until: float) -> None:
        """Now and then more at once than may wait."""
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(BURST_EVERY_S, left))
            await asyncio.gather(*(self.guarded(self.ask_known) for _ in range(BURST)))

    async def _chat(self, body: dict[str, Any], name: str) -> list[Answer] | None:
        """The answers; None where there was no place for them."""
        reply = await self.client.chat(body)
        self.count(reply)
        if reply.status == 429 and "retry-after" in reply.headers:
            await asyncio.sleep(float(reply.headers["retry-after"]))
            return None
        if reply.status != 200:
            self.fault(f"{name}: {reply.status} {reply.body[:300]!r}")
            return None
        answers = reply.answers()
        for answer in answers:
            if len(answer.logprobs) != len(answer.tokens) or answer.finish is None:
                self.fault(
                    f"{name}: {len(answer.tokens)} tokens, {len(answer.logprobs)} logprobs, {answer.finish}"
                )
        return answers

    def compare(self, name: str, body: dict[str, Any], wanted: list[Answer], found: list[Answer]) -> bool:
        """True where the answers are those of the idle server."""
        if [a.tokens for a in wanted] == [a.tokens for a in found]:
            if [(a.text, len(a.calls), a.finish) for a in wanted] == [
                (a.text, len(a.calls), a.finish) for a in found
            ]:
                self.counts["compared"] += 1
                return True
            self.fault(f"{name}: the same tokens as another text: {found} instead of {wanted}")
            return False
        difference = first_difference(wanted, found)
        if body["temperature"] == 0 and difference.get("gap", 1.0) < NEAR_TIE:
            self.near_ties.append({"request": name, **difference})
        else:
            self.fault(f"{name}: another answer than at the start: {difference}")
        return False

    def count(self, reply: Reply) -> None:
        self.counts[str(reply.status)] += 1
        if reply.status >= 500:
            self.fault(f"status {reply.status}: {reply.body[:300]!r}")

    def fault(self, what: str) -> None:
        self.faults.append(what)
        print(f"FAULT {what}", file=sys.stderr, flush=True)


def first_difference(wanted: list[Answer], found: list[Answer]) -> dict[str, Any]:
    """Where two lists of answers part, and how far apart the two tokens are in log-probability."""
    for choice, (one, other) in enumerate(zip(wanted, found, strict=False)):
        for place, (a, b) in enumerate(zip(one.tokens, other.tokens, strict=False)):
            if a != b:
                gap = abs(one.logprobs[place] - other.logprobs[place])
                before = max(
                    (abs(x - y) for x, y in zip(one.logprobs[:place], other.logprobs, strict=False)),
                    default=0,
                )
                return {
                    "choice": choice,
                    "place": place,
                    "tokens": [a, b],
                    "gap": gap,
                    "drift_before": before,
                }
    return {"lengths": [[len(a.tokens) for a in answers] for answers in (wanted, found)]}


async def watched(soak: Soak, server: Running, minutes: float, samples: list[tuple[float, float]]) -> None:
    """Full load for so long, with a line of progress every half minute."""
    begun = time.monotonic()
    until = begun + 60 * minutes

    async def look() -> None:
        said = begun
        while True:
            await asyncio.sleep(2)
            if server.child.poll() is not None:
                soak.fault(f"the server ended with {server.child.returncode}")
                return
            samples.append((time.monotonic() - begun, server.resident_mb()))
            if time.monotonic() - said >= 30:
                said = time.monotonic()
                counts = ", ".join(f"{name} {count}" for name, count in sorted(soak.counts.items()))
                print(
                    f"{(said - begun) / 60:.1f} min: {counts}; {samples[-1][1]:.0f} MB; "
                    f"{len(soak.faults)} faults, {len(soak.near_ties)} near ties",
                    file=sys.stderr,
                    flush=True,
                )

    looking = asyncio.create_task(look())
    await asyncio.gather(soak.burst(until), *(soak.work(until) for _ in range(WORKERS)))
    looking.cancel()


async def at_rest(soak: Soak) -> dict[str, float]:
    """The engine's load once everybody has gone; a fault if it does not come to 0."""
    for _ in range(60):
        page = (await soak.client.send(route="/metrics", method="GET")).body.decode()
        load = {
            name: float(re.findall(rf"^groundrule_{name}_rows (\S+)", page, re.MULTILINE)[0])
            for name in ("running", "waiting")
        }
        if not any(load.values()):
            return load
        await asyncio.sleep(1)
    soak.fault(f"a minute after the last request the server still works: {load}")
    return load


def growth(samples: list[tuple[float, float]]) -> dict[str, Any]:
    """Memory just after the first quarter and at the end, each a median over an eighth of the time; and all eighths."""
    whole = samples[-1][0]
    warm = statistics.median(mb for at, mb in samples if whole / 4 <= at <= whole * 3 / 8)
    end = statistics.median(mb for at, mb in samples if at >= whole * 7 / 8)
    eighths = [
        round(statistics.median(mb for at, mb in samples if whole * k / 8 <= at <= whole * (k + 1) / 8))
        for k in range(8)
    ]
    return {
        "warm_mb": round(warm, 1),
        "end_mb": round(end, 1),
        "growth": round(end / warm - 1, 4),
        "by_eighth_mb": eighths,
        "most_mb": round(max(mb for _, mb in samples)),
    }


async def soaked(soak: Soak, server: Running, minutes: float) -> dict[str, Any]:
    await soak.learn()
    await soak.fill(server)
    print(
        f"{server.resident_mb():.0f} MB, {len(soak.reference) + len(soak.conversation)} answers known; the load begins",
        file=sys.stderr,
    )
    samples: list[tuple[float, float]] = []
    await watched(soak, server, minutes, samples)
    load = await at_rest(soak)
    memory = growth(samples)
    if memory["growth"] > MOST_GROWTH:
        soak.fault(f"the server's memory grows: {memory}")
    for name, body in soak.known.items():  # Idle again: the answers of the beginning.
        soak.compare(
            f"{name}, idle again", body, soak.reference[name], (await soak.client.chat(body)).answers()
        )
    return {"minutes": minutes, "load_at_rest": load, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    key = secrets.token_urlsafe(16)
    places = ["--max-rows", str(MAX_ROWS), "--max-waiting", str(MAX_WAITING)]
    program = [str(Path(sys.executable).parent / "groundrule"), "serve", options.model, "--name", "soak"]
    with Running([*program, "--port", "0", *places], {**os.environ, "GROUNDRULE_API_KEY": key}) as server:
        address = urlsplit(address_in(server.line()))
        assert address.hostname and address.port
        soak = Soak(Client(address.hostname, address.port, key), "soak", options.seed)
        result = asyncio.run(soaked(soak, server, options.minutes))
        if (code := server.stop(60)) != 0:
            soak.fault(f"the server ended with {code} at SIGTERM")
    publish(
        "soak",
        {
            **result,
            "model": options.model,
            "requests": dict(sorted(soak.counts.items())),
            "near_ties": soak.near_ties[:50],
            "near_tie_count": len(soak.near_ties),
            "faults": soak.faults[:50],
            "fault_count": len(soak.faults),
        },
    )
    sys.exit(1 if soak.faults else 0)


if __name__ == "__main__":
    main()
