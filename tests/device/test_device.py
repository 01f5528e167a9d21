"""A device as people use it: `async with Device(...)`, `generate` and `stream`, over real sockets."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from antiphon.cloud.server import address, listen, server_of
from antiphon.cloud.service import Cloud
from antiphon.config import Limits, ModelConfig, Request, SamplingParams, ServeConfig
from antiphon.core.distributions import Logits
from antiphon.device.answer import Piece
from antiphon.device.clouds import Clouds
from antiphon.device.generate import Device
from antiphon.device.stream import Stream
from antiphon.errors import CapacityError, LinkError, ModelError, UsageError
from antiphon.models.catalog import AnyModel
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.retrieval.opening import open_library
from support.libraries import PRIVATE, PUBLIC, QUESTION, make_library
from support.links import linked, request

Answer = TypeVar("Answer")
ENDLESS = ((named_toy("toy-cloud").vocabulary.end, -100.0),)
LONG = Request("the ", "cloud", sampling=SamplingParams(temperature=1.0, logit_bias=ENDLESS), max_tokens=4000, seed=1)


class Slow(ToyModel):
    """Takes 5 ms for a token, so that a long answer takes 20 s."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        time.sleep(0.005)
        return super().logits(tokens)


def slow() -> ToyModel:
    return Slow(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0)


def run(test: Callable[[str, Cloud], Awaitable[Answer]], limits: Limits | None = None, model: AnyModel = "toy-cloud") -> Answer:
    """With the address of a served toy."""

    async def main() -> Answer:
        with Cloud(model, limits) as cloud:
            async with cloud.serving() as url:
                return await test(url, cloud)

    return asyncio.run(asyncio.wait_for(main(), 60))


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not done():
            await asyncio.sleep(0.002)


async def nobody() -> str:
    """An address where nobody listens."""
    with listen(ServeConfig(port=0)) as listener:
        return address(listener)


@pytest.mark.parametrize("model", ["toy-device", ModelConfig("toy-device"), Path("toy-device"), named_toy("toy-device")])
def test_answers_are_those_of_a_connection_made_by_hand(model: object) -> None:
    async def test(url: str, cloud: Cloud) -> tuple:
        async with Device(model, cloud=url) as device:
            return (await device.generate(request())).token_ids

    async def by_hand(device: Device, connection: object) -> tuple:
        return (await device.generate(request(), connection)).token_ids

    assert run(test) == linked(by_hand)


def test_a_stream_is_the_answer_in_pieces() -> None:
    async def test(url: str, cloud: Cloud) -> None:
        async with Device("toy-device", cloud=url) as device:
            for asked in (request("coupled"), request("dssd", stop=("e",), tokens=60), request("device")):
                stream = device.stream(asked)
                pieces = [piece async for piece in stream]
                whole = await device.generate(asked)
                assert "".join(piece.text for piece in pieces) == stream.result.answer.text == whole.answer.text
                assert tuple(token for piece in pieces for token in piece.tokens) == whole.token_ids
                assert {piece.origin for piece in pieces} <= {"accepted", "correction", "bonus", "streamed", "local"}
                assert len(pieces) > 1

    run(test)


def test_pieces_come_while_the_answer_is_written() -> None:
    async def test(url: str, cloud: Cloud) -> None:
        async with Device(cloud=url) as device:
            stream = device.stream(LONG)
            assert isinstance(await anext(stream), Piece)
            with pytest.raises(UsageError, match="the answer is not over: read its pieces to the end"):
                _ = stream.result
            assert cloud.model.in_use.contexts == 1
            await stream.aclose()
            await stream.aclose()

    run(test, model=slow())


async def read(stream: Stream) -> None:
    async for _ in stream:
        pass


async def leaves(device: Device) -> None:
    async for _ in device.stream(LONG):
        break
    gc.collect()


async def closes(device: Device) -> None:
    stream = device.stream(LONG)
    await anext(stream)
    await stream.aclose()


async def leaves_a_block(device: Device) -> None:
    async with device.stream(LONG) as stream:
        await anext(stream)


async def fails(device: Device) -> None:
    with suppress(ZeroDivisionError):
        async for _ in device.stream(LONG):
            raise ZeroDivisionError


async def is_cancelled(device: Device) -> None:
    stream = device.stream(LONG)
    await anext(stream)
    reading = asyncio.create_task(read(stream))
    await asyncio.sleep(0.02)
    reading.cancel()
    await asyncio.wait([reading])


async def never_reads(device: Device) -> None:
    device.stream(LONG)


