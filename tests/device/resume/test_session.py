"""A session that goes on behind what is committed, as the cloud sees it; and a cloud process that is killed."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from antiphon.config import Limits, SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import RemoteError
from antiphon.methods.verifier import REPLAY_WIDTH, Verifier
from antiphon.models.toy import named_toy
from antiphon.vocabulary import identity
from antiphon.wire import messages as m
from antiphon.wire.packing import Reader
from device.resume.cuts import TOYS, asked, assert_same
from support.links import linked, raw_session, request


def complaint(**changes: Any) -> str:
    """The sentence that a session is refused with; the connection must survive it."""

    async def test(device: Device, connection: Connection) -> str:
        session = await raw_session(connection, **changes)
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert caught.value.code == "refused"
        assert (await device.generate(request(), connection)).tokens > 0
        return str(caught.value)

    return linked(test, Limits())


def test_committed_tokens_that_cannot_be() -> None:
    async def sizes(device: Device, connection: Connection) -> tuple[int, int]:
        return connection.common.target_size, min(connection.common.ends)

    size, end = linked(sizes)
    assert complaint(committed=(1,) * 8) == "an answer of 8 tokens at most cannot go on after 8"
    assert complaint(committed=(1,) * 9) == "an answer of 8 tokens at most cannot go on after 9"
    assert complaint(committed=(1, size)) == "what was committed before holds a token that this cloud's model does not have"
    assert complaint(committed=(2**31,)) == "what was committed before holds a token that this cloud's model does not have"
    assert complaint(committed=(1, end)) == "an answer that has ended cannot go on"
    assert complaint(committed=(end, 1)) == "an answer that has ended cannot go on"


@pytest.mark.parametrize("known", [0, 1, 2, 7, 8, 23])
def test_a_session_goes_on_behind_what_is_committed(known: int) -> None:
    """Of `cloud`, told by hand: the rest of the very answer; its second token is outside the common vocabulary."""
    what = asked("cloud", tokens=24, seed=25, prompt="the other one")

    async def test(device: Device, connection: Connection) -> tuple[list[int], list[int], int]:
        whole = (await device.generate(what, connection)).answer.numbers
        fields = {"method": "cloud", "options": {}, "max_tokens": 24, "seed": 25, "prompt": what.prompt}
        session = await raw_session(connection, **fields, committed=tuple(whole[:known]))
        told: list[int] = []
        while not isinstance(message := await session.receive(), m.Closed):
            assert isinstance(message, m.Tokens)
            told.append(Reader(message.payload).number(connection.common.target_bits, connection.common.target_size, "token"))
        return whole, told, connection.common.size

    whole, told, size = linked(test)
    assert len(whole) == 24
    assert whole[1] >= size
    assert told == whole[known:]


@pytest.mark.parametrize("committed", [0, 1, 6, 7, 8, 21, 22])
@pytest.mark.parametrize("prompt", [1, 2, 9])
def test_committed_tokens_are_read_as_they_were_written(prompt: int, committed: int) -> None:
    """The prompt in one pass, the rest in narrow ones, the last token with the first drafts."""
    model = TOYS[1]
    common = identity(model.vocabulary)
    numbers = list(range(3, 3 + committed))
    with closing(model.open()) as context:
        first, *rest = Verifier(context, [5] * prompt, common, SamplingParams(), numbers).prefill()
    assert (first.keep, list(first.tokens), first.rows) == (0, [5] * (prompt - 1), 0)
    read = [token for step in rest for token in step.tokens]
    assert read == ([5] * prompt + numbers)[prompt - 1 : -1]
    assert all(0 < len(step.tokens) <= REPLAY_WIDTH and step.rows == 0 for step in rest)
    assert [step.keep for step in rest] == [prompt - 1 + REPLAY_WIDTH * place for place in range(len(rest))]


def served(port: int) -> "tuple[subprocess.Popen[str], int]":
    """A toy cloud in a process of its own, and its port."""
    command = [sys.executable, "-m", "antiphon", "serve", "--model", "toy-cloud", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    found = re.search(r"ws://\S+:(\d+)", process.stdout.readline())
    assert found is not None
    return process, int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coupled", "dssd"])
def test_a_cloud_process_that_is_killed_and_started_again(name: str) -> None:
    """In the middle of an answer, on the same port."""
    what = replace(asked(name, tokens=400), sampling=SamplingParams(temperature=100.0))
    whole = linked(lambda device, connection: device.generate(what, connection))
    assert whole.tokens > 200

    async def run() -> Result:
        process, port = served(0)
        device = Device(named_toy("toy-device"))
        connection = await connect(f"ws://127.0.0.1:{port}", device.model, device.worker)
        shown = asyncio.Event()
        texts: list[str] = []

        def show(pieces: Sequence[Any]) -> None:
            texts.extend(piece.text for piece in pieces)
            if len(texts) > 40:
                shown.set()

        try:
            answering = asyncio.create_task(device.generate(what, connection, show))
            await shown.wait()
            process.kill()
            process.wait()
            process, _ = await asyncio.to_thread(served, port)
            return await answering
        finally:
            process.kill()
            process.communicate()
            await connection.close()
            device.close()

    result = asyncio.run(asyncio.wait_for(run(), 60))
    assert_same(result, whole)
    assert result.answer.resumed == 1
