"""The distribution of answers that crossed a real socket, against the target's: many answers with fixed seeds, and a G-test.

Enumeration (test_exact.py) gives every draw a branch of its own, so it cannot see that two draws hang together: the same
stream used twice, or by both ends. These tests can, because here the draws come from the production streams.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from antiphon.cloud.server import serving
from antiphon.cloud.service import Cloud
from antiphon.config import Request, ServeConfig
from antiphon.core.chance import Role
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Exchanged
from antiphon.methods.speculative.tslt_tree import TsltTreeCloud
from antiphon.methods.speculative.xcosd import XcosdCloud
from antiphon.methods.speculative.xcosd_e import XcosdECloud
from support.sampled import AUTO, CANDIDATES, FEW, SAMPLING, TOKENS, TREE, Confused, expected, p_value, pair

pytestmark = pytest.mark.slow

ANSWERS, AT_ONCE = 400, 8


@dataclass
class Sample:
    """How often each answer came, and what all of them took."""

    counts: Counter[tuple[int, ...]] = field(default_factory=Counter)
    exchanged: Exchanged = field(default_factory=Exchanged)
    rounds: int = 0


def sampled(name: str, given: Mapping[str, object], methods: Mapping[str, Method] = WITHOUT_DOCUMENTS) -> Sample:
    """The answers of the seeds 0, 1, ... of one device, several at once, from a served cloud."""

    async def run() -> Sample:
        models = pair()
        cloud, device = Cloud(models.cloud, methods=methods), Device(models.device)
        async with serving(cloud, ServeConfig(port=0)) as url:
            connection = await connect(url, device.model, device.worker)
            sample = await answers(device, connection, name, given)
            await connection.close()
        device.close()
        cloud.close()
        return sample

    return asyncio.run(asyncio.wait_for(run(), 120))


async def answers(device: Device, connection: Connection, name: str, given: Mapping[str, object]) -> Sample:
    options = WITHOUT_DOCUMENTS[name].options_from({"draft_length": 2, **given})
    sample, seeds = Sample(), iter(range(ANSWERS))

    async def some() -> None:
        for seed in seeds:
            asked = Request("ab", name, options, SAMPLING, TOKENS, seed=seed)
            result = await device.generate(asked, connection)
            sample.counts[tuple(connection.common.numbers[list(result.token_ids)].tolist())] += 1
            sample.exchanged += result.answer.exchanged
            sample.rounds += result.answer.rounds

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return sample


CASES = {
    "cloud": ("cloud", {}),
    "coupled": ("coupled", {}),
    "coupled-tree": ("coupled-tree", {"expansion": "3,2"}),
    "dsd": ("dsd", {}),
    "dsd-block": ("dsd", {"verification": "block"}),
    "tslt": ("tslt", FEW),
    "tslt-block": ("tslt", {**FEW, "verification": "block"}),
    "tslt-tree": ("tslt-tree", TREE),
    "tslt-tree-with-replacement": ("tslt-tree", {**TREE, "replacement": True}),
    "dssd": ("dssd", {}),
    "xcosd": ("xcosd", {}),
    "xcosd-e": ("xcosd-e", CANDIDATES),
    "xcosd-e-auto": ("xcosd-e", AUTO),
}


@pytest.mark.parametrize(("name", "given"), CASES.values(), ids=CASES)
def test_the_distribution_of_three_tokens(name: str, given: dict[str, object]) -> None:
    sample = sampled(name, given)
    assert p_value(sample.counts, expected(name, given)) > 1e-3
    took = sample.exchanged
    if name == "xcosd-e":  # every way to settle a rejection was taken
        assert took.candidates > 200
        assert took.trips > sample.rounds
        assert took.distributions > 0
    else:
        assert took.distributions > 200 if name in ("dssd", "xcosd") else took.distributions == 0
    if name.startswith("tslt"):
        assert 0 < took.entries <= 6 * took.draft_distributions
        assert took.drafted > took.draft_distributions if name == "tslt-tree" else took.drafted == took.draft_distributions


@pytest.mark.parametrize("name", ["gr", "tr"])
def test_a_lossy_method_is_seen(name: str) -> None:
    assert p_value(sampled(name, {}).counts, expected(name, {})) < 1e-6


class SpareFromTheDevicesStream(XcosdCloud):
    """Draws the spare with the very number with which the device draws whether it is needed."""

    def __init__(self, side: CloudSide, options: object) -> None:
        side.chance = Confused(side.chance, {Role.CANDIDATE: Role.RESAMPLE})
        super().__init__(side, options)


class CandidatesFromTheDraftersStream(XcosdECloud):
    """Draws the first candidate with the very number that drew the draft."""

    def __init__(self, side: CloudSide, options: object) -> None:
        side.chance = Confused(side.chance, {Role.CANDIDATE: Role.DRAFT})
        super().__init__(side, options)


class ChildrenTestedFromTheDraftersStream(TsltTreeCloud):
    """Tests the first child with the very number that drew it."""

    def __init__(self, side: CloudSide, options: object) -> None:
        side.chance = Confused(side.chance, {Role.ACCEPT: Role.DRAFT})
        super().__init__(side, options)


@pytest.mark.parametrize(
    ("name", "given", "wrong"),
    [
        ("xcosd", {}, SpareFromTheDevicesStream),
        ("xcosd-e", CANDIDATES, CandidatesFromTheDraftersStream),
        ("tslt-tree", TREE, ChildrenTestedFromTheDraftersStream),
    ],
    ids=["xcosd", "xcosd-e", "tslt-tree"],
)
def test_a_stream_that_is_used_twice_is_seen(name: str, given: dict[str, object], wrong: type) -> None:
    """Each draw is right for itself; together they are not. Over sockets the answers are few: `test_streams` has thousands."""
    right = WITHOUT_DOCUMENTS[name]
    confused = Method(name, right.summary, True, right.device, wrong, options=right.options)
    assert p_value(sampled(name, given, {**WITHOUT_DOCUMENTS, name: confused}).counts, expected(name, given)) < 1e-4