@pytest.mark.core(2)
@pytest.mark.parametrize("reader", [leaves, closes, leaves_a_block, fails, is_cancelled, never_reads])
def test_who_stops_to_read_ends_the_answer(reader: Callable[[Device], Awaitable[None]]) -> None:
    """In the cloud too, while the device goes on."""

    async def test(url: str, cloud: Cloud) -> None:
        async with Device("toy-device", cloud=url) as device:
            await reader(device)
            await until(lambda: cloud.model.in_use.contexts == 0)
            assert (await device.generate(request())).tokens
            await until(lambda: device.model.in_use.contexts == 0)

    run(test, model=slow())


def test_a_device_that_closes_ends_its_streams() -> None:
    async def test(url: str, cloud: Cloud) -> None:
        async with Device(cloud=url) as device:
            stream = device.stream(LONG)
            await anext(stream)
        await until(lambda: cloud.model.in_use.contexts == 0)
        with pytest.raises(UsageError, match="the device was closed before the answer was over"):
            await asyncio.wait_for(read(stream), 5)

    run(test, model=slow())


def test_what_goes_wrong_is_raised_to_the_reader() -> None:
    async def test(url: str, cloud: Cloud) -> None:
        async with Device(cloud=url) as device:
            stream = device.stream(Request("x", "dssd"))
            with pytest.raises(UsageError, match="the method dssd drafts on the device: give --model"):
                await anext(stream)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    run(test)


@pytest.mark.core(1)
@pytest.mark.parametrize("limits", [None, Limits(sessions_per_connection=2)])
def test_answers_at_the_same_time_are_those_alone(limits: Limits | None) -> None:
    """More of them than a connection may have sessions: the others wait."""

    async def test(url: str, cloud: Cloud) -> None:
        asked = [request(method, seed=seed) for seed in range(4) for method in ("coupled", "dssd", "cloud", "device")]
        async with Device("toy-device", cloud=url) as device:
            together = await asyncio.gather(*(device.generate(one) for one in asked))
            alone = [await device.generate(one) for one in asked]
        assert [result.token_ids for result in together] == [result.token_ids for result in alone]

    run(test, limits)


def small(room: int) -> ToyModel:
    return ToyModel(toy_pieces(order=2), seed=2, noise=0.5, sharpness=3.0, name="small", context_length=room, contexts=1)


def test_answers_that_do_not_fit_beside_each_other_wait() -> None:
    """A model with one context, and no more tokens than one answer has."""

    async def test() -> None:
        asked = [request("device", seed=seed, tokens=20) for seed in range(5)]
        async with Device(small(24)) as device:
            together = await asyncio.gather(*(device.generate(one) for one in asked))
            alone = [await device.generate(one) for one in asked]
            assert [result.token_ids for result in together] == [result.token_ids for result in alone]
            with pytest.raises(CapacityError):
                await device.generate(request("device", seed=0, tokens=100))
            assert (await device.generate(asked[0])).token_ids == alone[0].token_ids

    asyncio.run(asyncio.wait_for(test(), 60))


def test_who_waits_for_room_can_leave() -> None:
    async def test(url: str, cloud: Cloud) -> None:
        async with Device(small(64), cloud=url) as device:
            first = device.stream(request("dssd", tokens=60))
            await anext(first)
            second = asyncio.create_task(device.generate(request("dssd", tokens=60)))
            await asyncio.sleep(0.05)
            assert not second.done()
            second.cancel()
            await asyncio.wait([second])
            third = asyncio.create_task(device.generate(request("dssd", tokens=60)))
            await first.aclose()
            assert (await third).tokens

    run(test)


def test_a_cloud_is_only_asked_where_it_is_needed() -> None:
    async def test() -> None:
        async with Device("toy-device", cloud=await nobody()) as device:
            assert (await device.generate(request("device"))).tokens
            with pytest.raises(LinkError, match="cannot reach the cloud"):
                await device.generate(request("cloud"))
            with pytest.raises(LinkError, match="cannot reach the cloud"):
                await device.connect()

    asyncio.run(asyncio.wait_for(test(), 60))


@asynccontextmanager
async def served(port: int) -> AsyncIterator[int]:
    with Cloud("toy-cloud") as cloud, listen(ServeConfig(port=port)) as listener:
        server = server_of(cloud)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


def test_a_cloud_that_comes_back_is_connected_to_again() -> None:
    async def test() -> None:
        async with served(0) as port:
            device = await Device("toy-device", cloud=f"ws://127.0.0.1:{port}").__aenter__()
            before = await device.generate(request())
        async with served(port):
            again = await device.generate(request())
            assert again.token_ids == before.token_ids
            await device.__aexit__(None, None, None)

    asyncio.run(asyncio.wait_for(test(), 60))


