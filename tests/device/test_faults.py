"""A cloud that breaks the protocol costs the device one answer and one sentence, never more."""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from antiphon.errors import ProtocolError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send
from antiphon.methods.speculative.chain import Proposed
from antiphon.methods.speculative.dssd import DssdCloud, DssdDevice
from antiphon.methods.speculative.options import SplitOptions
from antiphon.methods.verifier import Target
from antiphon.wire import messages as m
from antiphon.wire.packing import Writer
from support.links import request, toy_cloud, toy_device


class NoLargest(DssdCloud):
    """Sends a target distribution whose largest ratio is not 1."""

    def correct(self, writer: Writer, target: Target, draft: Proposed, position: int) -> Generator[Any, Any, None]:
        yield from ()
        writer.number(0, 1)
        writer.array(np.full(len(target.probs), 7, "<u2"))


def replies(make: Callable[[m.Draft], m.Message]) -> type:
    """A cloud half that answers the first draft with this."""

    class Replies:
        def __init__(self, side: CloudSide, options: SplitOptions) -> None:
            pass

        def run(self) -> Half:
            draft = yield Receive()
            yield Send(make(draft))
            return Finish.END

    return Replies


@pytest.mark.parametrize(
    ("cloud", "sentence"),
    [
        (NoLargest, "the target probabilities are no distribution"),
        (replies(lambda draft: m.Verdict(0, draft.count + 1, b"")), "4 drafts were accepted, but only 3 were sent"),
        (replies(lambda draft: m.Verdict(0, draft.count, b"\xff\xff")), "the bonus token is 511, but must be below 272"),
        (replies(lambda draft: m.Verdict(0, draft.count, b"")), "the payload is shorter than its message says"),
        (replies(lambda draft: m.Verdict(0, draft.count, bytes(9))), "the payload is longer than its message says"),
        (replies(lambda draft: m.Verdict(5, 0, b"")), "Verdict of round 5 came in round 0"),
        (replies(lambda draft: m.Tokens(b"")), "Tokens came where Verdict was due"),
    ],
)
def test_a_cloud_that_breaks_the_protocol(cloud: type, sentence: str) -> None:
    broken = {**WITHOUT_DOCUMENTS, "dsd": Method("dsd", "", True, DssdDevice, cloud, options=SplitOptions)}
    device_side = {**WITHOUT_DOCUMENTS, "dsd": Method("dsd", "", True, DssdDevice, DssdCloud, options=SplitOptions)}

    async def run() -> None:
        async with toy_cloud(methods=broken) as url, toy_device(url, methods=device_side) as (device, connection):
            with pytest.raises(ProtocolError, match=sentence):
                await device.generate(replace(request("dsd", tokens=60), options=SplitOptions()), connection)
            assert (await device.generate(request("dssd"), connection)).tokens > 0

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_device_model_that_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.errors import ModelError
    from antiphon.models.toy import ToyModel

    plain = ToyModel.logits

    def broken(self: ToyModel, tokens: list[int]) -> object:
        logits = plain(self, tokens)
        return logits * np.float32("nan") if self.name == "toy-device" else logits

    monkeypatch.setattr(ToyModel, "logits", broken)

    async def run() -> None:
        async with toy_cloud() as url, toy_device(url) as (device, connection):
            with pytest.raises(ModelError, match="gave logits that are not finite"):
                await device.generate(request("dssd"), connection)
            assert (await device.generate(request("cloud"), connection)).tokens > 0

    asyncio.run(asyncio.wait_for(run(), 60))
