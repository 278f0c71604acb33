"""A real browser without a window, driven by Chrome's DevTools protocol over the loopback interface."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --window-size=1280,960 --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --remote-debugging-port=0"
).split()
_CODES = {"Enter": 13, "Backspace": 8, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
_PATIENCE_S = 20


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._is_loaded = False
        self.asked: list[str] = []
        """Addresses of all requests since the start."""
        self.complaints: list[str] = []
        """What the browser's log says, violations of the page's own policy among it."""

    async def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Send it and wait for its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            said = await self._socket.receive_json(timeout=_PATIENCE_S)
            if said.get("id") == self._number:
                assert "error" not in said, said
                return dict(said["result"])
            self._hear(said)

    async def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        said = await self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def until(self, expression: str) -> None:
        """Wait until it is true."""
        end = asyncio.get_running_loop().time() + _PATIENCE_S
        while not await self.value(expression):
            text = await self.value("document.body.innerText")
            assert asyncio.get_running_loop().time() < end, (
                f"never {expression}; the page says {text[:300]!r}"
            )
            await asyncio.sleep(0.02)

    async def open(self, address: str) -> None:
        """Go there and wait for it. Before the load event an expression may still meet the page before."""
        self._is_loaded = False
        await self.command("Page.navigate", url=address)
        while not self._is_loaded:
            self._hear(await self._socket.receive_json(timeout=_PATIENCE_S))
        await self.until("location.protocol === 'http:' && document.readyState === 'complete'")

    async def press(self, *keys: str) -> None:
        """Keys as a person presses them, one after the other."""
        for key in keys:
            typed = {"Enter": "\r"}.get(key, key if len(key) == 1 else None)
            what: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": _CODES.get(key, ord(key[0].upper()))}
            if typed is not None:
                what["text"] = typed
            await self.command("Input.dispatchKeyEvent", type="keyDown", **what)
            what.pop("text", None)
            await self.command("Input.dispatchKeyEvent", type="keyUp", **what)

    async def click(self, selector: str) -> None:
        """The mouse, in the middle of the element."""
        x, y = await self.value(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _hear(self, said: dict[str, Any]) -> None:
        params = said.get("params", {})
        if said.get("method") == "Page.loadEventFired":
            self._is_loaded = True
        elif said.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif said.get("method") == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A browser with a profile of its own in `folder`, and its one tab."""
    assert PATH is not None
    process = subprocess.Popen(
        [PATH, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port = await _port(folder / "profile" / "DevToolsActivePort", process)
        async with aiohttp.ClientSession() as session:
            address = await _tab(session, port)
            async with session.ws_connect(address, max_msg_size=0) as socket:
                page = Page(socket)
                for domain in ("Page", "Runtime", "Network", "Log"):
                    await page.command(f"{domain}.enable")
                yield page
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def _port(path: Path, process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(_PATIENCE_S):
        while not (path.exists() and path.read_text().count("\n")):
            assert process.poll() is None, "the browser ended at once"
            await asyncio.sleep(0.05)
    return int(path.read_text().splitlines()[0])


async def _tab(session: aiohttp.ClientSession, port: int) -> str:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as reply:
                for tab in await reply.json(content_type=None):
                    if tab["type"] == "page":
                        return str(tab["webSocketDebuggerUrl"])
            await asyncio.sleep(0.05)
