"""SmolLM2 on the device, Gemma 3 in the cloud, over a real socket: what the toys show must hold for real models."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams, ServeConfig
from antiphon.device.answer import Result
from antiphon.device.check import Check, Finding, check
from antiphon.device.connection import Connection, connect
from antiphon.device.doctor import examine
from antiphon.device.generate import Device
from antiphon.methods import find
from antiphon.methods.speculative.options import SplitOptions
from antiphon.models.base import Model
from antiphon.models.llamacpp.sequences import ROWS
from antiphon.models.toy import named_toy
from antiphon.vocabulary import common_vocabulary, from_members
from support.data import real_prompts

pytestmark = [pytest.mark.model, pytest.mark.slow]

Found = TypeVar("Found")


def together(device_model: Model | None, cloud_model: Model, test: Callable[[Device, Connection], Awaitable[Found]]) -> Found:
    """Run `test` over a socket; the models stay loaded for the next one."""

    async def run() -> Found:
        cloud, device = Cloud(cloud_model), Device(device_model)
        try:
            async with serving(cloud, ServeConfig(port=0)) as url:
                connection = await connect(url, device_model, device.worker)
                try:
                    return await test(device, connection)
                finally:
                    await connection.close()
        finally:
            cloud.worker.close()
            device.worker.close()

    return asyncio.run(run())


def test_the_common_vocabulary(smollm2: Model, gemma3: Model) -> None:
    """46,145 tokens and the end, each of the same bytes on both sides; both ends number them alike."""
    common = common_vocabulary(smollm2.vocabulary, gemma3.vocabulary)
    assert common.device_ids is not None
    assert (common.size, common.target_size, common.common_bits, common.target_bits) == (46_146, 262_144, 16, 18)
    pairs = list(zip(common.device_ids.tolist(), common.cloud_ids[: common.size].tolist(), strict=True))
    assert pairs[0] == (smollm2.vocabulary.end, gemma3.vocabulary.end)
    assert all(smollm2.vocabulary.pieces[own] == gemma3.vocabulary.pieces[other] != b"" for own, other in pairs[1:])
    assert from_members(gemma3.vocabulary, common.members()).digest == common.digest


@pytest.mark.parametrize("method", ["dsd", "dssd", "xcosd", "xcosd-e", "tslt"])
def test_greedy_text_is_the_clouds_own(smollm2: Model, gemma3: Model, method: str) -> None:
    """Ten real prompts (five, one of each kind, for all but `dssd`), 48 tokens, draft lengths 1 to 6: no difference at all."""

    async def test(device: Device, connection: Connection) -> None:
        prompts = real_prompts() if method == "dssd" else real_prompts()[::2]
        for index, prompt in enumerate(prompts):
            options = find(method).options_from({"draft_length": 1 + (index + 2) % 6})
            asked = Request(prompt, method, options, SamplingParams(temperature=0), max_tokens=48)
            result = await device.generate(asked, connection)
            found = await check(device, asked, result, connection)
            assert found.equal, f"{method}, {options.draft_length} drafts, {prompt!r}: {found.sentence()}"

    together(smollm2, gemma3, test)


@dataclass
class Totals:
    """Sums over several answers."""

    tokens: int = 0
    up: int = 0
    down: int = 0
    form_up: int = 0
    form_down: int = 0
    rounds: int = 0
    trips: int = 0
    candidates: int = 0
    rounding: float = 0.0

    def add(self, result: Result) -> None:
        assert result.closed_form is not None
        assert result.closed is not None
        self.tokens += result.answer.committed
        self.up += result.traffic.up.payload_bits
        self.down += result.traffic.down.payload_bits
        self.form_up += result.closed_form.up
        self.form_down += result.closed_form.down
        self.rounds += result.answer.rounds
        self.trips += result.answer.exchanged.trips
        self.candidates += result.answer.exchanged.candidates
        self.rounding = max(self.rounding, result.closed.rounding)


async def bits_of(device: Device, connection: Connection, method: str, temperature: float) -> Totals:
    """Totals of ten real prompts, 24 tokens each, two drafts a round."""
    totals = Totals()
    for seed, prompt in enumerate(real_prompts()):
        options, sampling = find(method).options_from({"draft_length": 2}), SamplingParams(temperature=temperature)
        asked = Request(prompt, method, options, sampling, max_tokens=24, seed=seed)
        totals.add(await device.generate(asked, connection))
    return totals


def test_bits_at_temperature_one(smollm2: Model, gemma3: Model) -> None:
    """Real frames against the closed forms, and the methods against each other (METHODS 2, accounting)."""

    async def test(device: Device, connection: Connection) -> None:
        dssd, xcosd, xcosd_e = [await bits_of(device, connection, name, 1.0) for name in ("dssd", "xcosd", "xcosd-e")]
        for found in (dssd, xcosd):
            messages = found.trips + 10
            assert found.form_up <= found.up <= found.form_up + 8 * messages
            assert 0.9 * found.form_down <= found.down <= found.form_down + 8 * messages  # sparse where that is smaller
        assert xcosd_e.up <= xcosd_e.form_up + 8 * (xcosd_e.trips + 10)
        assert xcosd_e.down <= xcosd_e.form_down + 2 * xcosd_e.candidates + 13 * (xcosd_e.trips + 10)
        assert xcosd.down / xcosd.tokens < 0.2 * dssd.down / dssd.tokens
        assert xcosd_e.down / xcosd_e.tokens < 90
        assert xcosd_e.trips / xcosd_e.rounds < 1.1
        assert max(found.up / found.tokens for found in (dssd, xcosd, xcosd_e)) < 60
        assert 0 < max(found.rounding for found in (dssd, xcosd, xcosd_e)) < 1.1e-4

    together(smollm2, gemma3, test)


def answers(
    device: Device, connection: Connection, method: str, temperature: float, tokens: int, **given: object
) -> Awaitable[list[Result]]:
    """Ten real prompts."""

    async def written() -> list[Result]:
        options, sampling = find(method).options_from(given), SamplingParams(temperature=temperature)
        asked = [Request(prompt, method, options, sampling, tokens, seed=seed) for seed, prompt in enumerate(real_prompts())]
        return [await device.generate(one, connection) for one in asked]

    return written()


def bytes_an_entry(results: list[Result]) -> float:
    """Payload bytes up for each token of a draft distribution, ids of drafts included."""
    entries = sum(result.answer.exchanged.entries for result in results)
    return sum(result.traffic.up.payload_bits for result in results) / 8 / entries


def test_truncated_distributions_on_real_frames(smollm2: Model, gemma3: Model) -> None:
    """TSLT at 1 % of C: bytes an entry by form, and what is left of `dsd`'s uplink and acceptance."""

    async def test(device: Device, connection: Connection) -> None:
        kept = {"draft_length": 2, "truncate": "k=461"}
        dense = await answers(device, connection, "dsd", 1.0, 16, draft_length=2)
        delta, tight, plain = [
            await answers(device, connection, "tslt", 1.0, 16, **kept, **form)
            for form in ({}, {"wire": "tight"}, {"wire": "plain", "draft_precision": 16})
        ]
        assert bytes_an_entry(delta) < 3.2
        assert bytes_an_entry(tight) < 2.4
        assert 3.9 < bytes_an_entry(plain) < 4.1
        assert [one.token_ids for one in delta] == [one.token_ids for one in tight]
        uplinks = [sum(one.traffic.up.payload_bits for one in found) for found in (dense, delta)]
        assert uplinks[1] < 0.02 * uplinks[0]

    together(smollm2, gemma3, test)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_coupled_text_is_that_of_cloud_with_the_seed(smollm2: Model, gemma3: Model, temperature: float) -> None:
    """No difference at all, of chains and trees: all passes are of at most 7 tokens, and trees leave no gaps."""

    async def test(device: Device, connection: Connection) -> None:
        for index, prompt in enumerate(real_prompts()[1::2]):
            chain = find("coupled").options_from({"draft_length": 1 + index % 6})
            tree = find("coupled-tree").options_from(
                ({"nodes": 12}, {"expansion": "2,2"}, {"nodes": 20}, {"expansion": "4,2,1"})[index % 4]
            )
            for method, options in (("coupled", chain), ("coupled-tree", tree)):
                asked = Request(prompt, method, options, SamplingParams(temperature=temperature), max_tokens=24, seed=index)
                found = await check(device, asked, await device.generate(asked, connection), connection)
                assert found.equal, f"{method}: {found.sentence()}"

    together(smollm2, gemma3, test)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
