"""Two real ends with toy models: over a link in memory where only the ends matter, over a real socket where it does too."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, Request, SamplingParams, ServeConfig
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.device.session import DeviceSession
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import Method
from antiphon.models.base import Model
from antiphon.models.toy import named_toy
from antiphon.transport.frames import Transport, memory_pair
from antiphon.wire.messages import Open

Result = TypeVar("Result")


@asynccontextmanager
async def toy_cloud(limits: Limits | None = None, methods: Mapping[str, Method] = WITHOUT_DOCUMENTS) -> AsyncIterator[str]:
    """The address of a served toy."""
    cloud = Cloud(named_toy("toy-cloud"), limits, methods)
    try:
        async with serving(cloud, ServeConfig(port=0)) as url:
            yield url
    finally:
        cloud.close()


@asynccontextmanager
async def toy_device(url: str, methods: Mapping[str, Method] = WITHOUT_DOCUMENTS) -> AsyncIterator[tuple[Device, Connection]]:
    """A toy device, connected."""
    device = Device(named_toy("toy-device"), methods=methods)
    connection = await connect(url, device.model, device.worker)
    try:
        yield device, connection
    finally:
        await connection.close()
        device.close()


def linked(
    test: Callable[[Device, Connection], Awaitable[Result]],
    limits: Limits | None = None,
    methods: Mapping[str, Method] = WITHOUT_DOCUMENTS,
) -> Result:
    """Run `test` with a toy device connected to a toy cloud, in memory."""
    return between(named_toy("toy-device"), named_toy("toy-cloud"), test, limits, methods)


def between(
    device_model: Model | None,
    cloud_model: Model,
    test: Callable[[Device, Connection], Awaitable[Result]],
    limits: Limits | None = None,
    methods: Mapping[str, Method] = WITHOUT_DOCUMENTS,
) -> Result:
    """Run `test` with a device of this model, or of none, connected to a cloud of that model, in memory."""

    async def run() -> Result:
        cloud, device = Cloud(cloud_model, limits, methods), Device(device_model, methods=methods)
        device_end, cloud_end = memory_pair()
        serving_task = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

        async def dial() -> Transport:
            return device_end

        connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
        try:
            await connection.establish()
            return await test(device, connection)
        finally:
            await connection.close()
            await serving_task
            device.close()
            cloud.close()

    return asyncio.run(asyncio.wait_for(run(), 60))


def request(
    method: str = "dssd", *, temperature: float = 1.0, tokens: int = 24, prompt: str = "the ", **more: object
) -> Request:
    """A request with the options of its method; of those it may be given a draft length and a patience."""
    given = {name: more.pop(name) for name in ("draft_length", "patience") if name in more}
    options = WITHOUT_DOCUMENTS[method].options_from({"draft_length": 3, **given})
    sampling = SamplingParams(temperature=temperature)
    return Request(prompt, method, options, sampling, tokens, **{"seed": 1, **more})


async def raw_session(connection: Connection, **changes: object) -> DeviceSession:
    """A session whose every field can be wrong."""
    fields: dict[str, object] = {
        "method": "dssd",
        "options": {"draft_length": 3, "draft_precision": 32, "precision": 32},
        "sampling": SamplingParams(temperature=1.0),
        "prompt": "the ",
        "chat": False,
        "max_tokens": 8,
        "seed": 1,
        "committed": (),
    }
    return await connection.open(Open(**{**fields, **changes}))
