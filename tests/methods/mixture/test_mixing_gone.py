"""A cloud that does not come back, or not as the one that it was, is out for the rest of the answer."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from antiphon.config import Request
from antiphon.device.sessions import IN_VAIN
from antiphon.errors import LinkError
from antiphon.methods import ALL_METHODS
from antiphon.methods.base import OnLoss
from antiphon.methods.effects import Half, Kind, Receive, Send
from antiphon.models.base import public_name
from antiphon.transport.frames import Transport
from antiphon.wire import messages as m
from support.lost_clouds import TOKENS, asked, consulted, cutting, endless, in_sessions, openings
from support.mixtures import Crossed, Reader, Shelf, Tap, Told, World, answer, ask, require_true, require_whole, virtually

REJOINING = [name for name, method in ALL_METHODS.items() if method.on_loss is OnLoss.REJOIN]


def without_a_second_dial(there: World, request: Request, seconds: float = 600.0) -> Told:
    async def nobody() -> Transport:
        raise LinkError("nobody answers")

    async def run() -> Told:
        async with there.ends() as (device, connections):
            connections[0]._dial = nobody
            told = await ask(there, device, connections, request)
            assert not any("Sessions" in str(task.get_coro()) for task in asyncio.all_tasks()), "nobody looks for it any more"
            return told

    return virtually(run(), seconds)


@pytest.mark.parametrize("mend_seconds", [0.0, 0.2, 30.0])
@pytest.mark.parametrize("name", REJOINING)
def test_a_cloud_that_never_comes_back(name: str, mend_seconds: float) -> None:
    """The rest is the device's own, and nobody waits for the cloud at the end."""
    cutting(there := endless(mend_seconds=mend_seconds), 12)
    told = without_a_second_dial(there, asked(name))
    require_true(there, asked(name), told)
    assert set(told.kinds[-10:]) == {Kind.LOCAL}
    cutting(there, 12)
    there.device_methods = {name: replace(ALL_METHODS[name], on_loss=OnLoss.DROP)}
    dropped = answer(there, asked(name))
    assert (dropped.numbers, dropped.kinds) == (told.numbers, told.kinds), "as one that nobody looks for"
    assert told.result.answer.resumed == 0
    assert told.result.closed is None
    assert told.seconds < 2.0


def test_a_cloud_that_is_another_one_now() -> None:
    """Another model speaks for other scores: the answer goes on without it."""

    async def run() -> Told:
        there = endless()
        links = cutting(there, 12)
        async with there.ends() as (device, connections):
            there.served[0].model = (other := Reader(99, end=-99.0))
            connections[0].welcome = replace_model(connections[0].welcome, public_name(there.clouds[0].model))
            told = await ask(there, device, connections, asked())
            assert connections[0].welcome.model == public_name(other)
            assert len(openings(links)) == 1
            return told

    told = virtually(run())
    assert len(told.numbers) == TOKENS
    assert told.kinds[-1] is Kind.LOCAL
    assert told.result.answer.resumed == 0


def replace_model(welcome: m.Welcome, model: str) -> m.Welcome:
    fields = {name: getattr(welcome, name) for name in welcome.__struct_fields__}
    return m.Welcome(**{**fields, "model": model})


def test_a_cloud_that_found_other_passages() -> None:
    """The weights of an answer are those of its beginning."""
    there = endless()
    links = cutting(there, 12)

    async def run() -> Told:
        async with there.ends() as (device, connections):
            library = there.served[0].library

            class Twice:
                """Other passages at the second question."""

                scorer, seen = library.scorer, 0

                def search(self, text: str, count: int) -> Any:
                    Twice.seen += 1
                    return (library if Twice.seen == 1 else Shelf(("another", 3.0))).search(text, count)

            there.served[0].library = Twice()  # type: ignore[assignment]
            return await ask(there, device, connections, asked())

    told = virtually(run())
    assert len(openings(links)) == 2
    require_true(there, asked(), told)
    assert set(told.kinds[-10:]) == {Kind.LOCAL}


def test_a_cloud_that_was_wrong_stays_out_though_its_link_breaks() -> None:
    class Wrong(ALL_METHODS["concord"].cloud):  # type: ignore[misc,name-defined]
        """In its first session."""

        begun = 0

        def run(self) -> Half:
            Wrong.begun += 1
            if Wrong.begun > 1:
                yield from super().run()
            yield Send(self._mixing.retrieved())
            while True:
                yield Send(m.Supplement(7, 7, b""))  # the second one breaks the link
                yield Receive(0.0)

    there = endless(2, halves={0: {"concord": Wrong}})
    cutting(there, 4)
    told = answer(there, asked())
    require_true(there, asked(), told)
    assert Wrong.begun == 2
    parts = [step.ends for step in told.steps]
    assert set(parts[parts.index((1,)) :]) == {(1,)}


def test_a_cloud_that_is_lost_again_and_again_is_given_up() -> None:
    """Each link breaks before the first evidence."""
    there = endless()
    links = cutting(there, *[3] * 50)
    request = asked("concord", tokens=600)
    told = answer(there, request)
    require_true(there, request, told)
    assert len(links) == IN_VAIN
    assert not consulted(told)[-1]


# Room


class Hanging(Tap):
    """A link that is cut on the device's side alone; the cloud notices so many seconds later."""

    later = 2.5

    async def close(self, reason: str = "") -> None:
        asyncio.get_running_loop().call_later(self.later, lambda: asyncio.ensure_future(super(Hanging, self).close(reason)))

    async def _pass(self, crossed: Crossed) -> None:
        if self._act is not None and self._act(crossed):
            raise LinkError("the link was cut")
        self._frames.append(crossed)


@pytest.mark.parametrize("later", [2.5, 1e9])
def test_room_that_the_lost_session_still_has(later: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud is full until it notices the loss: it is asked again every second, for half a minute at most."""
    monkeypatch.setattr(Hanging, "later", later)
    there, links = endless(), list[list[Crossed]]()
    request = asked("concord", tokens=400 if later < 10 else 2500)
    there.clouds[0].model.context_length = there.device.model.context_length = request.max_tokens + 100

    def wrap(transport: Transport, cloud: int, number: int) -> Transport:
        frames: list[Crossed] = []
        links.append(frames)
        return Hanging(transport, frames, lambda crossed: number == 0 and len(in_sessions(frames)) == 12)

    there.wrap = wrap
    told = answer(there, request)
    require_whole(there, request, told)
    refusals = [one for one in links[1] if isinstance(one.message, m.Failure)]
    assert {one.message.code for one in refusals} == {"busy"}
    if later < 10:
        assert 1 < len(refusals) < 5
        assert all(consulted(told)[-20:])
    else:
        assert 28 < len(refusals) < 34
        assert told.kinds[-1] is Kind.LOCAL


# Baselines that take nobody in again


def test_drdg_sw_does_not_take_it_in_again() -> None:
    """Its clouds write whole answers of their own, which no committed tokens begin."""
    links = cutting(there := endless(), 6)
    told = answer(there, asked("drdg-sw"))
    require_whole(there, asked("drdg-sw"), told)
    assert len(links) == 1
    assert told.kinds[-1] is Kind.LOCAL
