"""What HTTP can bring: packed, cut, odd and hostile answers, proxies, certificates, and the end of a loop.

Every test runs once by each HTTP library that calls may go through.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fakes import completion, fake_openai
from groundrule._util.aio import run_sync
from groundrule.data import ChatRequest
from groundrule.errors import ConfigError, LlmError, ProviderError
from groundrule.llm import OpenAIClient, transport
from groundrule.llm.retry import Retry, UnreachableError

BODY = json.dumps(completion()).encode()
ABSENT = {"aiohttp": [], "httpx2": ["aiohttp"], "httpx": ["aiohttp", "httpx2"]}
"""By the library that is to send, those that count as not installed."""


@pytest.fixture(params=ABSENT, autouse=True)
def library(request, monkeypatch) -> str:
    for name in ABSENT[request.param]:
        monkeypatch.setitem(sys.modules, name, None)
    return request.param


def request(**params) -> ChatRequest:
    return ChatRequest(model="m", messages=({"role": "user", "content": "hi"},), params=params)


def client_of(base_url: str, *, attempts: int = 1, key: str = "sk-secret", **more) -> OpenAIClient:
    retry = Retry(attempts=attempts, first_wait_s=0.001)
    return OpenAIClient(base_url=base_url, api_key=key, retry=retry, **more)


def answer_of(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class RawServer:
    """Plays raw answers in turn, repeats the last and closes each connection; keeps what it was sent."""

    def __init__(self, answers: list[bytes], wrap: Callable[[socket.socket], socket.socket]) -> None:
        self.requests: list[bytes] = []
        self.closed = threading.Event()
        self._answers, self._wrap = answers, wrap
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            try:
                with self._wrap(connection) as wrapped:
                    self._answer(wrapped)
            except (ssl.SSLError, ConnectionError):
                connection.close()

    def _answer(self, connection: socket.socket) -> None:
        self.requests.append(_read_request(connection))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer == b"wait":
            connection.recv(1)  # Until the other side is gone.
            self.closed.set()
            return
        connection.sendall(answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def _read_request(connection: socket.socket) -> bytes:
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if end and len(body) >= int(length or 0):
            return received
        if not (data := connection.recv(65_536)):
            return received
        received += data


@contextmanager
def raw_server(
    *answers: bytes, wrap: Callable[[socket.socket], socket.socket] = lambda c: c
) -> Iterator[RawServer]:
    server = RawServer(list(answers), wrap)
    try:
        yield server
    finally:
        server.close()


async def test_no_server_is_asked_to_keep_the_connection():
    with raw_server(answer_of(BODY)) as server:
        await client_of(server.url).complete(request())
        assert b"\r\nconnection: close\r\n" in server.requests[0].lower()


async def test_calls_go_through_the_first_library_that_is_installed(library):
    refusals = transport._new_sender().refusals
    assert {error.__module__.partition(".")[0] for error in refusals} == {library}


@pytest.mark.parametrize("version", ["3.12.15", "4.0.0a1"])
@pytest.mark.parametrize("library", ["aiohttp"], indirect=True)
async def test_an_aiohttp_outside_of_our_range_is_passed_over(version, monkeypatch):
    monkeypatch.setattr("aiohttp.__version__", version)
    assert type(transport._new_sender()).__name__ == "HttpxSender"


@pytest.mark.parametrize("library", ["httpx"], indirect=True)
async def test_without_any_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigError, match=r"pip install 'groundrule\[fast\]'"):
        await client_of("http://127.0.0.1:9/v1").complete(request())


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_packed_answer_is_unpacked(coding, pack):
    with fake_openai((200, {"Content-Encoding": coding}, pack(BODY))) as server:
        assert (await client_of(server.base_url).complete(request())).content == "hello"


async def test_an_answer_in_chunks_is_read_whole():
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(BODY[i : i + 7]), BODY[i : i + 7]) for i in range(0, len(BODY), 7)
    )
    with raw_server(answer_of(chunks + b"0\r\n\r\n", "Transfer-Encoding: chunked")) as server:
        assert (await client_of(server.url).complete(request())).content == "hello"


async def test_an_answer_without_a_length_ends_with_its_connection():
    with raw_server(answer_of(BODY)) as server:
        assert (await client_of(server.url).complete(request())).content == "hello"


async def test_a_large_answer_and_long_headers_are_read():
    with fake_openai((200, {"X-Long": "x" * 20_000}, completion("ä" * 3_000_000))) as server:
        assert len((await client_of(server.base_url).complete(request())).content) == 3_000_000


@pytest.mark.parametrize("body", [b"", b"\xff\xfe\xfa", b"[" * 100_000, b"<html>hello</html>"])
async def test_a_body_that_is_no_json_is_an_error_about_the_base_url(body):
    with fake_openai((200, {}, body)) as server, pytest.raises(LlmError, match=r"cannot be read.*base URL"):
        await client_of(server.base_url).complete(request())


async def test_a_page_of_html_with_an_error_is_left_out_of_the_message():
    page = (502, {"Content-Type": "text/html"}, b"<html>" + b"x" * 9_000)
    with fake_openai(page) as server, pytest.raises(ProviderError) as caught:
        await client_of(server.base_url).complete(request())
    assert str(caught.value).endswith("answered 502: Bad Gateway")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no such model"}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ([{"error": {"message": "no such model", "code": 404}}], "no such model"),
        ({"object": "error", "message": "no such model"}, "no such model"),
        ({"detail": "no such model"}, "no such model"),
        (b"no such model", "no such model"),
        ({"error": None}, "Not Found"),
        (b"", "Not Found"),
        (b"\xff", "\ufffd"),
    ],
)
async def test_what_a_server_says_of_an_error_is_found_in_the_forms_that_servers_use(body, message):
    said = f"answered 404: {message}; check the model's name"
    with fake_openai((404, {}, body)) as server, pytest.raises(ProviderError, match=said):
        await client_of(server.base_url).complete(request())


async def test_a_large_request_is_sent_whole():
    content = "ä" * 2_000_000
    with fake_openai((307, {"Location": "/v2"}, {}), (200, {}, completion())) as server:
        asked = ChatRequest(model="m", messages=({"role": "user", "content": content},))
        await client_of(server.base_url).complete(asked)
        assert [len(body["messages"][0]["content"]) for body in server.requests] == [2_000_000, 2_000_000]


async def test_an_answer_that_breaks_off_is_asked_for_again():
    cut = answer_of(BODY[:50], f"Content-Length: {len(BODY)}")
    with raw_server(cut, b"", answer_of(BODY)) as server:
        assert (await client_of(server.url, attempts=3).complete(request())).content == "hello"
        assert len(server.requests) == 3


async def test_an_answer_that_is_not_http_is_an_unreachable_server():
    with (
        raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as server,
        pytest.raises(UnreachableError, match="cannot be reached"),
    ):
        await client_of(server.url).complete(request())


async def test_a_packed_answer_that_is_damaged_is_an_unreachable_server():
    with (
        fake_openai((200, {"Content-Encoding": "gzip"}, b"no gzip")) as server,
        pytest.raises(UnreachableError),
    ):
        await client_of(server.base_url).complete(request())


async def test_a_redirect_to_another_server_is_not_followed_and_names_the_address():
    with fake_openai((200, {}, completion())) as other:
        moved = (307, {"Location": f"{other.base_url}/chat/completions"}, {})
        said = f"answered 307.*points to '{other.base_url}/chat"
        with fake_openai(moved) as server, pytest.raises(ProviderError, match=said):
            await client_of(server.base_url).complete(request())
        assert other.requests == []


async def test_a_redirect_on_the_same_server_is_followed():
    with fake_openai((308, {"Location": "/v2/chat"}, {}), (200, {}, completion())) as server:
        assert (await client_of(server.base_url).complete(request())).content == "hello"
        assert server.requests[0] == server.requests[1]


async def test_redirects_in_a_circle_end():
    with fake_openai((307, {"Location": "/v1/chat/completions"}, {})) as server:
        with pytest.raises(ProviderError, match="answered 307"):
            await client_of(server.base_url).complete(request())
        assert len(server.requests) == 4


async def test_the_proxy_of_the_environment_is_asked(monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with raw_server(answer_of(BODY)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        await client_of("http://judge.invalid/v1").complete(request())
        assert proxy.requests[0].startswith(b"POST http://judge.invalid/v1/chat/completions HTTP/1.1\r\n")


async def test_the_login_of_a_proxy_is_sent_to_it(monkeypatch):
    monkeypatch.delenv("no_proxy", raising=False)
    with raw_server(answer_of(BODY)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{proxy.port}")
        await client_of("http://judge.invalid/v1").complete(request())
        assert b"\r\nproxy-authorization: basic bwu6cgfzcw==\r\n" in proxy.requests[0].lower()


async def test_no_proxy_leaves_a_host_out(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with fake_openai((200, {}, completion())) as server:
        assert (await client_of(server.base_url).complete(request())).content == "hello"


async def test_a_socks_proxy_is_refused_with_a_remedy(monkeypatch):
    monkeypatch.setenv("all_proxy", "socks5://127.0.0.1:9")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ConfigError, match=r"socks5 proxy for judge\.invalid.*NO_PROXY"):
        await client_of("http://judge.invalid/v1").complete(request())


@pytest.fixture
def certificate(tmp_path) -> str:
    """A certificate for 127.0.0.1, with its key, that no system trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl program makes the certificate")
    path = str(tmp_path / "own.pem")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1"
    )
    subprocess.run(
        [*command.split(), "-keyout", path + ".key", "-out", path], check=True, capture_output=True
    )
    return path


