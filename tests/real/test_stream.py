"""A stream with SmolLM2 on the device and Gemma 3 in the cloud, over an emulated link: the text is that of `cloud`."""

import asyncio
from collections.abc import Iterator

import pytest

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import ModelConfig, Request, SamplingParams, ServeConfig
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.demo.cloud_process import connected
from antiphon.device.answer import Result
from antiphon.device.generate import Device
from antiphon.errors import ModelError
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models import load
from antiphon.models.base import Model
from antiphon.options import NoOptions
from antiphon_lab.ends.real import ANYWHERE
from antiphon_lab.links.emulated import precise_loop
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.proxy import Address, proxying

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Model, Model]]:
    """One thread each: then passes of any width have the logits of token by token."""
    loaded: list[Model] = []
    try:
        for name in ("smollm2-135m", "gemma3-270m"):
            loaded.append(load(ModelConfig(name, context=512, threads=1)))
    except ModelError as error:
        for model in loaded:
            model.close()
        pytest.skip(str(error))
    yield loaded[0], loaded[1]
    for model in loaded:
        model.close()


def written(pair: tuple[Model, Model], link: str, requests: list[Request]) -> list[Result]:
    """One answer to each, over one emulated link."""

    async def run() -> list[Result]:
        cloud, device = Cloud(pair[1]), Device(pair[0])
        try:
            async with (
                serving(cloud, ServeConfig(port=0)) as url,
                proxying(parse_link(link), ANYWHERE, Address.parse(url)) as (_, address),
                connected(device, f"ws://{address}") as connection,
            ):
                return [await device.generate(request, connection) for request in requests]
        finally:
            cloud.worker.close()
            device.worker.close()

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        return runner.run(run())


PROMPTS = {"rtt=1ms": "The capital of France is", "rtt=25ms": "Question: what is two and three?\nAnswer:"}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("link", PROMPTS)
def test_the_text_is_that_of_cloud(pair: tuple[Model, Model], link: str, temperature: float) -> None:
    """Drafts come when they come: no two runs have the same passes."""
    sampling = SamplingParams(temperature=temperature)
    asked = [
        Request(PROMPTS[link], "coupled", CoupledOptions(patience=patience), sampling, 24, seed=5)
        for patience in (AUTO, 0.0, LOCKSTEP)
    ]
    alone = Request(PROMPTS[link], "cloud", NoOptions(), sampling, 24, seed=5)
    *ours, theirs = written(pair, link, [*asked, alone])
    assert len(theirs.token_ids) > 4
    for one in ours:
        assert one.token_ids == theirs.token_ids
        assert one.finish_reason == theirs.finish_reason
    assert sum(one.answer.exchanged.drafted for one in ours) > 0
