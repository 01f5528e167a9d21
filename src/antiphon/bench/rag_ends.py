"""Both ends of `antiphon bench rag`, each with its library: in virtual time, or really, over sockets and an emulated link."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from antiphon.bench.compute import Compute
from antiphon.bench.ends import virtual_ends
from antiphon.bench.local import connected
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, ServeConfig
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.methods import METHODS, MIXTURES
from antiphon.methods.base import Method
from antiphon.models.base import Model
from antiphon.net.emulated import precise_loop
from antiphon.net.link import Link
from antiphon.net.proxy import Address, proxying
from antiphon.net.virtual import run_virtual
from antiphon.net.worker import Worker
from antiphon.retrieval.index import Index


class Ends(Protocol):
    """What writes answers."""

    def write(self, request: Request, link: Link, compute: Compute, more: Mapping[str, Method]) -> Result:
        """One answer over a link of its own. more: methods besides the usual ones."""
        ...


@dataclass(frozen=True, slots=True)
class VirtualEnds:
    """In virtual time. The device's model and library, then the cloud's; the models may be one."""

    models: tuple[Model, Model]
    libraries: tuple[Index, Index]

    def write(self, request: Request, link: Link, compute: Compute, more: Mapping[str, Method]) -> Result:
        """One answer, at the speed of `compute`."""
        return run_virtual(self._answer(request, link, compute, {**METHODS, **more}))

    async def _answer(self, request: Request, link: Link, compute: Compute, methods: Mapping[str, Method]) -> Result:
        device, cloud = self.models
        async with virtual_ends(cloud, device, link, compute, methods, self.libraries) as (writer, connection):
            return await writer.generate(request, connection if _method(request, methods).cloud is not None else None)


@dataclass(frozen=True, slots=True)
class RealEnds:
    """In real time, at this machine's own speed: a thread for each model, and sockets between them. The models are two."""

    models: tuple[Model, Model]
    libraries: tuple[Index, Index]

    def write(self, request: Request, link: Link, compute: Compute, more: Mapping[str, Method]) -> Result:
        """One answer; `compute` is of no use here."""
        with asyncio.Runner(loop_factory=precise_loop) as runner:
            return runner.run(self._answer(request, link, {**METHODS, **more}))

    async def _answer(self, request: Request, link: Link, methods: Mapping[str, Method]) -> Result:
        workers = Worker(), Worker()
        device = Device(self.models[0], {**methods, **MIXTURES}, workers[0], self.libraries[0])
        cloud = Cloud(self.models[1], None, methods, workers[1], self.libraries[1])
        try:
            if _method(request, methods).cloud is None:
                return await device.generate(request, None)
            async with (
                serving(cloud, ServeConfig(port=0)) as url,
                proxying(link, Address("127.0.0.1", 0), Address.parse(url)) as (_, address),
                connected(device, f"ws://{address}") as connection,
            ):
                return await device.generate(request, connection)
        finally:
            for worker in workers:
                worker.close()


def _method(request: Request, methods: Mapping[str, Method]) -> Method:
    return {**methods, **MIXTURES}[request.method]
