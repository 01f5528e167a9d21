"""Ends that cannot mix an answer say so in one sentence."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from antiphon.device.generate import Device
from antiphon.errors import CapacityError, LinkError, UsageError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.options import NoOptions
from antiphon.transport.frames import Transport
from antiphon.wire.session import Life
from device.mixture.mixed_ends import WITH_A_CLOUD, refused
from support.mixtures import (
    END,
    PIECES,
    End,
    Reader,
    Shelf,
    World,
    answer,
    question,
    virtually,
    world,
)


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_different_tokenizers_are_refused(name: str) -> None:
    """Also where all but one token is the same: scores are mixed by id."""
    there = world(3)
    there.clouds[0].model = Reader(7, pieces=(*PIECES[:-1], b"ing", END))
    sentence = refused(there, question(name))
    assert f"{name} mixes scores token by token, so both ends need the same tokenizer" in sentence
    assert "reader-3000 and the cloud's reader-7 differ" in sentence


def test_the_same_tokens_in_another_order_are_another_tokenizer() -> None:
    there = world(3)
    there.clouds[0].model = Reader(7, pieces=PIECES[::-1])
    assert "both ends need the same tokenizer" in refused(there, question())


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_different_scorers_are_refused(name: str) -> None:
    there = world(3)
    there.clouds[0].shelf = Shelf(("passage", 1.0), scorer="another")
    sentence = refused(there, question(name))
    assert "both ends must score passages alike" in sentence
    assert "'shelf; temperature=1" in sentence
    assert "'another; temperature=1" in sentence


def test_one_cloud_of_two_that_does_not_fit_is_enough() -> None:
    there = world(3, 2)
    there.clouds[1].shelf = Shelf(("passage", 1.0), scorer="another")
    assert "both ends must score passages alike" in refused(there, question())


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_a_device_without_a_library(name: str) -> None:
    there = world(3)
    there.device = End(there.device.model, None)
    assert f"the method {name} reads documents of the device: give --library FILE" in refused(there, question(name))


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_a_cloud_without_a_library(name: str) -> None:
    """It does not offer what it cannot do."""
    there = world(3)
    there.clouds[0].shelf = None
    assert f"the cloud does not know the method {name}" in refused(there, question(name))


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_no_cloud_at_all(name: str) -> None:
    assert f"the method {name} needs a cloud: give --cloud" in refused(World(world(3).device, []), question(name))


def test_no_model_on_the_device() -> None:
    async def run() -> None:
        async with world(3).ends() as (_, connections):
            device = Device(None, library=Shelf(("passage", 1.0)))
            with pytest.raises(UsageError, match="the method concord drafts on the device: give --model"):
                await device.generate(question(), connections)
            device.close()

    virtually(run())


def test_options_of_another_method() -> None:
    sentence = refused(world(3), replace(question(), options=NoOptions()))
    assert "the options of concord are MixtureOptions, not NoOptions" in sentence


@pytest.mark.parametrize("name", ["dragon", "drcg"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_methods_of_one_cloud_say_so(name: str, temperature: float) -> None:
    assert "one cloud" in refused(world(3, 2), question(name, temperature=temperature))


def test_a_second_cloud_that_is_gone_leaves_no_session_with_the_first() -> None:
    async def run() -> None:
        async with world(3, 2, mend_seconds=0.0).ends() as (device, connections):

            async def nobody() -> Transport:
                raise LinkError("nobody answers")

            connections[1]._dial = nobody
            await connections[1]._transport.close()
            await asyncio.sleep(1.0)
            with suppress(LinkError):  # or it goes on with the first one
                await device.generate(question(), connections)
            assert connections[0].wire.life(1) in (Life.CANCELLED, Life.ENDED)

    virtually(run())


@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_passages_that_do_not_fit_make_no_answer_fail(name: str) -> None:
    there = world(3, end=-99.0)
    there.device.model.context_length = 60
    result = answer(there, question(name, tokens=30)).result
    assert result.looked is not None
    assert result.looked.left_out > 0
    assert len(result.token_ids) == 30


@pytest.mark.parametrize("cells", [3, 30])
@pytest.mark.parametrize("name", WITH_DOCUMENTS)
def test_a_context_that_is_too_small_says_so(name: str, cells: int) -> None:
    """The prompt alone does not fit, or the answer does not."""
    there = world(3, end=-99.0)
    there.device.model.context_length = cells
    with pytest.raises(CapacityError, match="the device's context is full"):
        answer(there, question(name, tokens=30))
