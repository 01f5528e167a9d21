"""The device survives clouds that are silent, slow, wrong, flooding, cut off: answers end, in time, and say what was local."""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import pytest

from antiphon.errors import RemoteError, UsageError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.effects import Effect, Finish, Half, Kind, Receive, Send
from antiphon.wire import messages as m
from antiphon.wire.messages import Message
from antiphon.wire.session import Life
from methods.mixture.wrong_clouds import (
    FAULTS,
    IN_TIME,
    METHODS,
    STEPWISE,
    changed,
    other_step,
    require_in_time,
    silent_from,
    wrong,
)
from support.mixtures import (
    Crossed,
    Tap,
    Told,
    World,
    answer,
    ask,
    noted,
    question,
    require_true,
    require_whole,
    virtually,
    world,
)

Sent = Generator[Any, Any, None]


def told_by(name: str, spoil: Any, tokens: int = 12, seed: int = 4) -> tuple[World, Told]:
    there = world(seed, halves={0: {name: wrong(name, spoil)}})
    return there, answer(there, question(name, tokens=tokens))


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
