"""One seed, one text, whatever the device is: without a model, with a small one, with the cloud's own; each connects anew."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.chance import PhiloxChance, Race, answer_key
from antiphon.core.distributions import Ids
from antiphon.core.noise import Noise
from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.speculative.coupled_tree import CoupledTreeOptions
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.models.base import Model
from antiphon.models.toy import MERGES, ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from support.links import between

DEVICES: dict[str, Callable[[], Model | None]] = {
    "none": lambda: None,
    "small": lambda: named_toy("toy-device"),
    "the cloud's own": lambda: named_toy("toy-cloud"),
    "few merges": lambda: ToyModel(toy_pieces(merges=MERGES[:2], order=7), seed=3, noise=0.3, sharpness=3.0),
    "the same tokens in another order": lambda: ToyModel(toy_pieces(order=5), seed=1, noise=0.4, sharpness=3.0),
}
DRAFTING = {
    "coupled": [CoupledOptions(0, 3), CoupledOptions(3, 0), CoupledOptions(6, 8)],
    "coupled-tree": [CoupledTreeOptions("2,2"), CoupledTreeOptions("4,1,1")],
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "cool": SamplingParams(temperature=0.3),
    "plain": SamplingParams(temperature=1.0),
    "cut": SamplingParams(temperature=1.3, top_k=40, top_p=0.9, repetition_penalty=1.2),
}


def written(asked: Request, device: str) -> Result:
    """An answer over a connection of its own, to a cloud of its own."""

    async def test(one: Device, connection: Connection) -> Result:
        return await one.generate(asked, connection)

    return between(DEVICES[device](), named_toy("toy-cloud"), test)


def texts(asked: Request) -> dict[tuple[str, ...], tuple[int, ...]]:
    """The tokens of every way to ask for them."""
    found = {("cloud", device): written(replace(asked, method="cloud", options=NoOptions()), device) for device in DEVICES}
    for device in [name for name in DEVICES if name != "none"]:
        for method, choices in DRAFTING.items():
            for options in choices:
                found[method, device, str(options)] = written(replace(asked, method=method, options=options), device)
    return {way: result.token_ids for way, result in found.items()}


@pytest.mark.medium
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize(("prompt", "seed"), [("the thing ", 7), ("In 1969 the \u00e9", 2**64 - 1)])
def test_the_text_is_the_clouds(sampling: str, prompt: str, seed: int) -> None:
    found = texts(Request(prompt, sampling=SAMPLINGS[sampling], max_tokens=24, seed=seed))
    assert len(found) == 5 + 4 * 5
    assert set(found.values()) == {found["cloud", "none"]}, found


def by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the wire number, as version 3 of the protocol had it."""
    race = PhiloxChance.race

    def wrong(self: PhiloxChance, position: int, ids: Ids) -> Race:
        return race(self, position, np.arange(len(ids), dtype=np.int32))

    monkeypatch.setattr(PhiloxChance, "race", wrong)


def by_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the device alone: the two ends draw other numbers, and drafts stand by accident only."""
    monkeypatch.setattr("antiphon.device.generate.answer_key", lambda seed, prompt, chat: seed)


def test_noise_by_wire_number_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    by_place(monkeypatch)
    asked = Request("the thing ", "cloud", NoOptions(), SamplingParams(temperature=1.0), 24, seed=7)
    assert written(asked, "none").token_ids != written(asked, "small").token_ids


def test_both_ends_draw_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud's own model drafts for it: every draft stands, unless the device has another key."""
    asked = Request("the thing ", "coupled", CoupledOptions(3, 0, LOCKSTEP), SamplingParams(temperature=1.0), 40, seed=7)
    assert written(asked, "the cloud's own").answer.kinds["correction"] == 0
    by_seed(monkeypatch)
    assert written(asked, "the cloud's own").answer.kinds["correction"] > 5


def test_another_prompt_and_another_form_have_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what both ends really drew with: no key twice, and none of the numbers of one in the other."""
    keys: list[int] = []
    begun = PhiloxChance.__init__

    def seen(self: PhiloxChance, key: int) -> None:
        keys.append(key)
        begun(self, key)

    monkeypatch.setattr(PhiloxChance, "__init__", seen)
    asked = Request("the thing ", "coupled", CoupledOptions(), SamplingParams(temperature=1.0), 8, seed=7)
    written(asked, "small")
    assert keys == [answer_key(7, "the thing ", chat=False)] * 2
    keys.clear()
    written(replace(asked, prompt="the thing  "), "small")
    written(replace(asked, seed=8), "small")
    assert len(set(keys)) == 2
    assert answer_key(7, "the thing ", chat=False) not in keys
    assert answer_key(7, "the thing ", chat=True) not in keys
    ids = np.arange(len(named_toy("toy-cloud").vocabulary), dtype=np.int32)
    numbers = [number for key in {*keys} for place in range(8) for number in Noise(key).uniform(place, ids).tolist()]
    assert len(set(numbers)) == len(numbers)
