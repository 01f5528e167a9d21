"""Both ends of `antiphon-lab bench rag`, each with its library: in virtual time, or really, as two processes over a link."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from antiphon.config import ModelConfig, Request
from antiphon.demo.cloud_process import cloud_process
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.engine.worker import Worker
from antiphon.methods import ALL_METHODS, find
from antiphon.methods.base import Method
from antiphon.models.base import Model
from antiphon.retrieval.index import Index
from antiphon_lab.ends.real import write_over
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.proxy import Address
from antiphon_lab.links.virtual_time import run_virtual


class Ends(Protocol):
    """What writes answers."""

    def write(self, request: Request, link: Link, compute: Compute, instead: Mapping[str, Method]) -> Result:
        """One answer over a link of its own. instead: what the device takes for a method of that name."""
        ...


@dataclass(frozen=True, slots=True)
class VirtualEnds:
    """In virtual time. The device's model and library, then the cloud's; the models may be one."""

    models: tuple[Model, Model]
    libraries: tuple[Index, Index]

    def write(self, request: Request, link: Link, compute: Compute, instead: Mapping[str, Method]) -> Result:
        """One answer, at the speed of `compute`."""
        return run_virtual(self._answer(request, link, compute, instead))

    async def _answer(self, request: Request, link: Link, compute: Compute, methods: Mapping[str, Method]) -> Result:
        device, cloud = self.models
        async with virtual_ends(cloud, device, link, compute, methods, self.libraries) as (writer, connection):
            return await writer.generate(request, connection if find(request.method).cloud else None)


class RealEnds:
    """In real time, at this machine's own speed: the device here, and a cloud in a process of its own; to be used in a `with`.

    library: the device's, and the file of the cloud's. The link is that of `antiphon-lab link`.
    """

    def __init__(self, model: Model, library: Index, cloud: ModelConfig, cloud_library: Path) -> None:
        self._model, self._library = model, library
        self._cloud, self._cloud_library = cloud, cloud_library

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._address = Address.parse(stack.enter_context(cloud_process(self._cloud, self._cloud_library)))
            self._worker = Worker()
            stack.callback(self._worker.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def write(self, request: Request, link: Link, compute: Compute, instead: Mapping[str, Method]) -> Result:
        """One answer; `compute` is of no use here."""
        device = Device(self._model, methods={**ALL_METHODS, **instead}, worker=self._worker, library=self._library)
        return write_over(link, self._address, device, request)