def test_documents_by_path_or_open(tmp_path: Path) -> None:
    private, public = make_library(tmp_path / "private.db", PRIVATE), make_library(tmp_path / "public.db", PUBLIC)
    asked = Request(QUESTION, "concord-nosystem", max_tokens=8, seed=1)

    async def test() -> None:
        with Cloud("toy-cloud", library=public) as cloud:
            async with cloud.serving() as url:
                async with Device("toy-cloud", cloud=url, library=private) as device:
                    by_path = await device.generate(asked)
                    together = await asyncio.gather(*(device.generate(asked) for _ in range(3)))
                with open_library(str(private)) as index:
                    async with Device("toy-cloud", cloud=[url], library=index) as device:
                        by_index = await device.generate(asked)
                    assert index.stats().passages  # whoever opened it still has it
        assert {one.token_ids for one in (by_path, by_index, *together)} == {by_path.token_ids}
        assert by_path.looked is not None

    asyncio.run(asyncio.wait_for(test(), 60))


async def opened(device: Device) -> None:
    async with device:
        pass


def test_what_is_missing_is_a_sentence(tmp_path: Path) -> None:
    async def test() -> None:
        with pytest.raises(UsageError, match=r"the device is not open: write `async with Device\(...\) as device`"):
            await Device("toy-device").generate(request("device"))
        with pytest.raises(ModelError, match=r"there is no file nowhere\.gguf"):
            await opened(Device("nowhere.gguf"))
        with pytest.raises(UsageError, match="there is no library"):
            await opened(Device("toy-device", library=tmp_path / "none.db"))
        with pytest.raises(UsageError, match=r"the disclosure log .* cannot be written"):
            await opened(Device("toy-device", disclosure_log=tmp_path))
        async with Device("toy-device") as device:
            with pytest.raises(UsageError, match="the method dssd needs a cloud"):
                await device.generate(request("dssd"))
            with pytest.raises(UsageError, match="the method crcg reads documents of the device"):
                await device.generate(Request("x", "crcg"))
            with pytest.raises(UsageError, match="there is no method 'none'"):
                await device.generate(Request("x", "none"))
        async with Device(cloud=await nobody(), disclosure_log=tmp_path / "log") as device:
            with pytest.raises(UsageError, match="a disclosure log shows tokens as the device's model has them"):
                await device.generate(request("cloud"))

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_model_that_is_loaded_for_nobody_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the device is cancelled while its model loads."""
    loading, closed = asyncio.Event(), []
    monkeypatch.setattr(ToyModel, "close", lambda self: closed.append(self.name))

    async def test() -> None:
        loop = asyncio.get_running_loop()

        def loads(config: ModelConfig) -> ToyModel:
            loop.call_soon_threadsafe(loading.set)
            return named_toy(config.name)

        monkeypatch.setattr("antiphon.models.catalog.load", loads)
        opening = asyncio.create_task(opened(Device("toy-device")))
        await loading.wait()
        opening.cancel()
        await asyncio.wait([opening])

    asyncio.run(asyncio.wait_for(test(), 60))
    assert closed == ["toy-device"]


@pytest.mark.parametrize("refused", [0, 1])
def test_every_link_is_closed_where_one_may_not_even_say_goodbye(refused: int) -> None:
    """As where a disclosure log cannot be written any more."""

    def full(*_: object) -> None:
        raise UsageError("full")

    async def test(url: str, cloud: Cloud) -> None:
        clouds = Clouds([url, f"{url}/"])
        connections = await clouds.connected(None, cloud.worker)
        connections[refused]._watch = full
        with pytest.raises(UsageError, match="full"):
            await clouds.close()
        for connection in connections:
            with pytest.raises(LinkError):
                await connection._transport.receive()

    run(test)


def test_options_by_name_are_written_as_on_the_command_line() -> None:
    """The same drafts as with the values themselves, and not those of other ones."""

    async def run() -> list[int]:
        with Cloud("toy-cloud") as cloud:
            async with cloud.serving() as address, Device("toy-device", cloud=address) as device:
                given = ({"draft-length": "2"}, {"draft_length": 2}, {"draft_length": 5})
                asked = [Request("the ", "dssd", options=options, max_tokens=24, seed=1) for options in given]
                return [(await device.generate(one)).answer.exchanged.drafted for one in asked]

    written, valued, other = asyncio.run(run())
    assert written == valued != other
