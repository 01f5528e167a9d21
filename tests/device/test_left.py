"""Whoever asked leaves while a device connects, or while a session begins: nothing is left of it, here or in the cloud."""

import asyncio

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_raw

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.config import Request
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.models.base import InUse
from antiphon.models.toy import named_toy
from antiphon.transport.frames import Transport, memory_pair


def test_a_link_that_nobody_waits_for_any_more_is_closed() -> None:
    """The stream is left while the cloud does not greet."""

    async def run() -> None:
        came, gone = asyncio.Event(), asyncio.Event()

        async def mute(socket: ServerConnection) -> None:
            await socket.recv()
            came.set()
            await socket.wait_closed()
            gone.set()

        async with serve_raw(mute, "127.0.0.1", 0, compression=None) as server:
            address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with Device(named_toy("toy-device"), cloud=address) as device:
                reading = asyncio.ensure_future(anext(device.stream(Request("the "))))
                await came.wait()
                reading.cancel()
                await asyncio.wait([reading])
                await asyncio.wait_for(gone.wait(), 5)

    asyncio.run(run())


def test_a_device_that_was_closed_says_so_and_connects_no_more() -> None:
    async def run() -> None:
        async with Device(named_toy("toy-device"), cloud="ws://127.0.0.1:9") as device:
            stream = device.stream(Request("the "))
        for asked in (anext(stream), device.generate(Request("the ")), device.connect()):
            with pytest.raises(UsageError, match="the device is not open"):
                await asked

    asyncio.run(run())


class Reluctant:
    """A link that takes each frame only after some turns of the loop, and says so after some more."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, frame: bytes) -> None:
        for _ in range(2):
            await asyncio.sleep(0)
        await self._transport.send(frame)
        for _ in range(2):
            await asyncio.sleep(0)

    async def receive(self) -> bytes:
        return await self._transport.receive()

    async def close(self, reason: str = "") -> None:
        await self._transport.close(reason)


@pytest.mark.parametrize("method", ["cloud", "coupled"])
def test_an_answer_that_is_left_at_any_turn_ends_in_the_cloud_too(method: str) -> None:
    async def run() -> None:
        cloud, device = Cloud(named_toy("toy-cloud")), Device(named_toy("toy-device"))
        device_end, cloud_end = memory_pair()
        serving = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

        async def dial() -> Transport:
            return Reluctant(device_end)

        connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
        await connection.establish()
        asked = Request("the ", method, max_tokens=6, seed=3)
        whole = await device.generate(asked, connection)
        for turns in range(24):
            task = asyncio.create_task(device.generate(asked, connection))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            async with asyncio.timeout(5):
                while connection._sessions or cloud._reserved or getattr(device.model, "in_use", InUse()) != InUse():
                    await asyncio.sleep(0.001)
        assert (await device.generate(asked, connection)).token_ids == whole.token_ids
        await connection.close()
        await serving
        device.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))
