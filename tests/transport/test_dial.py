"""Dialling: an address that is none, a cloud that is none, and what each answer says; no password is repeated."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from http import HTTPStatus
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_raw
from websockets.http11 import Request, Response

from antiphon import shown
from antiphon.errors import AntiphonError, LinkError, UsageError
from antiphon.transport.websocket import _require_address, dial

NONE = [
    "ws://127.0.0.1:99999",
    "ws://127.0.0.1:abc",
    "ws://[::1",
    "ws://",
    "ws:///x",
    "http://h:1",
    "h:1",
    "",
    "ws://h:1#x",
    "ws://h:-1",
]


@pytest.mark.parametrize("url", NONE)
def test_an_address_that_is_none_is_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="is no WebSocket address: it must look like"):
        asyncio.run(dial(url, 1024))


@given(st.one_of(st.text(), st.text().map("ws://".__add__), st.from_regex(r"wss?://[\[\]:@/#?a-z0-9]*", fullmatch=True)))
def test_whatever_is_given_for_an_address_is_taken_or_refused(url: str) -> None:
    with contextlib.suppress(UsageError):
        _require_address(url)


PASSWORDS = [
    ("ws://user:s3cret@127.0.0.1:1", "ws://user@127.0.0.1:1"),
    ("wss://:s3cret@h", "wss://@h"),
    ("postgresql://u:s3cret@h/d is shut", "postgresql://u@h/d is shut"),
    ("postgresql://u@h/d?password=s3cret&x=1", "postgresql://u@h/d?x=1"),
    ("ws://127.0.0.1:8765 and ws://[::1]:8765", "ws://127.0.0.1:8765 and ws://[::1]:8765"),
    ("at 10:30 he said: a@b", "at 10:30 he said: a@b"),
]


@pytest.mark.parametrize(("text", "public"), PASSWORDS)
def test_an_address_is_shown_without_its_password(text: str, public: str) -> None:
    assert shown.address(text) == public


def test_nobody_there_is_said_without_a_password() -> None:
    with pytest.raises(LinkError, match="ws://user@127") as caught:
        asyncio.run(dial("ws://user:s3cret@127.0.0.1:1", 1024))
    assert "s3cret" not in str(caught.value)


def told(status: int, body: bytes = b"", **headers: str) -> str:
    """What a device says of a server that answers so."""

    async def run() -> str:
        def answer(connection: ServerConnection, request: Request) -> Response:
            response = connection.respond(HTTPStatus(status), body.decode())
            for name, value in headers.items():
                response.headers[name] = value
            return response

        async with serve_raw(lambda socket: None, "127.0.0.1", 0, process_request=answer) as server:
            with pytest.raises(AntiphonError) as caught:
                await dial(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", 1024)
            return str(caught.value)

    return asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "asks who you are (HTTP 401): give its user name and password"),
        (403, "refuses this device (HTTP 403): go away"),
        (404, "answers HTTP 404, so it is no Antiphon cloud"),
        (503, "answers HTTP 503: go away"),
        (500, "answers HTTP 500, so it is no Antiphon cloud"),
    ],
)
def test_each_answer_says_what_it_is(status: int, sentence: str) -> None:
    assert sentence in told(status, b"go away")


def test_a_cloud_that_hangs_up_before_it_speaks_is_not_said_to_speak_something_else() -> None:
    async def run() -> str:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            with pytest.raises(LinkError) as caught:
                await dial(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", 1024)
            return str(caught.value)

    assert "(it closed the connection): is `antiphon serve` running there?" in asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    sentence = told(status, Location="ws://u:s3cret@elsewhere.example/")
    assert f"sends its visitors to ws://u@elsewhere.example/ (HTTP {status})" in sentence


def certificate(folder: Path) -> ssl.SSLContext:
    """A server's, that it signed itself."""
    if shutil.which("openssl") is None:
        pytest.skip("this machine has no openssl to sign with")
    key, signed = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(signed)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    return context


@pytest.mark.parametrize(("signed", "scheme", "sentence"), [
    (True, "wss", "is not one that this machine trusts (self-signed certificate)"),
    (False, "wss", "does not speak TLS|(it closed the connection)"),
    (True, "ws", "does not speak WebSocket|cannot reach the cloud"),
])  # fmt: skip
def test_a_certificate_that_nobody_vouches_for(signed: bool, scheme: str, sentence: str, tmp_path: Path) -> None:
    async def run() -> str:
        context = certificate(tmp_path) if signed else None
        async with serve_raw(lambda socket: None, "127.0.0.1", 0, ssl=context) as server:
            with pytest.raises(LinkError) as caught:
                await dial(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}", 1024)
            return str(caught.value)

    found = asyncio.run(asyncio.wait_for(run(), 30))
    assert any(one in found for one in sentence.split("|")), found
