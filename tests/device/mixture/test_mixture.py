"""Answers that are mixed with documents: refusals in one sentence, the methods to compare with, real threads and sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import numpy as np
import pytest

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import ServeConfig
from antiphon.core.chance import Place, Role
from antiphon.core.distributions import process
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ProtocolError
from antiphon.methods import ALL_METHODS, WITH_DOCUMENTS
from antiphon.methods.effects import Half, Kind, Receive, Send
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import context
from antiphon.retrieval.index import Index
from antiphon.transport.frames import Transport, memory_pair
from antiphon.transport.websocket import header_bytes
from antiphon.wire import messages as m
from device.mixture.mixed_ends import WITH_A_CLOUD, refused
from support.mixtures import (
    PIECES,
    Crossed,
    End,
    Reader,
    Shelf,
    Tap,
    World,
    answer,
    chance_of,
    decoded,
    dense_answer,
    distribution,
    noise,
    question,
    virtually,
    world,
)


def greedy(model: Reader, text: str, request: Any) -> list[int]:
    """A model's own answer to a text."""
    tokens, numbers = prompt_ids(model, text, chat=False), list[int]()
    while len(numbers) < request.max_tokens and (not numbers or numbers[-1] != model.vocabulary.end):
        numbers.append(int(np.argmax(model.logits([*tokens, *numbers]))))
    return numbers


def passages(end: End) -> list[str]:
    return [found.passage.text for found in end.shelf.search("", 2)]


def test_crcg_reads_the_devices_documents_alone() -> None:
    for seed in range(3):
        there, request = world(seed), question("crcg", tokens=12)
        told = answer(there, request)
        text = context(passages(there.device), request.prompt, "question")
        assert told.numbers == greedy(there.device.model, text, request)
        assert set(told.kinds) == {Kind.LOCAL}
        assert told.result.traffic.up.frames == told.result.traffic.setup.frames == 0
        assert told.result.closed is None


def test_crcg_sampled_draws_from_the_models_distribution() -> None:
    there, request = world(2), question("crcg", temperature=0.8, tokens=12)
    text, numbers = context(passages(there.device), request.prompt, "question"), list[int]()
    told = answer(there, request)
    tokens, chance = prompt_ids(there.device.model, text, chat=False), chance_of(request)
    for position, number in enumerate(told.numbers):
        probs = process(there.device.model.logits([*tokens, *numbers]), request.sampling, [])
        assert number == chance.at(Place(position), Role.DRAFT).categorical(probs)
        numbers.append(number)


def test_drcg_reads_the_documents_of_both_on_the_device() -> None:
    for seed in range(3):
        there, request = world(seed), question("drcg", tokens=12)
        told = answer(there, request)
        text = context([*passages(there.clouds[0]), *passages(there.device)], request.prompt, "question")
        assert told.numbers == greedy(there.device.model, text, request)
        assert set(told.kinds) == {Kind.LOCAL}
        assert told.numbers != answer(there, question("crcg", tokens=12)).numbers


@pytest.mark.core(1)
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_drdg_sw_mixes_two_whole_answers_once(temperature: float) -> None:
    """Position by position, each end behind its own tokens; one whose answer is over says nothing but that."""
    over: list[set[str]] = []
    for seed in range(16):
        there = world(seed, end=1.5, masses=((1.8, 1.0), (1.0, 1.8))[seed % 2])
        request = question("drdg-sw", temperature=temperature, tokens=16)
        told = answer(there, request)
        expected, earlier = swapped(there, request)
        assert told.numbers == expected
        assert Kind.LOCAL not in told.kinds
        over.append(earlier)
    assert {"device"} in over
    assert {"cloud"} in over
    assert set() in over


def swapped(there: World, request: Any) -> tuple[list[int], set[str]]:
    """The answer, and whose own one was over before it."""
    own, other = line(there.device, request, lambda probs: probs), line(there.clouds[0], request, decoded)
    masses = np.exp([there.device.shelf.log_mass, there.clouds[0].shelf.log_mass])
    end = there.device.model.vocabulary.end
    certain = np.eye(len(PIECES))[end]
    numbers: list[int] = []
    while len(numbers) < request.max_tokens and end not in numbers:
        position = len(numbers)
        distributions = [
            distributions[position] if position < len(distributions) else certain for distributions in (own, other)
        ]
        mixed = masses[0] * distributions[0] + masses[1] * distributions[1]
        numbers.append(int(np.argmax(mixed / noise(request, position, len(mixed)))))
    return numbers, {name for name, distributions in (("device", own), ("cloud", other)) if len(distributions) < len(numbers)}


