"""A device and a cloud over a real socket, on toy models."""

import asyncio
import itertools
from contextlib import AsyncExitStack

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.distributions import Probs
from antiphon.device.answer import Piece, Result
from antiphon.device.check import Finding, check, first_difference
from antiphon.device.connection import Connection, connect
from antiphon.device.doctor import examine
from antiphon.device.generate import Device
from antiphon.device.handshake import Handshake
from antiphon.errors import LinkError, UsageError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.options import ChainOptions
from antiphon.models.toy import named_toy
from support.links import linked, request, toy_cloud, toy_device

DRAFTING = ["dsd", "dssd"]


@pytest.mark.core(2)
@pytest.mark.parametrize("method", DRAFTING)
@pytest.mark.parametrize("draft_length", [1, 3, 6])
def test_greedy_answers_are_the_clouds_own(method: str, draft_length: int) -> None:
    async def test(device: Device, connection: Connection) -> list[bool]:
        return [await equal(device, connection, prompt) for prompt in ("the ", "then an", "é ")]

    async def equal(device: Device, connection: Connection, prompt: str) -> bool:
        asked = request(method, temperature=0, tokens=40, prompt=prompt, draft_length=draft_length)
        result = await device.generate(asked, connection)
        assert result.finish_reason in ("end", "length")
        return (await check(device, asked, result, connection)).equal

    assert linked(test) == [True] * 3


@pytest.mark.parametrize("method", ["cloud", *DRAFTING])
def test_a_seed_gives_the_same_answer_again(method: str) -> None:
    async def test(device: Device, connection: Connection) -> list[tuple[int, ...]]:
        asked = [request(method, seed=seed) for seed in (5, 5, 6)]
        return [(await device.generate(one, connection)).token_ids for one in asked]

    first, again, other = linked(test)
    assert first == again != other


def test_what_is_shown_is_the_text() -> None:
    async def test(device: Device, connection: Connection) -> tuple[list[Piece], Result]:
        shown: list[Piece] = []
        return shown, await device.generate(request(), connection, shown.extend)

    shown, result = linked(test)
    assert "".join(piece.text for piece in shown) == result.answer.text


@pytest.mark.parametrize("method", ["cloud", *DRAFTING, "device"])
def test_a_stop_string_ends_the_answer(method: str) -> None:
    async def test(device: Device, connection: Connection) -> tuple[str, Result, Result]:
        whole = await device.generate(request(method, tokens=60), connection)
        stop = whole.answer.text[4:6]
        stopped = await device.generate(request(method, tokens=60, stop=(stop,)), connection)
        after = await device.generate(request(method, tokens=60), connection)
        assert after.token_ids == whole.token_ids  # the next answer is untouched
        return stop, whole, stopped

    stop, whole, stopped = linked(test)
    assert stopped.finish_reason == "stop"
    assert stopped.answer.text == whole.answer.text[: whole.answer.text.index(stop)]
    assert stopped.token_ids == whole.token_ids[: stopped.tokens]


@pytest.mark.medium
def test_many_devices_at_once_each_get_their_own_answer() -> None:
    async def one(url: str, method: str, seed: int) -> tuple[int, ...]:
        async with toy_device(url) as (device, connection):
            return (await device.generate(request(method, seed=seed), connection)).token_ids

    async def shared(url: str, devices: int) -> bool:
        async with AsyncExitStack() as stack:
            ends = [await stack.enter_async_context(toy_device(url)) for _ in range(devices)]
            asked = request("dssd", tokens=60)
            results = await asyncio.gather(*(device.generate(asked, connection) for device, connection in ends))
            return all(result.shared for result in results)

    async def run() -> None:
        async with toy_cloud() as url:
            asked = list(itertools.product(["cloud", *DRAFTING], range(4)))
            alone = [await one(url, method, seed) for method, seed in asked]
            together = await asyncio.gather(*(one(url, method, seed) for method, seed in asked))
            assert list(together) == alone
            assert not await shared(url, 1)
            assert await shared(url, 3)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_figures_add_up() -> None:
    async def test(device: Device, connection: Connection) -> list[dict]:
        return [(await device.generate(request(name), connection)).as_json() for name in ("cloud", "dsd", "dssd", "device")]

    cloud, dsd, dssd, device = linked(test)
    for row in (cloud, dsd, dssd, device):
        for way in ("uplink", "downlink"):
            parts = row[f"{way}_payload_bits_per_token"] + row[f"{way}_framing_bits_per_token"]
            assert row[f"{way}_bits_per_token"] == pytest.approx(parts)
    assert cloud["cloud_passes_per_token"] == 1
    assert cloud["uplink_bits_per_token"] == 0
    assert device["uplink_bits_per_token"] == device["cloud_passes_per_token"] == 0
    assert dssd["rounds"] == round(dssd["cloud_passes_per_token"] * dssd["tokens"])
    assert 0 < dssd["acceptance_rate"] < 1
    assert dsd["uplink_bits_per_token"] > 10 * dssd["uplink_bits_per_token"]
    assert dssd["downlink_bits_per_token"] > 10 * dsd["downlink_bits_per_token"]
    assert (cloud["exact"], dsd["exact"], dssd["exact"], device["exact"]) == (True, True, True, False)