def test_one_seed_one_text_whatever_drafts(smollm2: Model, smollm2_again: Model, gemma3: Model, temperature: float) -> None:
    """Each device connects anew: without a model, with one of other tokens, with a toy, with the cloud's own."""

    async def test(device: Device, connection: Connection) -> tuple[int, ...]:
        method = "cloud" if device.model is None else "coupled"
        asked = Request("In 1969 the first", method, None, SamplingParams(temperature=temperature), max_tokens=24, seed=7)
        return (await device.generate(asked, connection)).token_ids

    devices = (None, gemma3, named_toy("toy-device"), smollm2_again)
    texts = [together(model, smollm2, test) for model in devices]
    assert len(texts[0]) == 24
    assert texts == [texts[0]] * 4


@pytest.mark.parametrize("method", ["tslt", "tslt-tree"])
def test_another_precision_of_the_same_model(smollm2_other_precision: Model, smollm2: Model, method: str) -> None:
    """Equal tokenizers, so every token is common; the drafter knows the target well, and greedy text is the target's own."""

    async def test(device: Device, connection: Connection) -> None:
        assert connection.common.is_identity
        options, greedy = find(method).options(), SamplingParams(temperature=0)
        kinds: Counter[str] = Counter()
        for prompt in real_prompts()[:6]:
            asked = Request(prompt, method, options, greedy, max_tokens=24)
            result = await device.generate(asked, connection)
            kinds += result.answer.kinds
            assert (await check(device, asked, result, connection)).equal
        assert kinds["accepted"] > 1.5 * kinds["correction"]

    together(smollm2_other_precision, smollm2, test)


