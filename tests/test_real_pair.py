"""SmolLM2 on the device, Gemma 3 in the cloud, over a real socket: what the toys show must hold for real models."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams, ServeConfig, SplitOptions
from antiphon.device.check import check
from antiphon.device.connection import Connection, connect
from antiphon.device.doctor import examine
from antiphon.device.generate import Device
from antiphon.methods import find
from antiphon.models.base import Model
from antiphon.vocabulary import common_vocabulary, from_members
from data import real_prompts

pytestmark = pytest.mark.model

Result = TypeVar("Result")


def together(device_model: Model, cloud_model: Model, test: Callable[[Device, Connection], Awaitable[Result]]) -> Result:
    """Run `test` over a socket; the models stay loaded for the next one."""

    async def run() -> Result:
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


@pytest.mark.parametrize("method", ["dsd", "dssd", "xcosd", "xcosd-e"])
def test_greedy_text_is_the_clouds_own(smollm2: Model, gemma3: Model, method: str) -> None:
    """Ten real prompts, 48 tokens, draft lengths 1 to 6: no difference at all (passes of at most 7 tokens)."""

    async def test(device: Device, connection: Connection) -> None:
        for index, prompt in enumerate(real_prompts()):
            options = find(method).options_from({"draft_length": 1 + (index + 2) % 6})
            asked = Request(prompt, method, options, SamplingParams(temperature=0), max_tokens=48)
            result = await device.generate(asked, connection)
            found = await check(device, asked, result, connection)
            assert found.equal, f"{method}, {options.draft_length} drafts, {prompt!r}: {found.sentence()}"

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