def test_the_closed_forms_of_the_bits() -> None:
    """METHODS 2, accounting, written out here once more; padding to bytes apart."""

    async def test(device: Device, connection: Connection) -> None:
        common = connection.common
        size, cloud_bits, own_bits = common.size, common.target_bits, common.common_bits
        up = {"dsd": own_bits + 16 * size}
        down = {"dssd": 16 * common.target_size, "xcosd": 16 * size + 16 + cloud_bits}
        for method in ("dsd", "dssd", "xcosd", "gr", "tr"):
            result = await device.generate(request(method, tokens=60), connection)
            corrections, exchanged = result.answer.kinds["correction"], result.answer.exchanged
            expected = exchanged.drafted * up.get(method, own_bits + 16)
            expected += corrections * cloud_bits if method in down else 0
            assert result.closed_form.up == expected
            assert expected <= result.traffic.up.payload_bits <= expected + 16 * (result.answer.rounds + 1)
            expected = corrections * down.get(method, cloud_bits) + result.answer.kinds["bonus"] * cloud_bits
            assert result.closed_form.down == expected
            assert expected <= result.traffic.down.payload_bits <= expected + 16 * result.answer.rounds

    linked(test)


def test_the_closed_forms_where_savings_lower_them() -> None:
    """Candidates cost K (L + b), repeats and places less; what was committed alone costs Lc; each message has a count."""

    async def test(device: Device, connection: Connection) -> None:
        for method in ("xcosd-e", "u-hlm", "cu-hlm"):
            result = await device.generate(request(method, tokens=60), connection)
            messages = result.answer.exchanged.trips + 1
            own = 2 * result.answer.exchanged.candidates + 24 * messages
            assert result.traffic.up.payload_bits <= result.closed_form.up + own
            assert result.traffic.down.payload_bits <= result.closed_form.down + own
            assert result.traffic.down.payload_bits >= 0.6 * result.closed_form.down
            assert result.traffic.up.payload_bits >= 0.6 * result.closed_form.up

    linked(test)


def test_check_tells_a_fault_from_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(device: Device, connection: Connection) -> None:
        asked = request("dssd", temperature=0, tokens=30)
        monkeypatch.setattr("antiphon.methods.speculative.dssd.residual", _worst)
        result = await device.generate(asked, connection)
        found = await check(device, asked, result, connection)
        assert not found.equal
        assert found.finding is Finding.FAULT
        assert found.gap is not None
        assert found.gap > 0
        assert "a fault" in found.sentence()

    linked(test)


def _worst(target_probs: Probs, draft_probs: Probs) -> Probs:
    wrong = target_probs * 0
    wrong[int(target_probs.argmin())] = 1.0
    return wrong


def test_first_difference() -> None:
    assert first_difference([1, 2], [1, 2]) is None
    assert first_difference([1, 2], [1, 3]) == 1
    assert first_difference([1, 2], [1, 2, 3]) == 2


