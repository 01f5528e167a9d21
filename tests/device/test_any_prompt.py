"""`coupled` takes every prompt that `cloud` takes: what the device cannot do with it costs drafts, and is said once."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.coupled_tree import CoupledTreeOptions
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models.base import Model
from antiphon.models.toy import END, ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from support.broken_links import Network, broken
from support.links import between

WAYS = {
    "chain": ("coupled", CoupledOptions(3, 3)),
    "long chain": ("coupled", CoupledOptions(16, 32)),
    "lockstep": ("coupled", CoupledOptions(3, 3, LOCKSTEP)),
    "tree": ("coupled-tree", CoupledTreeOptions("2,2,2")),
    "wide tree": ("coupled-tree", CoupledTreeOptions("31,1")),
}
IN_STREAM = {"chain", "long chain"}
TOKENS = 12
PROMPT = "the thing and the other one, and so on"


class Templated(ToyModel):
    """A toy with a chat template of its own."""

    template: str | None = "{{ messages[0].content }}: "

    @property
    def chat_template(self) -> str | None:
        return self.template


class Failing(Templated):
    template = "{{ raise_exception('one turn is not enough') }}"


class Unwritten(Templated):
    template = None


def cloud(cells: int = 4096) -> ToyModel:
    return Templated(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0, name="cloud", context_length=cells)


def device(kind: type[ToyModel] = ToyModel, cells: int = 4096) -> ToyModel:
    return kind(toy_pieces(order=2), seed=2, noise=0.5, sharpness=3.0, name="small", context_length=cells)


class Speechless(ToyModel):
    """A model whose tokenizer knows no prompt."""

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return []


def speechless() -> Model:
    """It has one byte only, which no prompt here has."""
    return Speechless((b"\x01", END, b"ab"), seed=2, name="speechless")


def asked(way: str, **more: object) -> Request:
    method, options = WAYS[way]
    fields = {"sampling": SamplingParams(temperature=1.0), "max_tokens": TOKENS, "seed": 5, **more}
    return Request(PROMPT, method, options, **fields)  # type: ignore[arg-type]


def written(request: Request, device_model: Model, cloud_model: Model) -> Result:
    async def test(one: Device, connection: Connection) -> Result:
        return await one.generate(request, connection)

    return between(device_model, cloud_model, test)


def alone(request: Request, cloud_model: Model) -> Result:
    return written(replace(request, method="cloud", options=NoOptions()), named_toy("toy-device"), cloud_model)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return messages


LATER = len(device().tokenize(PROMPT)) + 5
"""Cells that are full on the way."""

DEVICES: dict[str, tuple[Callable[[], Model], bool, str]] = {
    # the device's model, whether the prompt goes through the template, and what is said
    "a context too small for the prompt": (lambda: device(cells=8), False, "the device's context of 8 tokens is full"),
    "a context too small for the answer": (
        lambda: device(cells=LATER),
        False,
        f"the device's context of {LATER} tokens is full",
    ),
    "a tokenizer that knows no such text": (speechless, False, "the tokenizer of speechless cannot spell the prompt"),
    "a chat template that fails": (lambda: device(Failing), True, "the chat template of small fails on this prompt"),
    "no chat template": (lambda: device(Unwritten), True, ""),
}


@pytest.mark.core(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", DEVICES)
def test_what_a_device_cannot_do_costs_drafts_only(what: str, way: str, caplog: pytest.LogCaptureFixture) -> None:
    model, chat, sentence = DEVICES[what]
    request = asked(way, chat=chat)
    expected = alone(request, cloud())
    assert said(caplog) == []
    found = written(request, model(), cloud())
    assert found.token_ids == expected.token_ids
    assert found.finish_reason == expected.finish_reason
    messages = said(caplog)
    # In a stream the answer may be there before the device has come so far.
    assert len(messages) == bool(sentence) or (way in IN_STREAM and not messages)
    assert all(message.startswith(f"antiphon: {sentence}") for message in messages)


@pytest.mark.core(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spare", [0, 1, 2, 5, 40])
def test_a_cloud_that_has_room_for_the_answer_alone_takes_the_prompt(way: str, spare: int) -> None:
    """The drafts that fit are tested, those that do not are not; the answer may be as long as that of `cloud`."""
    needed = len(cloud().tokenize(PROMPT)) + TOKENS
    for sampling in (SamplingParams(temperature=0.0), SamplingParams(temperature=1.0)):
        request = asked(way, sampling=sampling)
        found = written(request, device(), cloud(needed + spare))
        assert found.token_ids == alone(request, cloud(needed + spare)).token_ids


@pytest.mark.parametrize("spare", [0, 1, 20])
def test_a_tree_takes_what_others_under_way_leave(spare: int) -> None:
    """Where `cloud` would be served beside them."""
    needed = len(cloud().tokenize(PROMPT)) + TOKENS
    requests = asked("chain", seed=6), asked("wide tree")

    async def test(one: Device, connection: Connection, network: Network) -> list[Result]:
        return await asyncio.gather(*(one.generate(request, connection) for request in requests))

    found = broken(test, models=lambda: (device(), cloud(2 * needed + spare)))
    assert [result.token_ids for result in found] == [alone(request, cloud()).token_ids for request in requests]
    assert all(result.shared for result in found)


def test_the_cloud_itself_drafts_as_far_as_its_room_goes() -> None:
    """With its own model as a drafter every chain stands, also where not a cell is to spare."""
    needed = len(cloud().tokenize(PROMPT)) + TOKENS
    found = written(asked("lockstep"), cloud(), cloud(needed))
    assert found.answer.kinds["correction"] == 0
    assert found.answer.kinds["accepted"] > TOKENS // 2


@pytest.mark.parametrize("name", [name for name, method in WITHOUT_DOCUMENTS.items() if method.cloud is not None])
def test_a_prompt_that_is_too_long_for_the_cloud_is_refused_by_every_method_alike(name: str) -> None:
    request = replace(asked("chain"), method=name, options=None)
    with pytest.raises(Exception, match="the prompt has 24 tokens, but with this max-tokens at most") as refusal:
        written(request, device(), cloud(30))
    assert not isinstance(refusal.value, UsageError), "it is the cloud that refuses"