def line(end: End, request: Any, crossed: Callable[[Any], Any]) -> list[Any]:
    """The distributions of an end's own answer."""
    numbers: list[int] = []
    distributions: list[Any] = []
    while len(distributions) < request.max_tokens and (not numbers or numbers[-1] != end.model.vocabulary.end):
        distributions.append(crossed(distribution(end, request, numbers)))
        numbers.append(int(np.argmax(distributions[-1] / noise(request, len(numbers), len(distributions[-1])))))
    return distributions


@pytest.mark.parametrize(("device", "cloud"), [(20.0, -99.0), (-99.0, 20.0)])
def test_an_end_whose_answer_is_over_ends_no_other_one(device: float, cloud: float) -> None:
    """One ends at once, the other never: with more weight it writes all the tokens that were asked for."""
    for weight, tokens in ((4.0, 16), (-4.0, 1)):
        there, request = world(3), question("drdg-sw", tokens=16)
        masses = (0.0, weight) if device > cloud else (weight, 0.0)
        there.device = End(Reader(1, end=device), Shelf(("passage", masses[0])))
        there.clouds = [End(Reader(2, end=cloud), Shelf(("passage", masses[1])))]
        told = answer(there, request)
        assert told.numbers == swapped(there, request)[0]
        assert len(told.numbers) == tokens


class Wrong:
    """A cloud that sends the wrong things for `drcg`."""

    messages: tuple[m.Message, ...] = ()

    def __init__(self, side: Any, options: Any) -> None:
        pass

    def run(self) -> Half:
        for message in self.messages:
            yield Send(message)
        while True:
            yield Receive()


@pytest.mark.parametrize(
    "messages",
    [
        (m.Passages(("passage",)),),
        (m.Retrieved(1, 0.0, 0), m.Retrieved(1, 0.0, 0)),
        (m.Retrieved(1, 0.0, 0), m.Evidence(0, 0, b"")),
        (m.Tokens(b""),),
    ],
)
def test_a_cloud_that_is_wrong_ends_drcg_with_one_sentence(messages: tuple[m.Message, ...]) -> None:
    half = type("Half", (Wrong,), {"messages": messages})
    sentence = refused(world(3, halves={0: {"drcg": half}}), question("drcg"), ProtocolError)
    assert "came where" in sentence


def test_a_silent_cloud_does_not_hang_drcg() -> None:
    """One sentence is as good as an answer without the cloud's passages."""
    with suppress(LinkError):
        answer(world(3, halves={0: {"drcg": Wrong}}), question("drcg"), seconds=120)


def test_a_link_that_is_cut_ends_drcg_with_one_sentence() -> None:
    there = world(3)
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames, lambda crossed: isinstance(crossed.message, m.Passages))
    with pytest.raises(LinkError, match="the link was cut"):
        answer(there, question("drcg"))


@pytest.mark.parametrize("name", [*WITH_A_CLOUD, "crcg"])
def test_figures_add_up(name: str) -> None:
    there, request = world(3, masses=(0.6, 0.5), sharpness=6.0), question(name, tokens=32, first=2, timeout=0.06)
    told = answer(there, request)
    row = told.result.as_json()
    kinds = told.result.answer.kinds
    assert sum(kinds.values()) == told.result.tokens == len(told.numbers) == row["tokens"]
    for share, kind in (("certain", Kind.CERTAIN), ("local", Kind.LOCAL), ("changed", Kind.CHANGED)):
        assert row[share] == pytest.approx(kinds[kind] / len(told.numbers))
    assert row["consulted"] == pytest.approx((kinds[Kind.CONFIRMED] + kinds[Kind.CHANGED]) / len(told.numbers))
    for way in ("uplink", "downlink"):
        parts = row[f"{way}_payload_bits_per_token"] + row[f"{way}_framing_bits_per_token"]
        assert row[f"{way}_bits_per_token"] == pytest.approx(parts)
    assert 0 < row["ttft_s"] <= row["seconds"] < told.seconds + 1e-9
    assert json.dumps(row)


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_bits_are_those_of_the_frames(name: str) -> None:
    """Of all clouds together, header by header."""
    clouds = 1 if name in ("dragon", "drcg") else 2
    there = world(3, clouds)
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames)
    counter = answer(there, question(name)).result.traffic
    mine = [one for one in frames if one.session and not isinstance(one.message, m.Open | m.Opened)]
    for traffic, up in ((counter.up, True), (counter.down, False)):
        crossed = [one for one in mine if one.up == up]
        assert traffic.frames == len(crossed)
        assert traffic.bits == 8 * sum(len(one.frame) + header_bytes(len(one.frame), up) for one in crossed)
        assert traffic.payload_bits == sum(m.payload_bits(one.message) for one in crossed)


