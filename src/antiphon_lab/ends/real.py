"""Answers in real time: a cloud in a process of its own, a device here, and an emulated link between them."""

import asyncio
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from antiphon.config import ModelConfig, Request
from antiphon.demo.cloud_process import cloud_process, connected
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.methods import find
from antiphon.models import load
from antiphon_lab.ends.no_drafts import NonDraftingModel
from antiphon_lab.ends.trials import Trial
from antiphon_lab.links.emulated import precise_loop
from antiphon_lab.links.link import Link
from antiphon_lab.links.proxy import Address, proxying

ANYWHERE = Address("127.0.0.1", 0)


class RealEnds:
    """Both ends, for as many answers as are asked for; to be used in a `with`. Raises one of `antiphon.errors`."""

    def __init__(self, cloud_model: ModelConfig, device_model: ModelConfig) -> None:
        self._configs = cloud_model, device_model
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._cloud = Address.parse(stack.enter_context(cloud_process(self._configs[0])))
            model = load(self._configs[1])
            self._device = Device(model)
            stack.callback(self._device.close)
            self._mute = (
                Device(NonDraftingModel(self._device.model), worker=self._device.worker) if self._device.model else self._device
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    def write(self, trial: Trial, prompt: str, seed: int, *, mute: bool = False) -> Result:
        """One answer, over a link of its own."""
        return write_over(trial.link, self._cloud, self._mute if mute else self._device, trial.request(prompt, seed))

    def answer(self, request: Request, link: Link | None) -> Result:
        """One answer, over a link of its own; None: over loopback, with nothing between the ends."""
        return write_over(link, self._cloud, self._device, request)


def write_over(link: Link | None, cloud: Address, device: Device, request: Request) -> Result:
    """One answer in real time, over a link of its own to the cloud that listens there; the device's alone if the method is.

    link: None for none but that between two processes of this machine.
    """

    async def answer() -> Result:
        if find(request.method).cloud is None:
            return await device.generate(request, None)
        if link is None:
            async with connected(device, f"ws://{cloud}") as connection:
                return await device.generate(request, connection)
        async with (
            proxying(link, ANYWHERE, cloud) as (_, address),
            connected(device, f"ws://{address}") as connection,
        ):
            return await device.generate(request, connection)

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(answer())
