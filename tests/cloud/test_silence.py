"""Who stops reading, or falls silent, is noticed on both ends within the time that was set, and costs the others nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial_raw
from websockets.asyncio.server import ServerConnection

from antiphon.cloud.server import address, listen, server_of
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, ServeConfig, Timeouts
from antiphon.device.connection import Connection, connect
from antiphon.engine.worker import Worker
from antiphon.errors import AntiphonError, LinkError
from antiphon.models.toy import named_toy
from antiphon.wire import messages as m
from support.fakecloud import Script, fake_cloud, frame
from support.links import raw_session
from support.resources import require_nothing_kept

LOST = 0.9
PATIENCE = Timeouts(arrive=0.5, lost=LOST, stalled=1.5, close=0.3)
SOON = 8.0
"""Seconds in which it surely was noticed on a busy machine, and far under those of a default."""


@asynccontextmanager
async def served(timeouts: Timeouts = PATIENCE, limits: Limits | None = None) -> AsyncIterator[tuple[str, Cloud]]:
    """A toy cloud, and its address; what it must not do is wait long for its end."""
    cloud = Cloud(named_toy("toy-cloud"), limits)
    listener = listen(ServeConfig(port=0))
    server = server_of(cloud, ServeConfig(port=0, timeouts=timeouts))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield address(listener), cloud
    finally:
        server.should_exit = True
        began = time.monotonic()
        await task
        assert time.monotonic() - began < SOON
        cloud.close()


async def greeted(url: str) -> ClientConnection:
    """A bare socket, ready for sessions, that reads no more than it is asked to and answers no ping."""
    socket = await dial_raw(url, compression=None, proxy=None, ping_interval=None, max_queue=1, close_timeout=0.1)
    await socket.send(frame(0, m.Hello(m.VERSION, "test", "", b"")))
    welcome = m.decode(await socket.recv(decode=False)).message
    assert isinstance(welcome, m.Welcome)
    await socket.send(frame(0, m.Common(welcome.vocabulary, 272)))
    await socket.recv()
    return socket


def opening(method: str, tokens: int) -> m.Open:
    from antiphon.config import SamplingParams

    return m.Open(method, {}, SamplingParams(temperature=1.0), "the ", False, tokens, 1, ())


async def asks_and_does_not_read(socket: ClientConnection) -> None:
    """Until nothing more can be sent."""
    socket.transport.pause_reading()
    with suppress(TimeoutError, Exception):
        async with asyncio.timeout(1.0):
            while True:
                await socket.send(frame(0, m.Ping(bytes(60_000))))


async def pings_and_does_not_read(socket: ClientConnection) -> None:
    """The same, with the WebSocket's own pings, whose answers nobody asked the program for."""
    socket.transport.pause_reading()
    with suppress(TimeoutError, Exception):
        async with asyncio.timeout(1.0):
            while True:
                await socket.ping(b"x" * 125)
                await asyncio.sleep(0)


async def falls_silent(socket: ClientConnection) -> None:
    socket.transport.pause_reading()