def test_costs_of_two_clouds_are_added_up() -> None:
    there = world(3, 2)
    told = answer(there, question("drdg-tw"))
    alone = answer(World(there.device, there.clouds[:1]), question("drdg-tw"))
    assert told.result.closed.reason == "cancelled"
    assert told.result.passes > alone.result.passes
    assert told.result.compute_ms == pytest.approx(told.result.passes * 15, rel=0.3)


@asynccontextmanager
async def in_memory(libraries: list[Index]) -> AsyncIterator[tuple[Device, Connection]]:
    cloud, device = Cloud(Reader(1), methods=ALL_METHODS, library=libraries[1]), Device(Reader(2), library=libraries[0])
    device_end, cloud_end = memory_pair()
    task = asyncio.create_task(CloudConnection(cloud, cloud_end).serve())

    async def dial() -> Transport:
        return device_end

    connection = Connection(dial, device.model, device.worker, mend_seconds=0.0)
    await connection.establish()
    try:
        yield device, connection
    finally:
        await connection.close()
        await task
        device.close()
        cloud.close()


@asynccontextmanager
async def over_a_socket(libraries: list[Index]) -> AsyncIterator[tuple[Device, Connection]]:
    cloud, device = Cloud(Reader(1), methods=ALL_METHODS, library=libraries[1]), Device(Reader(2), library=libraries[0])
    async with serving(cloud, ServeConfig(port=0)) as url:
        connection = await connect(url, device.model, device.worker)
        try:
            yield device, connection
        finally:
            await connection.close()
            device.close()
    cloud.close()


@pytest.mark.parametrize("linked", [in_memory, over_a_socket])
def test_every_method_runs_in_real_time_on_real_libraries(libraries: list[Index], linked: Any) -> None:
    """Those that wait for every step write one and the same answer; the models know of their own documents only."""

    async def run() -> dict[str, list[int]]:
        found = {}
        async with linked(libraries) as (device, connection):
            for name, method in WITH_DOCUMENTS.items():
                request = question(name, prompt="the cat", tokens=12)
                result = await device.generate(request, connection if method.cloud else None)
                assert result.tokens == 12 or result.finish_reason == "end"
                found[name] = list(result.token_ids)
        return found

    found = asyncio.run(asyncio.wait_for(run(), 60))
    assert found["drdg-tw"] == found["dragon"] == found["concord-nosystem"]
    there = World(End(Reader(2), libraries[0]), [End(Reader(1), libraries[1])])
    for end in (there.device, there.clouds[0]):
        end.shelf.log_mass = end.shelf.scorer.log_weight([one.score for one in end.shelf.search("the cat", 2)])
    assert found["drdg-tw"] == dense_answer(there, question(prompt="the cat", tokens=12))


def test_what_is_shown_is_the_text_with_its_marks() -> None:
    async def run() -> None:
        there = world(3)
        async with there.ends() as (device, connections):
            shown: list[Any] = []
            result = await device.generate(question(tokens=24), connections, shown.extend)
            assert "".join(piece.text for piece in shown) == result.answer.text
            assert {piece.origin for piece in shown} <= {Kind.LOCAL, Kind.CERTAIN, Kind.CONFIRMED, Kind.CHANGED}

    virtually(run())
