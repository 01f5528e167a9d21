"""Links that are cut, and answers that go on."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from antiphon.cloud.service import Cloud
from antiphon.config import Request
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.wire import messages as m
from antiphon_lab.links.virtual_time import VirtualWorker
from support.broken_links import Cut, Network, boundaries, broken, verify_cost
from support.links import request

TOYS = named_toy("toy-device"), named_toy("toy-cloud")


def asked(name: str, **more: Any) -> Request:
    """A request with options that leave nothing to the clock."""
    options = WITHOUT_DOCUMENTS[name].options_from(
        {"draft_length": 3, "candidates": 2, "expansion": "2,2", **more.pop("options", {})}
    )
    return replace(request(name, **{"tokens": 10, **more}), options=options)


def written(what: Request, *cuts: Cut, **link: Any) -> tuple[Result, Network]:
    """An answer whose link is cut there."""

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Network]:
        network.arm(*cuts)
        return await device.generate(what, connection), network

    return broken(test, **{"models": lambda: TOYS, **link})


def frames(network: Network) -> int:
    return len(network.log)


def assert_same(result: Result, whole: Result) -> None:
    """The same answer in every respect that does not tell of how it crossed the link."""
    assert result.token_ids == whole.token_ids
    assert result.answer.text == whole.answer.text
    assert result.finish_reason == whole.finish_reason
    assert result.answer.committed == whole.answer.committed
    assert result.prompt_tokens == whole.prompt_tokens


def assert_cut_anywhere(what: Request, **link: Any) -> Counter[int]:
    """Cut at every boundary; how often it went on how many times."""
    whole, network = written(what, **link)
    resumed: Counter[int] = Counter()
    for cut in boundaries(frames(network)):
        result, _ = written(what, cut, **link)
        assert_same(result, whole)
        assert result.answer.kinds == whole.answer.kinds or what.method == "coupled"  # ahead: a bonus may become a draft
        resumed[result.answer.resumed] += 1
    return resumed


def sent(network: Network) -> list[list[m.Draft]]:
    """The drafts of the device, by session."""
    sessions: list[list[m.Draft]] = []
    for envelope, _ in network.device_frames:
        if isinstance(envelope.message, m.Open):
            sessions.append([])
        elif isinstance(envelope.message, m.Draft):
            sessions[-1].append(envelope.message)
    return sessions


def refused(what: Request, *others: Request, mend_seconds: float = 30.0, prepare: Callable[[Network], None]) -> list[Any]:
    """What each answer ends with, and when after the cut, if the cloud is prepared so after the first frames."""

    async def one(device: Device, connection: Connection, each: Request) -> tuple[object, float]:
        try:
            return await device.generate(each, connection), asyncio.get_running_loop().time()
        except AntiphonError as error:
            return error, asyncio.get_running_loop().time()

    async def test(device: Device, connection: Connection, network: Network) -> list[Any]:
        prepare(network)
        network.arm((9, "before"))
        found = await asyncio.gather(*(one(device, connection, each) for each in (what, *others)))
        cut = network.cut_at
        return [(end, time - cut) for end, time in found]

    return broken(test, mend_seconds=mend_seconds)


def gone(network: Network) -> None:
    network.refuse = True


def another(model: ToyModel) -> Callable[[Network], None]:
    """The cloud is another one from the next dial on."""

    def prepare(network: Network) -> None:
        cloud = Cloud(model, None, WITHOUT_DOCUMENTS, VirtualWorker(verify_cost))
        network.cloud = lambda: cloud

    return prepare


OTHERS = {
    "another name": ToyModel(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0, name="other"),
    "other tokens": ToyModel(toy_pieces(order=5), seed=1, noise=0.5, sharpness=3.0, name="toy-cloud"),
}
