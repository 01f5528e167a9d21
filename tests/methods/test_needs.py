"""What a method says it needs is what its cloud half asks for; a cloud announces what its engine and library can serve."""

from collections.abc import Callable
from typing import Any

import pytest

from antiphon.cloud.service import Cloud
from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.device.check import probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import ALL_METHODS, PROBES
from antiphon.methods.base import CloudSide
from antiphon.methods.probe import Question
from antiphon.methods.verifier import Target, Targets, TreeTargets, Verifier
from antiphon.models.needs import EVERYTHING, Need
from antiphon.models.toy import named_toy
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.testing.lockstep import run_pair
from support.links import between, linked, request
from support.mixed import emitted
from support.mixtures import Shelf

WITH_A_CLOUD = [name for name, method in ALL_METHODS.items() if method.cloud is not None]
ASKED = {"winner": Need.WINNERS, "likeliest": Need.WINNERS, "prob": Need.CHOSEN_PROBS}


class Observed:
    """What cloud halves ask their engine and library for, once it is in place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.needs: set[Need] = set()
        self._within = 0
        for name, need in ASKED.items():
            monkeypatch.setattr(Target, name, self._noting(need, getattr(Target, name)))
        for kind, name in ((Target, "probs"), (Targets, "logits")):
            monkeypatch.setattr(kind, name, property(self._noting(Need.DISTRIBUTIONS, getattr(kind, name).fget)))
        for kind in (Targets, TreeTargets):
            monkeypatch.setattr(kind, "probs", self._noting(Need.DISTRIBUTIONS, kind.probs))
        monkeypatch.setattr(Verifier, "score_tree", self._noting(Need.TREE, Verifier.score_tree))
        monkeypatch.setattr(CloudSide, "__getattribute__", lambda side, name: self._read(side, name))

    def _noting(self, need: Need, call: Callable[..., Any]) -> Callable[..., Any]:
        """Note a call of a half; what such a call makes on its way is no need of the half's."""

        def note(*arguments: Any) -> Any:
            if not self._within:
                self.needs.add(need)
            self._within += 1
            try:
                return call(*arguments)
            finally:
                self._within -= 1

        return note

    def _read(self, side: CloudSide, name: str) -> Any:
        value = object.__getattribute__(side, name)
        if name == "mixing" and value is not None:
            self.needs.add(Need.DOCUMENTS)
        return value


def write(name: str) -> None:
    """Answers, long and short, greedy and sampled, of ends that agree and of ends that do not."""
    method = ALL_METHODS[name]
    given = {"draft_length": 3, "candidates": 2, "draft_precision": 16, "uncertain": 0.1, "packing": "topp"}
    for seed in range(12):
        sampling, chance = SamplingParams(temperature=(0.0, 1.0)[seed % 2]), PhiloxChance(seed)
        if method.mixes:
            emitted(name, Pair(SHARED, SHARED, seed), method.options_from(given), sampling, (0.5, 0.5), 8, chance)
        else:
            device, cloud = Pair(SMALL, LARGE, seed).sides(8, sampling, chance)
            options = method.options_from(given)
            assert method.cloud is not None
            run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())


@pytest.mark.parametrize("name", WITH_A_CLOUD)
def test_a_method_needs_what_its_cloud_half_asks_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Observed(monkeypatch)
    write(name)
    assert observed.needs == ALL_METHODS[name].needs


def test_a_probe_looks_at_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(device: Device, connection: Connection) -> None:
        await probe(connection, request("cloud"), Question((1, 2), (3, 4), 2))

    observed = Observed(monkeypatch)
    linked(test)
    assert observed.needs == PROBES["probe"].needs


@pytest.mark.parametrize("name", ["device", "crcg"])
def test_a_method_without_a_cloud_needs_no_engine_of_one(name: str) -> None:
    assert not ALL_METHODS[name].needs - {Need.DOCUMENTS}


FITTING = {
    frozenset[Need](): set[str](),
    frozenset({Need.WINNERS}): {"cloud", "coupled"},
    frozenset({Need.WINNERS, Need.TREE}): {"cloud", "coupled", "coupled-tree"},
    frozenset({Need.DISTRIBUTIONS, Need.TREE}): {"tslt-tree", "probe"},
    EVERYTHING - {Need.TREE}: {name for name in WITH_A_CLOUD if "tree" not in name and not ALL_METHODS[name].mixes} | {"probe"},
    EVERYTHING: {name for name in WITH_A_CLOUD if not ALL_METHODS[name].mixes} | {"probe"},
}


@pytest.mark.parametrize("offers", FITTING, ids=lambda offers: "+".join(sorted(need.name for need in offers)) or "nothing")
def test_a_cloud_announces_what_its_engine_can_serve(offers: frozenset[Need]) -> None:
    model = named_toy("toy-cloud")
    model.offers = offers

    async def test(device: Device, connection: Connection) -> None:
        assert set(connection.welcome.methods) == FITTING[offers]

    between(named_toy("toy-device"), model, test, methods=ALL_METHODS)


def test_a_library_without_scores_serves_those_that_only_read_documents() -> None:
    model = named_toy("toy-cloud")
    model.offers = frozenset()
    cloud = Cloud(model, methods=ALL_METHODS, library=Shelf(("theirs", 0.0)))
    assert set(cloud.methods) == {"drcg"}
    cloud.close()


def test_a_device_is_told_what_such_a_cloud_has() -> None:
    model = named_toy("toy-cloud")
    model.offers = frozenset({Need.WINNERS})

    async def test(device: Device, connection: Connection) -> None:
        with pytest.raises(UsageError, match="the cloud does not know the method dssd: it has cloud, coupled"):
            await device.generate(request("dssd"), connection)
        assert (await device.generate(request("coupled"), connection)).tokens > 0

    between(named_toy("toy-device"), model, test)
