"""Clouds, models and users that fail in the middle of a mixed answer."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
import pytest

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig
from antiphon.device.connection import connect
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError
from antiphon.methods.effects import Kind
from antiphon.retrieval.index import Index
from antiphon.wire.session import Life
from support.mixtures import (
    End,
    Reader,
    answer,
    ask,
    question,
    virtually,
    world,
)


def test_a_cloud_that_is_killed_in_the_middle(libraries: list[Index]) -> None:
    """Over a real socket: the server goes away, the answer goes on."""

    async def run() -> None:
        cloud, device = Cloud(Reader(1), library=libraries[1]), Device(Reader(2), library=libraries[0])
        async with AsyncExitStack() as stack:
            url = await stack.enter_async_context(serving(cloud, ServeConfig(port=0)))
            connection = await connect(url, device.model, device.worker)
            shown: list[Kind] = []
            stopping: list[asyncio.Task[Any]] = []

            def show(pieces: Any) -> None:
                shown.extend(piece.origin for piece in pieces)
                if len(shown) == 5:
                    stopping.append(asyncio.ensure_future(stack.aclose()))

            request = question("concord-nosystem", prompt="the cat", tokens=400, ahead=1)
            result = await device.generate(request, connection, show)
            assert result.tokens == 400 or result.finish_reason == "end"
            assert result.answer.kinds[Kind.LOCAL] > 0
            await asyncio.gather(*stopping)
            await connection.close()
        device.close()
        cloud.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_model_that_fails_on_the_device_is_one_sentence() -> None:
    """There is nothing to go on with; the clouds are told to stop."""

    class Failing(Reader):
        def logits(self, tokens: Any) -> Any:
            scores = super().logits(tokens)
            return scores * np.float32("nan") if len(tokens) > 60 else scores

    async def run() -> None:
        there = world(3, end=-99.0)
        there.device = End(Failing(3), there.device.shelf)
        async with there.ends() as (device, connections):
            with pytest.raises(AntiphonError, match="not finite"):
                await device.generate(question(tokens=200), connections)
            assert connections[0].wire.life(1) is Life.ENDED

    virtually(run())


def test_a_model_that_fails_in_the_cloud_is_the_clouds_affair() -> None:
    class Failing(Reader):
        def logits(self, tokens: Any) -> Any:
            scores = super().logits(tokens)
            return scores * np.float32("nan") if len(tokens) > 60 else scores

    there = world(3, end=-99.0)
    there.clouds[0] = End(Failing(3), there.clouds[0].shelf)
    told = answer(there, question("concord-nosystem", tokens=60))
    assert len(told.numbers) == 60
    assert told.kinds[-1] is Kind.LOCAL


def test_a_user_who_interrupts_leaves_nothing_behind() -> None:
    """The task of an answer is cancelled: the cloud's session ends, and the next question is answered."""

    async def run() -> None:
        there = world(3, end=-99.0)
        async with there.ends() as (device, connections):
            task = asyncio.create_task(device.generate(question(tokens=400), connections))
            await asyncio.sleep(1.0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await asyncio.sleep(1.0)
            assert connections[0].wire.life(1) is Life.ENDED
            assert (await ask(there, device, connections, question())).steps

    virtually(run())
