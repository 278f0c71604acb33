"""The reply cache on disk."""

import asyncio
import multiprocessing
import os
import pickle
import stat
import threading

import pytest

from groundrule.errors import ConfigError
from groundrule.llm import ReplyCache, cache_key
from groundrule.llm import cache as cache_module

MESSAGES = [{"role": "user", "content": "grade"}]


@pytest.fixture
def cache(tmp_path):
    cache = ReplyCache(tmp_path / "replies.sqlite")
    yield cache
    cache.close()


def test_a_value_comes_back_as_it_was_put(cache):
    cache.put("k", {"content": "退款 \ud835", "usage": [1, None, 2.5]})
    assert cache.get("k") == {"content": "退款 \ud835", "usage": [1, None, 2.5]}
    assert cache.get("other") is None


def test_a_value_survives_the_process_object(cache):
    cache.put("k", 1)
    again = ReplyCache(cache.path)
    assert again.get("k") == 1
    again.close()


def test_the_file_is_for_its_owner_only(cache):
    cache.put("k", 1)
    assert stat.S_IMODE(os.stat(cache.path).st_mode) == 0o600


def test_the_default_file_lies_in_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert ReplyCache().path == tmp_path / "x" / "groundrule" / "replies.sqlite"


def test_every_parameter_makes_another_key():
    common = {"model": "judge-a", "messages": MESSAGES}
    keys = {
        cache_key(**common, params=params)
        for params in (
            {"temperature": 0.0},
            {"temperature": 0.7},
            {"temperature": 0.0, "seed": 2},
            {"temperature": 0.0, "max_tokens": 16},
        )
    }
    assert len(keys) == 4


def test_an_absent_parameter_differs_from_every_value():
    assert (
        len(
            {
                cache_key(params=p)
                for p in ({}, {"temperature": 0}, {"temperature": 0.0}, {"temperature": None})
            }
        )
        == 4
    )


def test_the_order_of_named_parts_does_not_matter():
    assert cache_key(a=1, b={"x": 1, "y": 2}) == cache_key(b={"y": 2, "x": 1}, a=1)


def test_the_order_of_messages_matters():
    assert cache_key(messages=["A", "B"]) != cache_key(messages=["B", "A"])


def test_entries_of_another_version_are_not_found(cache, monkeypatch):
    cache.put(cache_key(model="m"), "old")
    monkeypatch.setattr(cache_module, "SCHEMA_VERSION", 2)
    assert cache.get(cache_key(model="m")) is None


def test_half_a_surrogate_pair_can_be_part_of_a_key():
    assert len(cache_key(text="x\ud835y")) == 64


def test_a_damaged_file_is_set_aside_with_a_warning(cache, caplog):
    for number in range(200):
        cache.put(f"k{number}", "x" * 200)
    cache.close()
    raw = bytearray(cache.path.read_bytes())
    raw[:3500] = b"\x5a" * 3500
    cache.path.write_bytes(raw)
    fresh = ReplyCache(cache.path)
    assert fresh.get("k1") is None
    fresh.put("k1", "again")
    assert fresh.get("k1") == "again"
    fresh.close()
    assert "is damaged" in caplog.text
    assert len(list(cache.path.parent.glob("replies.sqlite.damaged-*"))) == 1


def test_damage_behind_the_header_is_met_as_a_miss(cache):
    for number in range(400):
        cache.put(f"k{number}", "x" * 200)
    cache.close()
    raw = bytearray(cache.path.read_bytes())
    raw[4096:] = b"\x5a" * (len(raw) - 4096)
    cache.path.write_bytes(raw)
    fresh = ReplyCache(cache.path)
    assert fresh.get("k1") is None
    fresh.put("k1", 2)
    fresh.put("k1", 3)
    assert fresh.get("k1") == 3
    fresh.close()


def test_a_path_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file.*cannot be opened.*cache=False"):
        ReplyCache(tmp_path / "file" / "replies.sqlite").get("k")


def _write_many(path, worker, count):
    cache = ReplyCache(path)
    for number in range(count):
        cache.put(f"{worker}-{number}", number)
    cache.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_processes_that_open_and_write_at_once_lose_nothing(cache):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_many, args=(cache.path, w, 200)) for w in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert [cache.get(f"{w}-{n}") for w in range(8) for n in range(200)] == list(range(200)) * 8


_shared: ReplyCache | None = None


def _use_inherited(number):
    _shared.put(f"t{number}", number)
    return _shared.get(f"t{number}")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_cache_opened_before_a_fork_works_in_the_children(cache):
    global _shared
    _shared = cache
    cache.put("before", 1)
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert pool.map(_use_inherited, range(500)) == list(range(500))
    assert cache.get("before") == 1
    assert [cache.get(f"t{n}") for n in range(500)] == list(range(500))


def test_threads_share_a_cache(cache):
    errors = []

    def work(worker):
        try:
            for number in range(50):
                cache.put(f"{worker}-{number}", number)
                assert cache.get(f"{worker}-{number}") == number
        except BaseException as error:
            errors.append(error)
        finally:
            cache.close()

    threads = [threading.Thread(target=work, args=(w,)) for w in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_cache_can_be_pickled(cache):
    cache.put("k", 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert copy.get("k") == 1
    copy.close()


async def test_one_of_many_identical_requests_makes_the_value(cache):
    made = []

    async def ask():
        async with cache.flight("k"):
            if (value := cache.get("k")) is None:
                await asyncio.sleep(0.02)
                made.append(1)
                cache.put("k", value := "answer")
            return value

    assert await asyncio.gather(*[ask() for _ in range(16)]) == ["answer"] * 16
    assert len(made) == 1


async def test_the_next_in_line_tries_when_the_first_fails(cache):
    attempts = []

    async def ask():
        async with cache.flight("k"):
            attempts.append(1)
            await asyncio.sleep(0.01)
            if len(attempts) == 1:
                raise ValueError("first failed")
            return "answer"

    results = await asyncio.gather(ask(), ask(), return_exceptions=True)
    assert [type(results[0]), results[1]] == [ValueError, "answer"]


async def test_a_cancelled_waiter_does_not_stop_the_others(cache):
    async def ask():
        async with cache.flight("k"):
            await asyncio.sleep(0.03)

    first, second, third = (asyncio.ensure_future(ask()) for _ in range(3))
    await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.wait_for(asyncio.gather(first, third), 2)
    assert second.cancelled()
