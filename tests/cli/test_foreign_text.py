"""Text of the other end on a real terminal: failures, goodbyes, reasons and names steer nothing, and end nothing."""

import asyncio
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_raw

from antiphon.cli import doctor
from antiphon.cli.running import _complain
from antiphon.config import Limits
from antiphon.device.doctor import Report
from antiphon.errors import RemoteError
from antiphon.models.toy import named_toy
from antiphon.wire import messages as m
from support.fakecloud import Script, fake_cloud, frame

EVIL = "x\x1b]0;pwned\x07\x1b[2J\nantiphon: all is well\r\x9b31m\u202e"


def on_a_terminal(url: str, cache: Path) -> bytes:
    """What a person sees of an answer of this cloud."""
    ours, theirs = pty.openpty()
    asked = ["generate", "--cloud", url, "--method", "cloud", "--max-tokens", "3", "x"]
    command = [sys.executable, "-m", "antiphon", *asked]
    environment = {**os.environ, "ANTIPHON_CACHE": str(cache), "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    process.wait(60)
    os.close(ours)
    return seen


async def fails(socket: ServerConnection) -> None:
    await socket.send(frame(1, m.Failure("busy", EVIL)))
    await asyncio.sleep(20)


async def fails_all(socket: ServerConnection) -> None:
    await socket.send(frame(0, m.Failure("busy", EVIL)))
    await asyncio.sleep(20)


async def closes(socket: ServerConnection) -> None:
    await socket.send(frame(1, m.Closed(EVIL, 3, 1.0, False, 0.0)))
    await asyncio.sleep(20)


@pytest.mark.medium
@pytest.mark.parametrize("script", [fails, fails_all, closes])
def test_what_a_cloud_says_does_not_steer_the_terminal(script: Script, tmp_path: Path) -> None:
    async def run() -> bytes:
        async with fake_cloud(script) as url:
            return await asyncio.to_thread(on_a_terminal, url, tmp_path)

    seen = asyncio.run(asyncio.wait_for(run(), 90))
    assert b"\x1b]0;" not in seen
    assert b"\x1b[2J" not in seen
    assert b"\nantiphon: all is well" not in seen


@pytest.mark.medium
def test_names_that_a_cloud_gives_itself_do_not_steer_it_either(tmp_path: Path) -> None:
    async def serve(socket: ServerConnection) -> None:
        await socket.recv()
        known = named_toy("toy-cloud").vocabulary
        await socket.send(frame(0, m.Welcome(m.VERSION, EVIL, EVIL, known.fingerprint, 4096, (EVIL,), Limits(), EVIL)))
        await socket.recv()
        await socket.send(frame(0, m.VocabularyPart(0, 1, known.pack())))
        await socket.recv()
        await socket.send(frame(0, m.CommonReady()))
        await socket.wait_closed()

    async def run() -> bytes:
        async with serve_raw(serve, "127.0.0.1", 0, compression=None) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            return await asyncio.to_thread(on_a_terminal, url, tmp_path)

    seen = asyncio.run(asyncio.wait_for(run(), 90))
    assert b"the cloud does not know the method cloud" in seen
    assert b"\x1b]0;" not in seen
    assert b"\x1b[2J" not in seen


def test_a_complaint_is_one_line_without_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert _complain(RemoteError(f"{EVIL} ws://u:s3cret@h", "busy")) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.isprintable() or told.rstrip("\n").isprintable()
    assert "s3cret" not in told


@pytest.mark.parametrize("name", ["[/x]", "[bold]m[/bold]", EVIL, "[link=file:///etc]m"])
def test_doctor_shows_names_as_they_are(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def report(url: object, config: object) -> Report:
        return Report("ws://u:s3cret@x", "d", name, 1.0, 1, 1, 1.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(doctor, "_examine", report)
    doctor.doctor("ws://x", "toy-device")
    told = capsys.readouterr().out
    assert "s3cret" not in told
    assert "\x1b]" not in told
    if name.isprintable():
        assert name in told


@pytest.mark.medium
@pytest.mark.parametrize("signals", [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_a_cloud_stops_beside_one_that_does_not_read(signals: tuple[signal.Signals, ...], tmp_path: Path) -> None:
    """A second Ctrl-C does not wait at all."""
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", "serve", "--model", "toy-cloud", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    port = int(process.stdout.readline().split("ws://127.0.0.1:")[1].split()[0])
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", port))
    key = "Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\nSec-WebSocket-Version: 13"
    deaf.sendall(f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n\r\n".encode())
    deaf.settimeout(1.0)
    deaf.sendall(masked(frame(0, m.Hello(m.VERSION, "x", "", b""))))
    with pytest.raises(TimeoutError):
        ask_for_ever(deaf)
    began = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.3)
    process.wait(30)
    deaf.close()
    process.stdout.close()
    assert time.monotonic() - began < 15
    assert process.returncode == (130 if len(signals) == 2 else 0)


def ask_for_ever(deaf: socket.socket) -> None:
    while True:
        deaf.sendall(masked(frame(0, m.Ping(bytes(60_000)))))


def masked(data: bytes) -> bytes:
    head = bytes([0x82, 0x80 | len(data)]) if len(data) < 126 else bytes([0x82, 0xFE]) + len(data).to_bytes(2, "big")
    return head + bytes(4) + data
