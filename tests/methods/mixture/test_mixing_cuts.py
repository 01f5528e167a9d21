"""Links that are cut at every message, clouds that cannot be reached: the answer ends in time, and another cloud takes part."""

from typing import Any

import pytest

from antiphon.errors import LinkError, ProtocolError
from antiphon.methods.effects import Kind
from methods.mixture.wrong_clouds import FAULTS, IN_TIME, METHODS, cutting, require_in_time, silent_from, wrong
from support.mixtures import (
    Shelf,
    Told,
    World,
    answer,
    ask,
    dense_answer,
    question,
    require_true,
    virtually,
    world,
)

BROKEN = {
    "silent from the start": silent_from(0),
    "silent at the first evidence": silent_from(1),
    "silent later": silent_from(4),
    **{name: FAULTS[name] for name in ("weight that is no number", "a step left out", "ones", "a verdict")},
}


def crossings(there: World, name: str, **given: Any) -> int:
    """How many frames an answer takes if nobody cuts."""
    frames = cutting(there, -1)
    answer(there, question(name, **given))
    return len([one for one in frames if one.session])


def require_cut_survived(name: str, place: int) -> Told:
    there = world(4)
    cutting(there, place)
    told = answer(there, question(name, tokens=8))
    require_in_time(there, name, told, tokens=8)
    return told


@pytest.mark.medium
@pytest.mark.parametrize("name", METHODS)
def test_a_link_cut_at_every_message(name: str) -> None:
    """The first frame is `Open`; the last ones come after the answer."""
    local = []
    for place in range(1, crossings(world(4), name, tokens=8)):
        told = require_cut_survived(name, place)
        local.append(told.kinds.count(Kind.LOCAL))
        assert told.result.closed is None
    assert local[0] == 8, "nothing was heard of the cloud yet"
    assert local[-1] == 0, "the answer was over"
    assert sorted(local, reverse=True) == local, "the later the cut, the less is local"


def test_a_link_that_breaks_before_the_question_is_made_anew() -> None:
    assert Kind.LOCAL not in require_cut_survived("concord", 0).kinds


def test_a_link_that_breaks_before_the_question_and_leads_to_another_cloud() -> None:
    """What it is asked must fit what answers: it was looked at before the link broke."""

    async def run() -> None:
        there = world(4)
        cutting(there, 0)
        async with there.ends() as (device, connections):
            there.served[0].library = Shelf(("passage", 1.0), scorer="another")
            with pytest.raises(ProtocolError, match="scored otherwise now: ask again"):
                await device.generate(question("concord"), connections)

    virtually(run())


@pytest.mark.parametrize("end", [0, 1])
def test_one_of_two_links_that_breaks_before_the_question_is_made_anew(end: int) -> None:
    there, request = world(4, 2), question("concord-nosystem", tokens=8)
    cutting(there, 0, end)
    told = answer(there, request)
    require_true(there, request, told)
    assert {step.ends for step in told.steps} == {(0, 1)}


def test_after_a_cut_the_next_question_has_a_cloud_again() -> None:
    async def run() -> None:
        there = world(4)
        cutting(there, 5)
        async with there.ends() as (device, connections):
            request = question("concord", tokens=8)  # the first one ends before the cloud is back
            first, second = [await ask(there, device, connections, request) for _ in range(2)]
            assert first.kinds[-1] is Kind.LOCAL
            assert Kind.LOCAL not in second.kinds
            for told in (first, second):
                require_true(there, request, told)

    virtually(run())


def test_an_outage_of_the_link() -> None:
    """Three seconds in which nothing moves: tokens are local; then, with a short wait that suffices, the cloud is back."""
    link = "rtt=20ms,up=10Mbit,down=10Mbit,handshakes=0,outage=0.3s-3.3s"
    there = world(4, links=[link], masses=(0.0, 0.0), end=-99.0)
    request = question("concord", tokens=150, timeout=0.1, short_timeout=0.05)
    told = answer(there, request)
    require_true(there, request, told)
    first = told.kinds.index(Kind.LOCAL)
    assert set(told.kinds[first : first + 50]) <= {Kind.LOCAL, Kind.CERTAIN}
    assert Kind.LOCAL not in told.kinds[-20:]


def test_a_cloud_that_cannot_be_reached_is_one_sentence() -> None:
    """Before anything was written; a cloud that was there once is looked for as long as the connection says."""

    async def run() -> None:
        there = world(4)
        async with there.ends() as (device, connections):
            await connections[0]._transport.close()

            async def nobody() -> Any:
                raise LinkError("nobody answers")

            connections[0]._dial = nobody
            with pytest.raises(LinkError, match="did not come back"):
                await device.generate(question("concord"), connections)

    virtually(run(), 60)


@pytest.mark.core(5)
@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("name", ["concord", "concord-nosystem", "drdg-tw"])
@pytest.mark.parametrize("end", [0, 1])
def test_the_other_cloud_still_takes_part(name: str, spoil: Any, end: int) -> None:
    there = world(4, 2, halves={end: {name: wrong(name, spoil)}})
    request = question(name, tokens=16)
    told = answer(there, request)
    require_true(there, request, told)
    assert told.seconds < IN_TIME
    decided = [step.ends for step in told.steps if step.kind in (Kind.CONFIRMED, Kind.CHANGED)]
    assert (1 - end,) in decided


@pytest.mark.core(1)
@pytest.mark.parametrize("end", [0, 1])
def test_one_of_two_links_cut_at_every_message(end: int) -> None:
    for place in range(1, 12):
        there, request = world(4, 2), question("concord-nosystem", tokens=8)
        cutting(there, place, end)
        told = answer(there, request)
        require_true(there, request, told)
        assert told.steps[-1].ends in ((0, 1), (1 - end,))
        assert Kind.LOCAL not in told.kinds, "the other one is waited for"


def test_a_refusal_of_one_cloud_is_none_of_the_other() -> None:
    there = world(4, 2)
    there.clouds[1].model.context_length = 40  # the prompt alone is longer
    request = question("concord-nosystem")
    told = answer(there, request)
    require_true(there, request, told)
    assert {step.ends for step in told.steps} == {(0,)}
    assert told.numbers == dense_answer(there, request, [0])
