"""Sends by `aiohttp`, which takes the least CPU time of a call."""

from __future__ import annotations

import io

import aiohttp

from groundrule.llm.http import MOST_CONNECTIONS, Answer, Post

_LONGEST_HEADER = 65_536
_LARGE = 1 << 20


class AiohttpSender:
    """Implements `Sender`."""

    refusals = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
    faults = (aiohttp.ClientError, OSError)

    def __init__(self) -> None:
        self._connector = aiohttp.TCPConnector(limit=MOST_CONNECTIONS, force_close=True)

    async def send(self, post: Post) -> Answer:
        async with aiohttp.request(
            "POST",
            post.url,
            data=post.body if len(post.body) < _LARGE else io.BytesIO(post.body),  # In pieces, not at once.
            headers=post.headers,
            allow_redirects=False,
            connector=self._connector,
            proxy=post.proxy,
            ssl=post.tls or True,
            timeout=aiohttp.ClientTimeout(total=None),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        ) as response:
            raw = await response.read()
            return Answer(response.status, response.reason or "", response.headers, raw)
