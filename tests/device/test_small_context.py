"""A device whose context has no room to draft in says so, once an answer, and the answer is whole."""

import logging
from dataclasses import replace

import pytest

from antiphon.config import Request
from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from support.broken_links import Cut, Network, broken
from support.links import request

DRAFTING = [name for name, method in WITHOUT_DOCUMENTS.items() if method.drafts and method.cloud is not None]
TOKENS = 20


def small(room: int) -> ToyModel:
    return ToyModel(toy_pieces(order=2), seed=2, noise=0.5, sharpness=3.0, name="small", context_length=room)


def asked(name: str) -> Request:
    options = WITHOUT_DOCUMENTS[name].options_from({"draft_length": 3, "expansion": "2,2", "patience": LOCKSTEP})
    return replace(request(name, tokens=TOKENS, temperature=0.0), options=options)


def answered(what: Request, room: int, *cuts: Cut) -> Result:
    async def test(device: Device, connection: Connection, network: Network) -> Result:
        network.arm(*cuts)
        return await device.generate(what, connection)

    return broken(test, models=lambda: (small(room), named_toy("toy-cloud")))


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if "context" in record.getMessage()]
    caplog.clear()
    return messages


@pytest.mark.core(5)
@pytest.mark.parametrize("room", [1, 6, 12])
@pytest.mark.parametrize("name", DRAFTING)
def test_it_says_so_once(name: str, room: int, caplog: pytest.LogCaptureFixture) -> None:
    """From the first token on, or on the way; also where the link was lost after it was said."""
    caplog.set_level(logging.WARNING)
    sentence = f"antiphon: the device's context of {room} tokens is full, so the rest of this answer has no drafts"
    for cuts in ((), ((25, "before"),)):
        result = answered(asked(name), room, *cuts)
        (message,) = said(caplog)
        assert message.startswith(sentence)
        assert result.tokens == TOKENS or result.finish_reason == "end"


@pytest.mark.core(6)
@pytest.mark.parametrize("name", DRAFTING)
def test_with_room_it_says_nothing(name: str, caplog: pytest.LogCaptureFixture) -> None:
    answered(asked(name), 4096)
    assert said(caplog) == []


def test_each_answer_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test(device: Device, connection: Connection, network: Network) -> None:
        for _ in range(2):
            await device.generate(asked("dssd"), connection)

    broken(test, models=lambda: (small(6), named_toy("toy-cloud")))
    assert len(said(caplog)) == 2
