"""One answer from code without an event loop: a script, a notebook's cell in a thread, a shell."""

import asyncio
from collections.abc import Sequence

from antiphon.config import Request
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.device.runner import Show
from antiphon.errors import UsageError
from antiphon.models.catalog import AnyModel
from antiphon.retrieval.opening import AnyLibrary


def generate(
    prompt: str | Request,
    *,
    model: AnyModel | None = None,
    cloud: str | Sequence[str] | None = None,
    library: AnyLibrary | None = None,
    show: Show = lambda pieces: None,
) -> Result:
    """Write one answer and wait for it. Raises one of `antiphon.errors`.

    prompt: itself, for a request with the defaults, or the whole request. model, cloud, library: as a `Device` takes them; they
    are opened for this answer and closed after it, so for several answers one `Device` is cheaper. show: is called with the
    pieces of each round as they come.
    """
    request = Request(prompt) if isinstance(prompt, str) else prompt

    async def write() -> Result:
        async with Device(model, cloud=cloud, library=library) as device:
            return await device.generate(request, show=show)

    if _in_event_loop():
        raise UsageError("generate() waits for its answer, so no event loop can run it: await Device(...).generate() there")
    return asyncio.run(write())


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
