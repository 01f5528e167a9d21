"""Two hundred tokens written offline by real models, then settled: the text that stands is that of `cloud`."""

import math
from dataclasses import replace

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.device.answer import Result
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models.base import Model
from antiphon.options import NoOptions
from device.offline.losses import Told, told
from device.offline.test_settled import openings, prefix_of, settling

pytestmark = [pytest.mark.model, pytest.mark.slow]


def lost(device: Model, cloud: Model, temperature: float) -> tuple[Told, Result]:
    """An answer of 208 tokens whose link is lost at its beginning, for as long as it takes to write it, and that of `cloud`."""
    sampling = SamplingParams(temperature=temperature, logit_bias=tuple((end, -100.0) for end in cloud.vocabulary.ends))
    what = Request("In 1969 the first", "coupled", CoupledOptions(), sampling, 208, seed=7, on_loss="local")
    models = {"models": lambda: (device, cloud)}
    whole = told(replace(what, method="cloud", options=NoOptions(), on_loss="wait"), **models)
    found = told(what, (10, "before"), away=10.0, **models)
    assert whole.result is not None
    return found, whole.result


def assert_settled(found: Told, whole: Result) -> int:
    """How much stands of what was written alone."""
    assert found.result is not None
    assert len(found.line) >= 200
    assert found.result.token_ids == whole.token_ids
    assert found.settled == whole.text
    stood = len(found.network.log[openings(found.network)[-1]][2].message.committed)
    prefix = prefix_of(found.line, whole.token_ids[stood:])
    assert settling(found.network, prefix)[0] == math.ceil((prefix + 1) / 7)
    return prefix


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_small_model_writes_what_a_large_one_settles(smollm2: Model, gemma3: Model, temperature: float) -> None:
    found, whole = lost(smollm2, gemma3, temperature)
    assert assert_settled(found, whole) < 200
    assert found.result is not None
    assert found.result.answer.unsettled.revised > 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_where_the_same_model_writes_all_of_it_stands(smollm2: Model, smollm2_again: Model, temperature: float) -> None:
    """In passes of 7 tokens the logits are those of token by token."""
    found, whole = lost(smollm2_again, smollm2, temperature)
    assert assert_settled(found, whole) == len(found.line)
    assert found.result is not None
    assert found.result.answer.unsettled.revised == 0
