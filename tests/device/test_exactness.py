"""Whether an answer is exact, as its figures say: of this answer, not of its method."""

import math
from collections import Counter
from typing import Any

import pytest

from antiphon.config import Request
from antiphon.errors import UsageError
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS
from antiphon.methods.effects import Half, Kind
from antiphon.methods.mixture.cloud import MixtureCloud
from support.links import linked
from support.links import request as generated
from support.mixtures import Told, World, answer, dense_answer, question, world


@pytest.mark.parametrize("name", WITHOUT_DOCUMENTS)
def test_an_answer_that_is_not_mixed_is_what_its_method_is(name: str) -> None:
    result = linked(lambda device, connection: device.generate(generated(name, tokens=4), connection))
    assert result.as_json()["exact"] == WITHOUT_DOCUMENTS[name].exact


def exact_of(there: World, request: Request, told: Told | None = None) -> bool:
    """What an answer says of itself; if it says yes, it is the mixture of all ends with all evidence, token for token."""
    told = told or answer(there, request)
    figures = told.result.as_json()
    if figures["exact"]:
        assert told.numbers == dense_answer(there, request, range(len(there.clouds)))
    return bool(figures["exact"])


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("name", "given", "exact"),
    [
        ("concord-nosystem", {}, True),
        ("concord-nosystem", {"gate": math.inf}, True),
        ("concord-nosystem", {"gate": 0.3}, False),
        ("concord-nosystem", {"packing": "topp", "packing_top_p": 0.1}, True),  # an option of `dragon` alone
        ("drdg-tw", {"gate": 0.3}, True),  # it has no gate
        ("drdg-tw", {}, True),
        ("dragon", {}, True),
        ("dragon", {"packing": "topp", "packing_top_p": 0.5}, False),
        ("dragon", {"packing": "topp", "packing_top_p": 1.0}, True),
        ("drdg-sw", {}, False),
        ("crcg", {}, False),
        ("drcg", {}, False),
    ],
)
def test_a_lossy_option_makes_no_exact_answer(name: str, given: dict[str, Any], exact: bool) -> None:
    """The weight of the device is large, so that the gate is used."""
    for seed in range(3):
        there = world(seed, masses=(2.0, 0.5))
        request = question(name, **given)
        told = answer(there, request)
        assert not given.get("gate") or name == "drdg-tw" or given["gate"] > 1 or Kind.CERTAIN in told.kinds
        assert exact_of(there, request, told) == exact


@pytest.mark.core(1)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ["concord", "concord-nocomm"])
def test_an_answer_all_of_which_evidence_reached_is_exact(name: str, temperature: float) -> None:
    """Where timeouts ends and debt begins an answer may be the mixture's or not: it says which."""
    found = Counter[bool]()
    for seed in range(6):
        for wait in (0.0, 0.05, 0.5):
            there = world(seed, masses=(0.5, 0.5), agree=0.9)
            request = question(name, temperature=temperature, timeout=wait, tokens=6)
            told = answer(there, request)
            assert exact_of(there, request, told) == (Kind.LOCAL not in told.kinds)
            found[exact_of(there, request, told)] += 1
    assert min(found[True], found[False]) > 0


class TwoSteps(MixtureCloud):
    """Falls silent after two steps."""

    def _may_step(self) -> bool:
        return len(self._line) < 2 and super()._may_step()


@pytest.mark.parametrize("name", ["concord", "concord-nosystem"])
def test_an_answer_that_lost_a_cloud_is_not_exact(name: str) -> None:
    there = world(2, masses=(0.5, 0.5), halves={0: {name: TwoSteps}})
    request = question(name, tokens=12)
    told = answer(there, request)
    assert Kind.LOCAL in told.kinds
    assert not exact_of(there, request, told)


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("name", ["concord-nosystem", "drdg-tw"])
def test_an_answer_that_lost_one_of_two_clouds_is_not_exact(name: str, end: int) -> None:
    """No token is local, for the other one was heard; but the mixture is of fewer ends than were asked."""

    class Refusing(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            raise UsageError("not today")
            yield

    for half in (TwoSteps, Refusing):
        if name == "drdg-tw" and half is TwoSteps:
            continue
        there = world(2, 2, masses=(0.5, 0.5, 0.5), halves={end: {name: half}})
        request = question(name, tokens=8)
        told = answer(there, request)
        assert Kind.LOCAL not in told.kinds
        assert not exact_of(there, request, told)
    assert exact_of(world(2, 2, masses=(0.5, 0.5, 0.5)), question(name, tokens=8))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_dragon_without_its_cloud_is_not_exact(temperature: float) -> None:
    class Gone(WITH_DOCUMENTS["dragon"].cloud):  # type: ignore[misc,name-defined]
        def _may_step(self) -> bool:
            return len(self._line) < 3 and bool(super()._may_step())

    there = world(2, masses=(0.5, 0.5), halves={0: {"dragon": Gone}})
    told = answer(there, question("dragon", temperature=temperature, tokens=8))
    assert told.result.as_json()["exact"] is False
    whole = answer(world(2, masses=(0.5, 0.5)), question("dragon", temperature=temperature, tokens=8))
    assert whole.result.as_json()["exact"] is True
