"""An answer over an emulated link, and the code of the page about links."""

import asyncio
import re
from pathlib import Path

import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.models.toy import named_toy
from antiphon.transport.frames import Transport, memory_pair
from antiphon_lab.links.emulated import emulate
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.virtual_time import VirtualWorker, run_virtual
from support.links import request


def now() -> float:
    return asyncio.get_running_loop().time()


def test_the_code_of_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "links.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)

    async def test() -> None:
        names: dict = {}
        exec(code, names)
        await names["device_end"].send(b"hello")
        assert await names["cloud_end"].receive() == b"hello"
        assert now() > 4 * 0.0225  # three round trips of handshakes, one way

    run_virtual(test())


def test_an_answer_over_a_link_is_the_same_and_takes_its_round_trips() -> None:
    """The whole stack, toy models and no time for computing: each round of `dssd` is one round trip."""

    async def answer(name: str | None) -> tuple[str, float, float, int]:
        ends = memory_pair()
        device_end, cloud_end = emulate(*ends, parse_link(name), seed=1) if name else ends
        free = [VirtualWorker(lambda width, length: 0.0) for _ in range(2)]
        cloud, device = Cloud(named_toy("toy-cloud"), worker=free[0]), Device(named_toy("toy-device"), worker=free[1])
        serving = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

        async def dial() -> Transport:
            return device_end

        connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
        await connection.establish()
        ping, started = await connection.ping(), now()
        result = await device.generate(request("dssd"), connection)
        seconds = now() - started
        await connection.close()
        await serving
        return result.answer.text, ping, seconds, result.answer.rounds

    text, ping, seconds, rounds = run_virtual(answer("rtt=50ms,overhead=0"))
    assert ping == pytest.approx(0.05, abs=1e-5)
    assert rounds * 0.05 <= seconds < (rounds + 3) * 0.05 + 0.01
    assert run_virtual(answer(None))[0] == text