def test_greedy_trees_write_the_clouds_own_text(smollm2: Model, gemma3: Model) -> None:
    """A tree of 14 nodes is read in parts that are bit-identical."""

    async def test(device: Device, connection: Connection) -> None:
        for prompt in real_prompts()[:4]:
            asked = Request(prompt, "tslt-tree", None, SamplingParams(temperature=0), max_tokens=24)
            result = await device.generate(asked, connection)
            found = await check(device, asked, result, connection)
            assert found.equal, found.sentence()

    together(smollm2, gemma3, test)


def test_wide_drafts_write_the_clouds_own_text_and_where_passes_are_wide_their_noise_is_a_near_tie(
    smollm2: Model, gemma3: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine tokens are read in two parts; read at once, as on a GPU, the passes made again explain the text."""

    async def test(device: Device, connection: Connection) -> Check:
        options = find("dssd").options_from({"draft_length": 8})
        asked = Request("In 1969 the first", "dssd", options, SamplingParams(temperature=0), max_tokens=12)
        return await check(device, asked, await device.generate(asked, connection), connection)

    assert together(smollm2, gemma3, test).equal
    monkeypatch.setattr(gemma3, "narrow", ROWS)
    found = together(smollm2, gemma3, test)
    assert found.finding is Finding.NEAR_TIE, found.sentence()


def test_greedy_bits_are_few(smollm2: Model, gemma3: Model) -> None:
    """A point mass is a sparse distribution: hybrid resampling then costs a message hardly more than a token."""

    async def test(device: Device, connection: Connection) -> None:
        xcosd = await bits_of(device, connection, "xcosd", 0.0)
        assert xcosd.down / xcosd.tokens < 30
        assert xcosd.rounding == 0

    together(smollm2, gemma3, test)


@pytest.mark.parametrize(
    "prompt", ["Les œuvres d’Émile Zola 한국어 🙂 sont", "x\x00\x04\u2581y \U000e0001 z", "def f(x):\n\treturn"]
)
def test_any_text_can_be_a_prompt(smollm2: Model, gemma3: Model, prompt: str) -> None:
    async def test(device: Device, connection: Connection) -> None:
        asked = Request(prompt, "dssd", SplitOptions(), SamplingParams(temperature=0), max_tokens=12)
        result = await device.generate(asked, connection)
        assert (await check(device, asked, result, connection)).equal

    together(smollm2, gemma3, test)


def test_hot_answers_with_tokens_outside_c(smollm2: Model, gemma3: Model) -> None:
    """At a high temperature the cloud writes tokens that the device does not have, cut characters among them."""

    async def test(device: Device, connection: Connection) -> None:
        asked = Request("Words:", "dssd", SplitOptions(2), SamplingParams(temperature=3.0), max_tokens=60, seed=3)
        result = await device.generate(asked, connection)
        outside = [number for number in result.answer.numbers if number >= connection.common.size]
        assert len(outside) > 10
        spelled = gemma3.vocabulary.join(result.token_ids[: result.tokens - (result.finish_reason == "end")])
        assert result.answer.text == spelled.decode(errors="replace")

    together(smollm2, gemma3, test)


def test_one_model_on_both_ends(smollm2: Model, smollm2_again: Model) -> None:
    """Equal tokenizers: every token is common, and greedy drafts of the same model are all accepted."""

    async def test(device: Device, connection: Connection) -> None:
        assert connection.common.is_identity
        asked = Request("The sun is", "dssd", SplitOptions(3), SamplingParams(temperature=0), max_tokens=20)
        result = await device.generate(asked, connection)
        assert result.acceptance_rate == 1

    together(smollm2, smollm2_again, test)


def test_chat_goes_through_the_template(smollm2: Model, smollm2_again: Model) -> None:
    async def test(device: Device, connection: Connection) -> None:
        asked = Request("What is 2 + 2?", "dssd", SplitOptions(3), SamplingParams(temperature=0), max_tokens=24, chat=True)
        bare = Request("What is 2 + 2?", "dssd", SplitOptions(3), SamplingParams(temperature=0), max_tokens=24)
        result, plain = [await device.generate(one, connection) for one in (asked, bare)]
        assert result.answer.text != plain.answer.text
        assert "4" in result.answer.text

    together(smollm2, smollm2_again, test)


def test_doctor(smollm2: Model, gemma3: Model) -> None:
    async def test(device: Device, connection: Connection) -> None:
        report = await examine(device, connection, "ws://here")
        assert report.common_tokens == 46_146  # 46,145 and the end
        assert report.device_share > 0.95
        assert report.cloud_share > 0.9
        assert report.fits

    together(smollm2, gemma3, test)
