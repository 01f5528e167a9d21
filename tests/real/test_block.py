"""Block verification with SmolLM2 on the device and Gemma 3 in the cloud."""

from collections.abc import Sequence

import numpy as np
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.block import Block
from antiphon.core.distributions import Probs
from antiphon.device.check import check
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import find
from antiphon.methods.speculative import dsd
from antiphon.models.base import Model
from real.test_pair import together
from support.data import real_prompts

pytestmark = [pytest.mark.model, pytest.mark.slow]


@pytest.mark.parametrize("method", ["dsd", "tslt"])
def test_greedy_text_is_the_clouds_own(smollm2: Model, gemma3: Model, method: str) -> None:
    async def test(device: Device, connection: Connection) -> None:
        options = find(method).options_from({"draft_length": 4, "verification": "block"})
        for prompt in real_prompts()[::3]:
            asked = Request(prompt, method, options, SamplingParams(temperature=0), max_tokens=24)
            found = await check(device, asked, await device.generate(asked, connection), connection)
            assert found.equal, found.sentence()

    together(smollm2, gemma3, test)


def test_more_drafts_stand(smollm2: Model, gemma3: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same drafts, on average over what decides: for each it is never fewer, and in all more than 1 % more."""
    stood: list[tuple[float, float]] = []
    judged = dsd.judged

    def watched(numbers: Sequence[int], draft_probs: Sequence[Probs], target_probs: object) -> Block:
        targets = [target_probs(index) for index in range(len(numbers))]  # type: ignore[operator]
        block = judged(numbers, draft_probs, lambda index: targets[index])
        each = [targets[index][number] / draft_probs[index][number] for index, number in enumerate(numbers)]
        # At least i of these drafts stand with probability p_i, and one by one with the product of what each stands with.
        stood.append((float(np.cumprod(np.minimum(each, 1.0)).sum()), sum(block.reached[1:])))
        return block

    monkeypatch.setattr(dsd, "judged", watched)

    async def test(device: Device, connection: Connection) -> None:
        options = find("dsd").options_from({"draft_length": 4, "verification": "block"})
        for seed, prompt in enumerate(real_prompts()):
            await device.generate(Request(prompt, "dsd", options, SamplingParams(temperature=1), 24, seed=seed), connection)

    together(smollm2, gemma3, test)
    one_by_one, as_block = np.array(stood).T
    print(f"\n{len(stood)} rounds: {one_by_one.mean():.3f} drafts stand one by one, {as_block.mean():.3f} as a block")
    assert len(stood) > 60
    assert (as_block >= one_by_one - 1e-12).all()
    assert as_block.mean() > 1.01 * one_by_one.mean()
