"""The page in a real browser: keys, mouse, and answers that try to break out."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chrome
import pytest
from hostile import EVERYTHING

from fakes import group_of
from groundrule.data.preference_records import read_rankings
from groundrule.data.records import write_groups

pytestmark = pytest.mark.skipif(
    chrome.PATH is None, reason="no chromium is installed; `apt-get install chromium` brings one"
)


@contextmanager
def ranking(file: Path, *options: object) -> Iterator[str]:
    """The command at work, with the address that it printed; afterwards it is stopped as Ctrl-C does."""
    command = [sys.executable, "-m", "groundrule", "rank", file, "--annotator", "ann", *options]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2]
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
        finally:
            process.kill()


async def test_a_person_ranks_by_keys_and_mouse_and_hostile_answers_stay_text(tmp_path):
    file, out = tmp_path / "groups.jsonl", tmp_path / "out.jsonl"
    write_groups(file, [group_of(*EVERYTHING), group_of("Yes.", "No.", "Perhaps.")])
    with ranking(file, "--out", out) as address:
        async with chrome.browser(tmp_path) as page:
            await page.open(address)
            await page.until("document.querySelectorAll('.card').length === 4")
            assert "token" not in await page.value("location.href")
            assert await page.value("document.cookie") == ""
            shown = await page.value("[...document.querySelectorAll('.card .said')].map(e => e.textContent)")
            assert [EVERYTHING[0] in shown, EVERYTHING[1] in shown, EVERYTHING[3] in shown] == [True] * 3
            assert await page.value("window.hacked === undefined && !document.getElementById('broken')")
            assert await page.value(
                "[...document.querySelectorAll('.said')].some(e => e.scrollHeight > e.clientHeight + 100)"
            )
            await page.press("2", "=", "1", "4", "3")
            assert await page.value("document.getElementById('order').textContent") == "2 = 1 > 4 > 3"
            await page.press("Enter")
            await page.until("document.getElementById('count').textContent === '1 of 2 judged'")
            await page.press("s")
            await page.until("document.getElementById('count').textContent.endsWith('1 for later')")
            await page.press("u")
            await page.until("document.getElementById('count').textContent === '1 of 2 judged'")
            for card in (3, 1, 2):
                await page.click(f".card:nth-child({card}) .number")
            await page.press("Enter")
            await page.until("document.body.textContent.includes('All judged')")
        assert {a.split("/")[2] for a in page.asked if a.startswith("http")} == {address.split("/")[2]}
        assert page.complaints == []
    first, second = read_rankings(out)
    assert first.tiers == [[1, 0], [3], [2]]
    assert second.tiers == [[2], [0], [1]]
    assert [first.annotator, first.source] == ["ann", "human"]


async def test_two_answers_are_compared_by_one_key(tmp_path):
    file, out = tmp_path / "groups.jsonl", tmp_path / "out.jsonl"
    write_groups(file, [group_of("Yes.", "No.", "Perhaps.")])
    with ranking(file, "--out", out, "--mode", "compare") as address:
        async with chrome.browser(tmp_path) as page:
            await page.open(address)
            for done, key in enumerate(["ArrowLeft", "=", "2"]):
                await page.until(f"document.getElementById('count').textContent === '{done} of 3 judged'")
                await page.press(key)
            await page.until("document.body.textContent.includes('All judged')")
    assert [r.tiers for r in read_rankings(out)] == [[[0], [1]], [[0, 1]], [[1], [0]]]
