"""Storms over real sockets, and what a cloud takes before and after: room, descriptors, tasks, threads, memory.

`python tests/cloud/storms.py SECONDS AT_ONCE [MODEL]` cuts connections at random places, and prints the figures.
"""

import asyncio
import gc
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial_raw
from websockets.exceptions import WebSocketException

from antiphon.cloud.server import address, listen, server_of
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, ModelConfig, SamplingParams, ServeConfig, Timeouts
from antiphon.models import load
from antiphon.models.base import InUse, Model
from antiphon.wire import messages as m
from cloud.fuzzing import resident
from support.frames import Passing
from support.resources import require_nothing_kept


@dataclass(frozen=True)
class Held:
    """What this process holds, the cloud's room, and the model's."""

    reserved: int
    answers: int
    in_use: InUse
    descriptors: int
    tasks: int
    threads: int
    mebibytes: int

    def same_room(self, other: "Held") -> bool:
        """Whether all but memory is the same."""
        return all(getattr(self, name) == getattr(other, name) for name in self.__dataclass_fields__ if name != "mebibytes")


@asynccontextmanager
async def at_sea(
    model: Model, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[str, Callable[[], Coroutine[Any, Any, Held]]]]:
    """A served cloud's address, and what looks at what it holds, once all have left."""
    cloud = Cloud(model, Limits(max_tokens=2000))
    config = ServeConfig(port=0, timeouts=timeouts or Timeouts())
    listener = listen(config)
    server = server_of(cloud, config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.005)

    async def held() -> Held:
        for _ in range(1000):
            if not server.server_state.connections and not cloud._reserved:
                break
            await asyncio.sleep(0.02)
        await asyncio.to_thread(require_nothing_kept, cloud)
        gc.collect()
        await asyncio.sleep(0.05)  # until the threads of what was collected have ended
        counts = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), threading.active_count(), resident()
        return Held(cloud._reserved, len(cloud._answering), model.in_use, *counts)  # type: ignore[attr-defined]

    try:
        yield address(listener), held
    finally:
        server.should_exit = True
        await task
        cloud.worker.close()


def frame(session: int, message: m.Message) -> bytes:
    return m.encode(m.Envelope(session, message))


def opening(method: str, tokens: int, seed: int = 1) -> m.Open:
    return m.Open(method, {}, SamplingParams(temperature=1.0), "Once upon ", False, tokens, seed, ())


async def greeted(url: str, size: int) -> ClientConnection:
    """A socket that is ready for sessions."""
    socket = await dial_raw(url, compression=None, proxy=None, ping_interval=None, close_timeout=0.2)
    await socket.send(frame(0, m.Hello(m.VERSION, "storm", "", b"")))
    welcome = m.decode(await socket.recv(decode=False)).message
    assert isinstance(welcome, m.Welcome)
    await socket.send(frame(0, m.Common(welcome.vocabulary, size)))
    await socket.recv()
    return socket


async def departures(url: str, size: int, count: int) -> Counter[str]:
    """Devices that leave at their last token, one after the other, while two others write without end."""
    told: Counter[str] = Counter()
    busy = [asyncio.create_task(_busy(url, size)) for _ in range(2)]
    await asyncio.sleep(0.3)
    for number in range(count):
        socket = await greeted(url, size)
        await socket.send(frame(1, opening("cloud", 2)))
        seen, down = 0, Passing()
        while seen < 2:
            match down.read(await socket.recv(decode=False)).message:
                case m.Tokens():
                    seen += 1
                case m.Failure(code):
                    told[code] += 1
                    break
        match number % 3:
            case 0:
                socket.transport.abort()
            case 1:
                await socket.send(frame(1, m.Cancel()))
                await socket.close()
            case _:
                await socket.close()
        told["left"] += 1
    for task in busy:
        task.cancel()
    await asyncio.wait(busy)
    return told


async def _busy(url: str, size: int) -> None:
    while True:
        async with await greeted(url, size) as socket:
            await socket.send(frame(1, opening("cloud", 1500)))
            down = Passing()
            while not isinstance(down.read(await socket.recv(decode=False)).message, m.Closed | m.Failure):
                pass


async def cuts(url: str, size: int, seconds: float, at_once: int, seed: int) -> Counter[str]:
    """Connections that are cut at a random place, so many at once, for so long."""
    told: Counter[str] = Counter()
    until = asyncio.get_running_loop().time() + seconds

    async def lane(number: int) -> None:
        chance = random.Random(f"{seed}-{number}")
        while asyncio.get_running_loop().time() < until:
            with suppress(OSError, WebSocketException, TimeoutError, AssertionError):
                await _cut(url, size, chance, told)
            told["connections"] += 1

    await asyncio.gather(*[lane(number) for number in range(at_once)])
    return told


async def _cut(url: str, size: int, chance: random.Random, told: Counter[str]) -> None:
    if chance.random() < 0.1:  # before anything was said
        host, port = url.removeprefix("ws://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n"[: chance.randrange(30)])
        await asyncio.sleep(chance.random() * 0.05)
        writer.transport.abort()
        return
    async with asyncio.timeout(30):
        socket, down = await greeted(url, size), Passing()
        try:
            for session in range(1, chance.choice((2, 2, 4))):
                await socket.send(
                    frame(session, opening(chance.choice(("cloud", "coupled", "dssd")), chance.choice((1, 2, 30))))
                )
            for _ in range(chance.randrange(20)):
                message = down.read(await asyncio.wait_for(socket.recv(decode=False), 0.5)).message
                told[type(message).__name__] += 1
                if chance.random() < 0.1:
                    await socket.send(frame(1, m.Cancel()))
        finally:
            if chance.random() < 0.2:
                await socket.send(frame(0, m.Goodbye("done")))
                await socket.close()
            socket.transport.abort()


async def storm(model: Model, seconds: float, at_once: int, seed: int = 1) -> tuple[Held, Held, Counter[str]]:
    """What was held before and after a storm of cuts, and what was told."""
    size = len(model.vocabulary)
    async with at_sea(model) as (url, held):
        await cuts(url, size, min(2.0, seconds), at_once, seed)  # what is made once is made
        before = await held()
        told = await cuts(url, size, seconds, at_once, seed + 1)
        return before, await held(), told


if __name__ == "__main__":
    named = load(ModelConfig(sys.argv[3] if len(sys.argv) > 3 else "toy-cloud", threads=1))
    first, last, counted = asyncio.run(storm(named, float(sys.argv[1]), int(sys.argv[2])))
    print(dict(counted), first, last, sep="\n")
    named.close()
