"""What a cloud sends is bounded in count, in bytes and in time: one that lies costs a device one sentence."""

import asyncio
import hashlib
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from websockets.asyncio.server import ServerConnection

from antiphon.config import Request
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.device.session import BYTES_WAITING, MESSAGES_WAITING
from antiphon.engine.worker import Worker
from antiphon.errors import ProtocolError, RemoteError
from antiphon.vocabulary import MAX_BYTES, MAX_TOKENS, Vocabulary
from antiphon.wire import messages as m
from support.fakecloud import Script, fake_cloud, frame
from support.links import raw_session


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))


def beside(script: Script, test: Callable[[Connection], object]) -> object:
    """What `test` finds of a connection with a session, where the cloud follows the script."""

    async def run() -> object:
        worker = Worker()
        async with fake_cloud(script) as url:
            connection = await connect(url, None, worker)
            await raw_session(connection, method="cloud", options={})
            try:
                return await test(connection)  # type: ignore[misc]
            finally:
                await connection.close()
                worker.close()

    return asyncio.run(asyncio.wait_for(run(), 60))


async def pongs_that_nobody_asked_for(socket: ServerConnection) -> None:
    for _ in range(3000):
        await socket.send(frame(0, m.Pong(bytes(1000))))
    while True:  # and honest ones
        message = m.decode(await socket.recv(decode=False)).message
        if isinstance(message, m.Ping):
            await socket.send(frame(0, m.Pong(b"another's")))
            await socket.send(frame(0, m.Pong(message.data)))


def test_pongs_that_nobody_asked_for_are_not_kept_and_answer_no_ping() -> None:
    async def test(connection: Connection) -> int:
        assert await connection.ping(64) > 0
        assert await connection.ping(8) > 0
        return len(connection._pings)

    assert beside(pongs_that_nobody_asked_for, test) == 0


def flood(message: m.Message, count: int) -> Script:
    async def script(socket: ServerConnection) -> None:
        for _ in range(count):
            await socket.send(frame(1, message))
        await asyncio.sleep(20)

    return script


@pytest.mark.slow
@pytest.mark.parametrize(("message", "count"), [(m.Tokens(b"\x01"), 20_000), (m.Tokens(bytes(4 * 2**20)), 40)])
def test_messages_that_nobody_reads_are_bounded_in_number_and_in_bytes(message: m.Message, count: int) -> None:
    """The cloud has to wait, however much it has to say; what it says then is not lost."""

    async def test(connection: Connection) -> tuple[int, int, bool]:
        (session,) = connection._sessions.values()
        before = -1
        while before != session._inbox.qsize() or before < 2:
            before = session._inbox.qsize()
            await asyncio.sleep(0.3)
        most = session._inbox.qsize(), session._inbox._bytes
        for _ in range(count):
            assert await session.receive() == message
        return *most, connection._broken is None

    number, size, alive = beside(flood(message, count), test)  # type: ignore[misc]
    assert number <= MESSAGES_WAITING
    assert size <= BYTES_WAITING
    assert alive


def bomb(tokens: int, size: int) -> tuple[bytes, bytes]:
    """A vocabulary of equal tokens, packed, and its fingerprint."""
    head = np.asarray([tokens, 0, 1, 0], "<i4").tobytes() + np.full(tokens, size, "<u2").tobytes()
    raw = head + bytes(tokens) + bytes((tokens + 7) // 8) + bytes(tokens * size)
    return zlib.compress(raw, 9), hashlib.sha256(raw).digest()[:16]


@pytest.mark.medium
@pytest.mark.parametrize(("tokens", "size"), [(2**22, 26), (MAX_TOKENS, 40), (2, 60_000), (MAX_TOKENS, 26)])
def test_a_vocabulary_takes_no_more_memory_than_a_real_one_may(tokens: int, size: int, tmp_path: Path) -> None:
    """Peak memory of a process that unpacks it: 1.2 GB before, for the first."""
    (tmp_path / "packed").write_bytes(bomb(tokens, size)[0])
    code = """
import resource, sys
from antiphon.errors import ProtocolError
from antiphon.vocabulary import Vocabulary
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    Vocabulary.unpack(open(sys.argv[1], "rb").read())
except ProtocolError:
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "packed")], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 200  # MiB


def test_a_vocabulary_that_is_too_large_is_refused_before_all_of_it_came() -> None:
    sent: list[int] = []

    async def parts(socket: ServerConnection) -> None:
        for index in range(512):
            sent.append(index)
            await socket.send(frame(0, m.VocabularyPart(index, 512, bytes(m.PART_BYTES))))

    async def run() -> None:
        worker = Worker()
        async with fake_cloud(parts, send_vocabulary=parts) as url:
            with pytest.raises(ProtocolError, match="the cloud's vocabulary has more than 16 MiB"):
                await connect(url, None, worker)
        worker.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert len(sent) * m.PART_BYTES < 2 * MAX_BYTES


@pytest.mark.parametrize(("place", "value"), [(3, float("nan")), (3, float("inf")), (3, -1.0), (5, float("nan")), (5, 1.5)])
def test_no_figure_of_a_cloud_is_none(place: int, value: float) -> None:
    """What would be `NaN` in JSON, which no reader of JSON takes."""
    closed = msgspec.msgpack.decode(frame(1, m.Closed("length", 3, 1.0, False, 0.0)))
    closed[1][place] = value

    async def script(socket: ServerConnection) -> None:
        for _ in range(3):
            await socket.send(frame(1, m.Tokens(b"\x01\x00")))
        await socket.send(msgspec.msgpack.encode(closed))
        await asyncio.sleep(20)

    async def run() -> None:
        async with fake_cloud(script) as url:
            device = Device(None)
            connection = await connect(url, None, device.worker)
            with pytest.raises((ProtocolError, RemoteError), match="not a valid message"):
                json.dumps((await device.generate(Request("a", "cloud", max_tokens=3), connection)).as_json(), allow_nan=False)
            await connection.close()
            device.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_largest_vocabularies_of_today_are_taken() -> None:
    pieces = tuple(f"{number:07d}".encode() for number in range(2**18))
    kinds, canonical = np.zeros(2**18, np.uint8), np.ones(2**18, bool)
    vocabulary = Vocabulary(pieces, kinds, canonical, 0, (0,))
    assert len(Vocabulary.unpack(vocabulary.pack())) == 2**18
