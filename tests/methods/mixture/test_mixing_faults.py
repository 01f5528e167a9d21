"""The device survives clouds that are silent, slow, wrong, flooding, cut off: answers end, in time, and say what was local."""

import math
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from antiphon.errors import LinkError, ProtocolError, RemoteError, UsageError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.effects import Effect, Finish, Half, Kind, Receive, Send
from antiphon.methods.mixture.options import LONGEST_WAIT
from antiphon.wire import messages as m
from antiphon.wire.messages import Message
from antiphon.wire.session import Life
from support.mixtures import (
    Crossed,
    Shelf,
    Tap,
    Told,
    World,
    answer,
    ask,
    dense_answer,
    noted,
    question,
    require_true,
    require_whole,
    virtually,
    world,
)

STEPWISE = ["concord", "concord-nosystem", "concord-nocomm", "dragon", "drdg-tw"]
METHODS = [*STEPWISE, "drdg-sw"]
IN_TIME = LONGEST_WAIT + 15.0
"""Virtual seconds that any of these answers may take: one cloud is waited for in vain once, and it does not say goodbye."""

Sent = Generator[Any, Any, None]


def wrong(name: str, spoil: Callable[[int, Message], "list[Message] | None"], *, deaf: bool = False) -> type:
    """The cloud half of a method, of whose messages each is replaced: spoil(its number, it); None: nothing more is sent.

    deaf: what the device says does not reach it either.
    """

    class Wrong(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            half, number, muted, effect, told = super().run(), 0, False, None, None
            effect = next(half)
            while True:
                if isinstance(effect, Send):
                    messages = None if muted else spoil(number, effect.message)
                    muted, number = messages is None, number + 1
                    for message in messages or []:
                        yield Send(message)
                    effect = half.send(None)
                    continue
                if muted and isinstance(effect, Receive):
                    while True:
                        yield Receive()
                told = yield effect
                effect = half.send(told)

    return Wrong


def at(place: int, *messages: Message) -> Callable[[int, Message], list[Message]]:
    """These in place of the message of this number; every other one as it is."""
    return lambda number, message: list(messages) if number == place else [message]


def changed(place: int, **fields: Callable[[Any], Any]) -> Callable[[int, Message], list[Message]]:
    """Other values in these fields of the messages from this number on."""

    def spoil(number: int, message: Message) -> list[Message]:
        if number < place:
            return [message]
        return [msgspec.structs.replace(message, **{key: make(getattr(message, key)) for key, make in fields.items()})]

    return spoil


def silent_from(place: int) -> Callable[[int, Message], "list[Message] | None"]:
    return lambda number, message: None if number >= place else [message]


def require_in_time(there: World, name: str, told: Told, tokens: int = 12, *, honest: bool = True) -> None:
    """honest: what is well-formed of the cloud's messages is also true."""
    request = question(name, tokens=tokens)
    require_whole(there, request, told)
    if honest and name in STEPWISE:
        require_true(there, request, told)
    assert told.seconds < IN_TIME, told.seconds


def told_by(name: str, spoil: Any, tokens: int = 12, seed: int = 4) -> tuple[World, Told]:
    there = world(seed, halves={0: {name: wrong(name, spoil)}})
    return there, answer(there, question(name, tokens=tokens))


# Silence


@pytest.mark.parametrize("place", [0, 1, 2, 5])
@pytest.mark.parametrize("name", METHODS)
def test_a_cloud_that_falls_silent(name: str, place: int) -> None:
    """Before it says what it found (0), before its first evidence (1), and later."""
    there, told = told_by(name, silent_from(place))
    require_in_time(there, name, told)
    if place <= 1:
        assert set(told.kinds) <= {Kind.LOCAL, Kind.CERTAIN}
    assert told.kinds[-1] is Kind.LOCAL


@pytest.mark.parametrize("name", ["concord", "concord-nosystem"])
def test_a_cloud_that_answers_no_question(name: str) -> None:
    """Whoever always waits gives it up; else a step that needs the answer waits as long as for evidence, and goes on."""

    def spoil(number: int, message: Message) -> list[Message]:
        return [] if isinstance(message, m.Supplement) else [message]

    there = world(4, halves={0: {name: wrong(name, spoil)}})
    request = question(name, tokens=12, first=1, chunk=1)
    told = answer(there, request)
    require_true(there, request, told)
    assert Kind.LOCAL in told.kinds
    if name == "concord":
        assert told.seconds < 2.0
    else:
        assert told.seconds < IN_TIME
        assert told.kinds[-1] is Kind.LOCAL


@pytest.mark.parametrize("name", METHODS)
def test_a_cloud_that_is_slow(name: str) -> None:
    """A second a step: every answer ends; only those that wait for every step pay for it."""
    there = world(4, verify_s=1.0)
    request = question(name, tokens=12)
    told = answer(there, request)
    require_whole(there, request, told)
    if name in STEPWISE:
        require_true(there, request, told)
    assert told.seconds < (12.0 if name in ("concord", "concord-nocomm") else 40.0)


def test_debt_bounds_what_a_dead_cloud_costs() -> None:
    """Q waits, then none: three times the patience that was learned, and the wait for the last word."""
    there, told = told_by("concord", silent_from(1), tokens=64)
    assert told.result.answer.seconds < 3 * 1.0 + 64 * 0.016 + 0.2
    require_in_time(there, "concord", told, tokens=64)


@pytest.mark.medium
@pytest.mark.parametrize(("realign", "ahead"), [("soft", 1), ("hard", 8)])
def test_a_cloud_that_stalls_is_not_overrun_by_an_honest_device(realign: str, ahead: int) -> None:
    """Passes of two seconds, as when others are served: the session must not end, and with it the connection."""

    async def run() -> None:
        there = world(3, verify_s=2.0, draft_s=0.01, end=-99.0, masses=(0.5, 0.5))
        async with there.ends() as (device, connections):
            request = question("concord", tokens=400, timeout=0.001, realign=realign, ahead=ahead)
            told = await ask(there, device, connections, request)
            require_true(there, request, told)
            assert told.result.closed is not None, "the cloud takes part to the end"
            assert connections[0]._broken is None

    virtually(run())


# Messages that are wrong


def other_step(by: int) -> dict[str, Callable[[int], int]]:
    return {"step": lambda step: step + by}


FAULTS: dict[str, Callable[[int, Message], "list[Message] | None"]] = {
    "weight that is no number": at(0, m.Retrieved(2, math.nan, 0)),
    "weight beyond all numbers": at(0, m.Retrieved(2, math.inf, 0)),
    "weight twice": at(1, m.Retrieved(2, 0.0, 0)),
    "evidence before the weight": at(0, m.Evidence(0, 0, bytes(40)), m.Retrieved(2, 0.0, 0)),
    "an epoch to come": changed(3, epoch=lambda epoch: epoch + 1),
    "epochs to come for ever": lambda number, message: [
        m.Evidence(message.epoch + 7, message.step, message.payload) if isinstance(message, m.Evidence) else message
    ],
    "a step left out": changed(3, **other_step(1)),
    "a step again": changed(3, **other_step(-1)),
    "the steps of the end": changed(1, **other_step(1000)),
    "no bytes": changed(2, payload=lambda payload: b""),
    "a byte too many": changed(2, payload=lambda payload: payload + b"\0"),
    "a byte too few": changed(2, payload=lambda payload: payload[:-1]),
    "ones": changed(2, payload=lambda payload: b"\xff" * len(payload)),
    "noise": changed(2, payload=lambda payload: bytes((37 * place + 11) % 256 for place in range(len(payload)))),
    "no scores": changed(2, payload=lambda payload: bytes(4)),
    "a token twice": changed(2, payload=lambda payload: bytes([2, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    "another message": at(2, m.Tokens(b"\0")),
    "a verdict": at(2, m.Verdict(0, 0, b"")),
    "passages": at(2, m.Passages(("public",))),
    "an answer to no question": at(2, m.Supplement(0, 0, b"")),
    "a large payload": at(2, m.Evidence(0, 1, bytes(2**20))),
}


@pytest.mark.core(14)
@pytest.mark.parametrize("spoil", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("name", METHODS)
def test_a_cloud_that_is_wrong(name: str, spoil: Any) -> None:
    """What was right of it before counts; then the device goes on alone. (What is dense is dense: `require_true`.)"""
    there, told = told_by(name, spoil)
    dense = name not in ("concord", "concord-nosystem")
    require_in_time(there, name, told, honest=not dense or spoil is not FAULTS["noise"])  # any bytes are some scores there


@pytest.mark.parametrize("name", ["concord", "concord-nosystem"])
@pytest.mark.parametrize(
    "fields",
    [
        other_step(1),
        {"epoch": lambda epoch: epoch + 1},
        {"payload": lambda payload: b""},
        {"payload": lambda payload: b"\xff" * 9},
        {"payload": lambda payload: payload + b"\0"},
    ],
)
def test_a_supplement_that_is_wrong(name: str, fields: dict[str, Any]) -> None:
    seen = []

    def spoil(number: int, message: Message) -> list[Message]:
        if not isinstance(message, m.Supplement):
            return [message]
        seen.append(number)
        return changed(number, **fields)(number, message)

    there = world(4, halves={0: {name: wrong(name, spoil)}})
    request = question(name, tokens=12, first=1)
    told = answer(there, request)
    assert len(seen) == 1, "after a wrong one nothing more is asked"
    require_true(there, request, told)
    assert told.seconds < IN_TIME
    assert told.kinds[-1] is Kind.LOCAL


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("place", [1, 4])
def test_a_cloud_that_fails_on_the_way(name: str, place: int) -> None:
    """A Failure of the session: the rest is local."""

    def spoil(number: int, message: Message) -> list[Message]:
        if number == place:
            raise UsageError("the model caught fire")
        return [message]

    there, told = told_by(name, spoil)
    require_in_time(there, name, told)
    assert told.kinds[-1] is Kind.LOCAL


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_cloud_that_ends_too_early(name: str, place: int) -> None:
    class Ending(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            sent = 0
            half: Generator[Effect, Any, Any] = super().run()
            effect = next(half)
            while sent < place:
                sent += isinstance(effect, Send)
                effect = half.send((yield effect))
            return Finish.END

    there = world(4, halves={0: {name: Ending}})
    told = answer(there, question(name, tokens=12))
    require_in_time(there, name, told)
    assert told.kinds[-1] is Kind.LOCAL


def test_a_cloud_that_refuses_says_why() -> None:
    """Nothing can be mixed at all: better its sentence than an answer of other worth than was asked for."""

    async def run() -> None:
        there = world(4)
        async with there.ends() as (device, connections):
            with pytest.raises(RemoteError, match="max-tokens must be 1 to 4096 here, not 5000"):
                await device.generate(question("concord", tokens=5000), connections)
            assert (await ask(there, device, connections, question("concord"))).steps

    virtually(run())


# Floods


def flood(make: Callable[[m.Evidence], Message | None], name: str) -> type:
    """After the third evidence it sends more and more of what `make` gives, as fast as the link takes it."""

    class Flooding(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            sent: list[m.Evidence] = []
            half = noted(super().run(), lambda effect: keep(effect, sent))
            effect = next(half)
            while len(sent) < 3:
                effect = half.send((yield effect))
            last = sent[-1]
            while (more := make(last)) is not None:
                yield Send(more)
                last = more if isinstance(more, m.Evidence) else last
            while True:
                yield Receive()

    def keep(effect: Effect, sent: list[m.Evidence]) -> None:
        if isinstance(effect, Send) and isinstance(effect.message, m.Evidence):
            sent.append(effect.message)

    return Flooding


FLOODS: dict[str, Callable[[m.Evidence], Message]] = {
    "the next steps": lambda last: m.Evidence(last.epoch, last.step + 1, last.payload),
    "an old epoch": lambda last: m.Evidence(99, 0, last.payload),
    "supplements": lambda last: m.Supplement(0, 0, b""),
}


@pytest.mark.core(2)
@pytest.mark.parametrize("make", FLOODS.values(), ids=FLOODS)
@pytest.mark.parametrize("name", METHODS)
def test_a_cloud_that_floods(name: str, make: Any) -> None:
    there = world(4, halves={0: {name: flood(make, name)}}, links=["rtt=20ms,up=1Mbit,down=100kbit,handshakes=0"])
    request = question(name, tokens=12)
    told = answer(there, request)
    require_whole(there, request, told)
    assert told.seconds < IN_TIME


# Links that break


def cutting(there: World, place: int, end: int = 0) -> list[Crossed]:
    """Cut the first link to a cloud before the frame of this number, counted from the first of the first session."""
    frames: list[Crossed] = []

    def act(crossed: Crossed) -> bool:
        return crossed.session > 0 and len([one for one in frames if one.session]) == place

    there.wrap = lambda transport, cloud, number: Tap(transport, frames, act) if (cloud, number) == (end, 0) else transport
    return frames


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


# Two clouds, of which one is at fault


BROKEN = {
    "silent from the start": silent_from(0),
    "silent at the first evidence": silent_from(1),
    "silent later": silent_from(4),
    **{name: FAULTS[name] for name in ("weight that is no number", "a step left out", "ones", "a verdict")},
}


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


def test_a_lost_cloud_leaves_no_session_behind() -> None:
    """Its session is cancelled at the end, though it was not heard any more: the next question finds room."""

    async def run() -> None:
        there = world(4, 2, halves={0: {"concord": wrong("concord", FAULTS["ones"])}})
        async with there.ends() as (device, connections):
            for number in range(1, 12):  # a connection has room for eight
                await device.generate(question("concord", tokens=3), connections)
                assert [connection.wire.life(number) for connection in connections] == [Life.ENDED] * 2

    virtually(run())


def test_options_that_cross_are_those_of_the_device() -> None:
    """The cloud's half is built from `Open`: a W of its own would make it wait where the device does not."""
    there = world(4)
    request = replace(question("concord"), options=WITH_DOCUMENTS["concord"].options_from({"ahead": 1, "first": 3}))
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames)
    answer(there, request)
    opened = next(one.message for one in frames if isinstance(one.message, m.Open))
    assert (opened.options["ahead"], opened.options["first"]) == (1, 3)