@contextmanager
def tls_server(certificate: str) -> Iterator[RawServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate + ".key")
    transport._trusted.cache_clear()
    with raw_server(answer_of(BODY), wrap=lambda c: context.wrap_socket(c, server_side=True)) as server:
        yield server
    transport._trusted.cache_clear()


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate):
    with (
        tls_server(certificate) as server,
        pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        await client_of(server.url.replace("http:", "https:")).complete(request())
    assert server.requests == []


async def test_a_certificate_in_ssl_cert_file_is_trusted(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with tls_server(certificate) as server:
        assert (await client_of(server.url.replace("http:", "https:")).complete(request())).content == "hello"


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-\vsecret", "sk-\ud835"])
async def test_a_key_that_is_no_text_on_one_line_is_refused_and_not_shown(key):
    with (
        fake_openai((200, {}, completion())) as server,
        pytest.raises(ConfigError, match="check the key") as caught,
    ):
        await client_of(server.base_url, key=key).complete(request())
    assert "sk-" not in str(caught.value) and server.requests == []


async def test_a_blank_behind_a_key_is_left_out_and_other_alphabets_are_sent_as_utf8():
    with raw_server(answer_of(BODY)) as server:
        await client_of(server.url, key="sk-ключ ").complete(request())
        assert "Authorization: Bearer sk-ключ\r\n".encode() in server.requests[0]


@pytest.mark.parametrize("headers", [{"X-Count": 1}, {"X Title": "a"}, {"Content-Length": "3"}])
async def test_a_header_that_cannot_be_sent_is_refused_at_once(headers):
    with raw_server(answer_of(BODY)) as server, pytest.raises(ConfigError, match="extra_headers"):
        await client_of(server.url, attempts=3).complete(request(extra_headers=headers))


async def test_a_base_url_that_is_no_address_is_refused_at_once():
    with pytest.raises(ConfigError, match="no http or https address"):
        await client_of("ftp://127.0.0.1/v1", attempts=3).complete(request())


async def test_extra_headers_are_sent_and_replace_ours():
    with raw_server(answer_of(BODY)) as server:
        headers = {"X-Title": "judge", "authorization": "Token t"}
        await client_of(server.url).complete(request(extra_headers=headers))
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        assert b"\r\nX-Title: judge\r\n" in head + b"\r\n"
        assert head.lower().count(b"\r\nauthorization:") == 1 and b": Token t" in head
        assert json.loads(body).keys() == {"model", "messages"}


async def test_a_parameter_that_is_no_json_is_refused():
    with fake_openai((200, {}, completion())) as server, pytest.raises(ConfigError, match="is no JSON"):
        await client_of(server.base_url).complete(request(temperature=float("nan")))


async def test_the_query_of_a_base_url_stays_behind_the_path():
    with raw_server(answer_of(BODY)) as server:
        await client_of(f"{server.url}/?api-version=2").complete(request())
        assert server.requests[0].startswith(b"POST /v1/chat/completions?api-version=2 HTTP/1.1")


async def test_a_login_in_the_base_url_takes_the_place_of_the_key():
    with fake_openai((200, {}, completion())) as server:
        await client_of(server.base_url.replace("//", "//me:pass@")).complete(request())
        assert server.headers[0]["authorization"] == "Basic " + base64.b64encode(b"me:pass").decode()


@pytest.mark.parametrize(("variable", "sent"), [("OPENAI_API_KEY", "org-1"), ("GROQ_API_KEY", None)])
async def test_only_openai_is_told_the_organization(variable, sent, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    with fake_openai((200, {}, completion())) as server:
        await client_of(server.base_url, key_variable=variable).complete(request())
        assert server.headers[0].get("openai-organization") == sent


async def test_a_cancelled_call_closes_its_connection():
    with raw_server(b"wait") as server:
        call = asyncio.create_task(client_of(server.url).complete(request()))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(server.closed.wait, 5)


def test_loops_that_are_over_are_let_go():
    over: list[weakref.ref] = []

    async def ask() -> None:
        over.append(weakref.ref(asyncio.get_running_loop()))
        await client.complete(request())

    with fake_openai((200, {}, completion())) as server:
        client = client_of(server.base_url)
        for _ in range(4):
            run_sync(ask())
    gc.collect()
    assert [loop() is None for loop in over] == [True, True, True, False]


PROGRAM = """
import asyncio, sys
sys.modules.update(dict.fromkeys(sys.argv[2:]))
from groundrule.data import ChatRequest
from groundrule.llm import OpenAIClient

client = OpenAIClient(base_url=sys.argv[1], api_key="k")
request = ChatRequest(model="m", messages=({"role": "user", "content": "hi"},))

async def main():
    replies = await asyncio.gather(*(client.complete(request) for _ in range(5)))
    print(*(reply.content for reply in replies))
    waiting = asyncio.create_task(client.complete(request))
    await asyncio.sleep(0.2)

asyncio.run(main())
"""


def test_a_program_ends_without_a_word_about_open_connections(library):
    with raw_server(*[answer_of(BODY)] * 5, b"wait") as server:
        command = [sys.executable, "-W", "always::ResourceWarning", "-c", PROGRAM, server.url]
        command += ABSENT[library]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["hello"] * 5, "")