@pytest.mark.parametrize("act", [asks_and_does_not_read, pings_and_does_not_read, falls_silent])
def test_a_device_that_reads_nothing_loses_its_room(act: Callable[[ClientConnection], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served() as (url, cloud):
            socket = await greeted(url)
            await socket.send(frame(1, opening("coupled", 100)))
            await socket.recv()
            assert cloud._reserved > 0
            await act(socket)
            async with asyncio.timeout(SOON):
                while cloud._reserved:
                    await asyncio.sleep(0.02)
            require_nothing_kept(cloud)
            socket.transport.abort()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_server_stops_beside_a_device_that_does_not_read() -> None:
    async def run() -> None:
        async with served(Timeouts(close=0.3)) as (url, _):  # nothing of it is lost yet
            socket = await greeted(url)
            await asks_and_does_not_read(socket)
        socket.transport.abort()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_device_that_sends_one_long_frame_slowly_is_not_lost() -> None:
    async def run() -> None:
        async with served(Timeouts(lost=3.0)) as (url, _):
            socket = await greeted(url)
            body = frame(0, m.Ping(bytes(60_000)))
            head = bytes([0x82, 0xFE]) + len(body).to_bytes(2, "big") + bytes(4)
            data = head + body
            for start in range(0, len(data), len(data) // 6):
                socket.transport.write(data[start : start + len(data) // 6])
                await asyncio.sleep(0.7)  # longer than is allowed for silence, all in all
            pong = m.decode(await socket.recv(decode=False)).message
            assert isinstance(pong, m.Pong)
            await socket.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def heard(script: Script, seconds: float = SOON) -> tuple[str, float]:
    """What a device says that waits for a token of this cloud, and after how long; and it can leave at once."""

    async def run() -> tuple[str, float]:
        worker = Worker()
        async with fake_cloud(script) as url:
            connection = await connect(url, None, worker, timeouts=PATIENCE)
            session = await raw_session(connection, method="cloud", options={})
            began = time.monotonic()
            try:
                async with asyncio.timeout(seconds):
                    while True:
                        await session.receive()
            except AntiphonError as error:
                told = str(error), time.monotonic() - began
            await leave(connection)
            worker.close()
            return told

    return asyncio.run(asyncio.wait_for(run(), 60))


async def leave(connection: Connection) -> None:
    began = time.monotonic()
    await connection.close()
    assert time.monotonic() - began < SOON


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))


async def freezes(socket: ServerConnection) -> None:
    socket.transport.pause_reading()
    await asyncio.sleep(20)


async def only_pings(socket: ServerConnection) -> None:
    for number in range(10_000):
        await socket.send(frame(0, m.Ping(number.to_bytes(4, "big"))))
        await asyncio.sleep(0.05)


async def only_pongs(socket: ServerConnection) -> None:
    while True:
        await socket.send(frame(0, m.Pong(bytes(1000))))
        await asyncio.sleep(0.001)


async def pings_without_reading(socket: ServerConnection) -> None:
    socket.transport.pause_reading()
    while True:
        await socket.ping(b"x" * 125)
        await asyncio.sleep(0)


def test_a_cloud_that_freezes_is_lost_to_its_device() -> None:
    sentence, seconds = heard(freezes)
    assert f"is lost: it gave no sign for {LOST:g} s" in sentence
    assert seconds >= LOST


@pytest.mark.parametrize("script", [only_pings, only_pongs])
def test_a_cloud_that_is_there_and_does_not_get_on_is_lost_too(script: Script) -> None:
    sentence, seconds = heard(script)
    assert sentence == "the cloud sent nothing for this answer in 1.5 s"
    assert seconds >= 1.5


def test_a_cloud_that_asks_and_does_not_read_is_lost() -> None:
    assert heard(pings_without_reading)[0].startswith(("the cloud at ", "the cloud sent nothing"))


def test_a_device_leaves_a_frozen_cloud_at_once() -> None:
    """Before it is lost: as on Ctrl-C."""

    async def run() -> float:
        worker = Worker()
        async with fake_cloud(freezes) as url:
            connection = await connect(url, None, worker, timeouts=Timeouts(close=0.3))
            session = await raw_session(connection, method="cloud", options={})
            await asyncio.sleep(0.2)
            began = time.monotonic()
            with suppress(LinkError):
                await session.cancel()
            await connection.close()
            took = time.monotonic() - began
            worker.close()
            return took

    assert asyncio.run(asyncio.wait_for(run(), 60)) < 10.0


def test_a_ping_that_is_not_answered_is_given_up() -> None:
    async def run() -> None:
        worker = Worker()

        async def never(socket: ServerConnection) -> None:
            await asyncio.sleep(20)

        async with fake_cloud(never) as url:
            connection = await connect(url, None, worker, timeouts=Timeouts(lost=0.5, close=0.3))
            await raw_session(connection, method="cloud", options={})
            with pytest.raises(LinkError, match=r"within 0\.5 s|no sign for 0\.5 s|is lost"):
                await connection.ping()
            await connection.close()
            worker.close()

    asyncio.run(asyncio.wait_for(run(), 60))
