"""Two ends in virtual time: the real device and cloud code, an emulated link, and passes that cost what a profile says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import ALL_METHODS
from antiphon.methods.base import Method
from antiphon.models.base import Model
from antiphon.retrieval.index import Index
from antiphon.transport.frames import Transport, memory_pair
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.emulated import emulate
from antiphon_lab.links.link import Link
from antiphon_lab.links.virtual_time import VirtualWorker


@asynccontextmanager
async def virtual_ends(
    cloud_model: Model,
    device_model: Model,
    link: Link,
    compute: Compute,
    methods: Mapping[str, Method] = ALL_METHODS,
    libraries: tuple[Index | None, Index | None] = (None, None),
) -> AsyncIterator[tuple[Device, Connection]]:
    """A device and its connection to a cloud; to be used within `virtual_time.run_virtual`. The models stay open.

    methods: each takes the place of the one of the same name. libraries: the device's, then the cloud's.
    """
    offered = {**ALL_METHODS, **methods}
    cloud = Cloud(cloud_model, None, offered, VirtualWorker(compute.verify.seconds), libraries[1])
    device = Device(device_model, methods=offered, worker=VirtualWorker(compute.draft.seconds), library=libraries[0])
    serving: set[asyncio.Task[None]] = set()

    async def dial() -> Transport:
        device_end, cloud_end = emulate(*memory_pair(), link, len(serving))
        serving.add(asyncio.create_task(CloudConnection(cloud, cloud_end).serve()))
        return device_end

    connection = Connection(dial, device_model, device.worker)
    await connection.establish()
    try:
        yield device, connection
    finally:
        await connection.close()
        await asyncio.gather(*serving)