def test_a_cloud_alone_needs_no_model_here() -> None:
    async def run() -> None:
        async with toy_cloud() as url:
            device = Device(None)
            connection = await connect(url, None, device.worker)
            assert (await device.generate(request("cloud"), connection)).tokens > 0
            with pytest.raises(UsageError, match="the method dssd drafts on the device: give --model"):
                await device.generate(request("dssd"), connection)
            await connection.close()
            device.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_device_whose_context_is_full_still_ends_its_answer() -> None:
    async def run() -> None:
        model = named_toy("toy-device")
        model.context_length = 12
        async with toy_cloud() as url:
            device = Device(model)
            connection = await connect(url, model, device.worker)
            result = await device.generate(request("dssd", temperature=0, tokens=40), connection)
            assert (await check(device, request("dssd", temperature=0, tokens=40), result, connection)).equal
            await connection.close()
            device.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_vocabulary_crosses_the_link_once(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))

    async def run() -> list[int]:
        sizes = []
        async with toy_cloud() as url:
            for _ in range(2):
                counted = 0

                async def fetch(handshake: Handshake, original: object = Handshake._fetch) -> bytes:
                    nonlocal counted
                    counted += 1
                    return await original(handshake)  # type: ignore[operator]

                monkeypatch.setattr(Handshake, "_fetch", fetch)
                async with toy_device(url):
                    sizes.append(counted)
                monkeypatch.undo()
                monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path))
        return sizes

    assert asyncio.run(asyncio.wait_for(run(), 60)) == [1, 0]


def test_doctor_finds_a_pair_that_fits() -> None:
    async def test(device: Device, connection: Connection) -> None:
        report = await examine(device, connection, "ws://toy")
        assert report.common_tokens == 265
        assert report.cloud_tokens == 272
        assert 0.9 < report.cloud_share < 1
        assert report.device_share == pytest.approx(1)
        assert 0 < report.acceptance < 1
        assert "work together" in report.verdict

    linked(test)


@pytest.mark.parametrize(
    ("url", "error", "sentence"),
    [
        ("http://127.0.0.1:1", UsageError, "is no WebSocket address"),
        ("nonsense", UsageError, "is no WebSocket address"),
        ("ws://127.0.0.1:1", LinkError, "is `antiphon serve` running there"),
        ("ws://no-such-host.invalid:1", LinkError, "cannot reach the cloud"),
    ],
)
def test_a_cloud_that_is_not_there(url: str, error: type[Exception], sentence: str) -> None:
    async def run() -> None:
        device = Device(None)
        try:
            await connect(url, None, device.worker)
        finally:
            device.close()

    with pytest.raises(error, match=sentence):
        asyncio.run(run())


def test_a_web_server_that_is_no_cloud() -> None:
    async def run() -> None:
        async with toy_cloud() as url:
            await connect(f"{url}/elsewhere", None, Device(None).worker)

    with pytest.raises(LinkError, match="is no Antiphon cloud"):
        asyncio.run(run())


def test_every_method_has_its_options() -> None:
    assert {name: method.options.__name__ for name, method in WITHOUT_DOCUMENTS.items()} == {
        "cloud": "NoOptions",
        "device": "NoOptions",
        "dsd": "DsdOptions",
        "dssd": "SplitOptions",
        "xcosd": "SplitOptions",
        "xcosd-e": "CandidateOptions",
        "coupled": "CoupledOptions",
        "coupled-tree": "CoupledTreeOptions",
        "tslt": "TsltOptions",
        "tslt-tree": "TsltTreeOptions",
        "gr": "ChainOptions",
        "tr": "ChainOptions",
        "u-hlm": "UncertaintyOptions",
        "cu-hlm": "CompressedOptions",
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"prompt": ""}, "the prompt is empty"),
        ({"max_tokens": 0}, "max-tokens must be at least 1"),
        ({"stop": ("",)}, "a stop string is empty"),
        ({"seed": -1}, "seed must be 0 to"),
        ({"prompt": "\ud800"}, "not valid Unicode"),
    ],
)
def test_requests_that_cannot_be(change: dict, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Request(**{"prompt": "x", "options": ChainOptions(), "sampling": SamplingParams(), **change})
