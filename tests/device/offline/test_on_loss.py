"""What becomes of an answer whose link is lost, as its request says: it waits, goes on alone, or ends (toys, virtual time)."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from antiphon.config import Request
from antiphon.core.distributions import Probs
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import LinkError, ProtocolError, UsageError
from antiphon.methods import ALL_METHODS, WITHOUT_DOCUMENTS
from antiphon.methods.base import DeviceSide
from antiphon.methods.effects import Emit, Emitted, Finish, Half, Kind, Provisional
from antiphon.methods.speculative.cloud_only import CLOUD
from antiphon.wire import messages as m
from device.offline import losses
from device.offline.losses import ENDLESS, Told
from device.resume.cuts import OTHERS, TOYS, another, asked, assert_same, frames, gone, written
from support.broken_links import Network, boundaries, broken


def alone(side: DeviceSide, options: Any, *, keep: bool) -> Half:
    """Writes the winners of the races over the device's own distributions."""
    transcript, drafter, numbers = side.transcript, side.drafter, list[int]()
    assert drafter is not None
    while transcript.remaining > len(numbers) and transcript.finish is None:
        found = yield from drafter.distribution(numbers)
        assert found is not None
        probs: Probs = found[1]
        race = side.chance.race(transcript.position + len(numbers), side.common.cloud_ids[: side.common.size])
        number = race.winner(probs)
        if keep:
            transcript.commit(number)
            drafter.commit([number])
            yield Emit((Emitted(number, Kind.LOCAL),), exact=False)
            continue
        numbers.append(number)
        yield Provisional(tuple(numbers))
        if transcript.is_end(number):
            return Finish.END
    return transcript.finish or Finish.LENGTH


class Streamed(CLOUD.device):  # type: ignore[misc, name-defined]
    """The device's half of `cloud`, which tells the drafter what it commits."""

    def run(self) -> Half:
        half, before = super().run(), self._side.transcript.position
        answer = None
        while True:
            try:
                effect = half.send(answer)
            except StopIteration as stop:
                finish: Finish = stop.value
                return finish
            self._side.drafter.commit(self._side.transcript.numbers[before:])
            before = self._side.transcript.position
            answer = yield effect


METHODS = {**WITHOUT_DOCUMENTS, "cloud": replace(CLOUD, drafts=True, device=Streamed, alone=alone)}
"""`cloud`, whose device goes on alone; what it writes is no draft, but settled in the same way."""


SLOW = {"costs": (lambda width, length: 0.05, lambda width, length: 0.033)}
"""A device that does not write all of it before the cloud can be back."""


def request(on_loss: str, on_return: str = "verify", **more: Any) -> Request:
    return replace(asked("cloud", **{"tokens": 24, **more}), sampling=ENDLESS, on_loss=on_loss, on_return=on_return)


told = partial(losses.told, methods=METHODS)


def length(what: Request) -> int:
    return frames(written(what, methods=METHODS)[1])


def test_what_is_written_alone_is_shown_and_then_settled() -> None:
    """At every boundary: the very text of an unbroken link, and what was written meanwhile behind what stood."""
    whole = told(request("wait"))
    assert whole.result is not None
    provisional = revised = 0
    for cut in boundaries(length(request("wait"))):
        seen = told(request("local"), cut, away=0.05)
        assert seen.result is not None
        assert_same(seen.result, whole.result)
        assert (seen.settled, seen.provisional) == (whole.settled, "")
        assert seen.result.exact
        provisional += seen.most != ""
        figures = seen.result.as_json()
        assert bool(figures["provisional"]) == bool(seen.result.answer.unsettled.written)
        revised += figures["revised"] > 0
    assert provisional > 20
    assert revised > 10


def test_it_is_written_to_its_end_and_then_the_cloud_is_waited_for() -> None:
    what, cut = request("local"), (12, "before")
    whole = told(what)
    assert whole.result is not None
    seen = told(what, cut, away=20.0)
    assert seen.result is not None
    assert seen.result.answer.unsettled.written >= 24 - 12
    assert seen.result.token_ids == whole.result.token_ids
    assert 20.0 < seen.since < 24.0


@pytest.mark.parametrize("mend_seconds", [0.0, 3.0, 30.0])
def test_a_cloud_that_does_not_come_back_while_the_device_writes_and_as_long_as_ever_behind_it(mend_seconds: float) -> None:
    seen = told(request("local"), (12, "before"), mend_seconds=mend_seconds)
    assert isinstance(seen.error, LinkError)
    assert re_sentence(seen.error, mend_seconds)
    assert mend_seconds <= seen.since <= mend_seconds + 1.0
    assert seen.provisional == seen.most != ""


def re_sentence(error: LinkError, seconds: float) -> bool:
    begin = f"the other end closed the link, and it did not come back within {seconds:g} s after the device had written alone: "
    return str(error).startswith(begin) and str(error).endswith(" behind them are not verified")


def test_a_cloud_is_looked_for_as_long_as_the_device_writes() -> None:
    """Longer than it is looked for where nobody writes."""
    slow = {"costs": (lambda width, length: 1.0, SLOW["costs"][1])}
    whole = told(request("wait"))
    seen = told(request("local"), (12, "before"), away=9.0, mend_seconds=3.0, **slow)
    assert seen.result is not None
    assert whole.result is not None
    assert seen.result.token_ids == whole.result.token_ids
    assert 9.0 < seen.since < 15.0


def test_what_is_kept_stands() -> None:
    """It is marked, the answer says that it is not exact, and the cloud goes on behind it."""
    whole = told(request("wait"))
    assert whole.result is not None
    seen = told(request("local", "keep"), (12, "before"), away=0.02, **SLOW)
    assert seen.result is not None
    kinds = seen.result.answer.kinds
    assert 0 < kinds[Kind.LOCAL] < 24 - 8
    assert kinds[Kind.STREAMED] == seen.result.tokens - kinds[Kind.LOCAL]
    assert seen.kinds[-1] is Kind.STREAMED
    assert seen.most == ""
    assert (seen.result.exact, whole.result.exact) == (False, True)
    figures = seen.result.as_json()
    assert (figures["kept"], figures["provisional"]) == (kinds[Kind.LOCAL], 0)
    assert seen.settled == seen.result.text
    stood = seen.kinds.index(Kind.LOCAL)
    assert seen.result.token_ids[:stood] == whole.result.token_ids[:stood]


def test_what_is_kept_may_be_all_there_is() -> None:
    """The cloud does not come back, and nobody waits for it."""
    seen = told(request("local", "keep"), (12, "before"))
    assert seen.result is not None
    assert seen.result.finish_reason in (Finish.LENGTH, Finish.END)
    assert seen.since < 1.0
    assert not seen.result.exact


def test_a_stop_string_ends_the_writing_and_the_answer_only_where_it_stands() -> None:
    whole = told(request("local"), (12, "before"))
    stop = whole.most[5:7]
    assert stop not in whole.settled
    seen = told(request("local", stop=(stop,)), (12, "before"))
    assert seen.provisional == whole.most[: whole.most.index(stop)]
    back = told(request("local", stop=(stop,)), (12, "before"), away=2.0)
    waited = told(request("wait", stop=(stop,)))
    assert back.result is not None
    assert waited.result is not None
    assert_same(back.result, waited.result)
    kept = told(request("local", "keep", stop=(stop,)), (12, "before"))
    assert kept.result is not None
    assert kept.result.finish_reason is Finish.STOP
    assert kept.settled == kept.result.text
    assert not kept.settled.endswith(stop)


def test_a_lost_link_ends_an_answer_that_is_to_fail() -> None:
    """At once, with what stands shown; where only the cloud's last word is missing it is over anyway."""
    whole, failed = told(request("wait")), 0
    assert whole.result is not None
    for cut in boundaries(length(request("wait"))):
        seen = told(request("fail"), cut, away=0.05)
        if seen.result is None:
            failed += 1
            assert isinstance(seen.error, LinkError)
            assert seen.since < 0.05
            assert whole.settled.startswith(seen.settled.rstrip("\N{REPLACEMENT CHARACTER}"))
        else:
            assert_same(seen.result, whole.result)
    assert failed > 40


def test_what_was_held_back_is_shown_where_it_fails() -> None:
    """It could have been the beginning of a stop string."""
    stop = f"{told(request('wait')).settled[3]}\0"
    for cut in boundaries(20):
        assert told(request("fail", stop=(stop,)), cut).settled == told(request("fail"), cut).settled


def test_a_link_that_was_lost_before_is_made_anew_also_where_a_loss_is_to_fail() -> None:
    async def test(device: Device, connection: Connection, network: Network) -> Result:
        network.cut()
        await asyncio.sleep(1.0)
        return await device.generate(request("fail"), connection)

    assert broken(test, methods=METHODS).tokens > 0


@pytest.mark.parametrize("keeps", ["verify", "keep"])
@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_another_model_does_not_go_on_with_the_answer(model: Any, keeps: str) -> None:
    seen = told(request("local", keeps), (12, "before"), away=0.01, prepare=another(model), **SLOW)
    assert isinstance(seen.error, ProtocolError)
    assert str(seen.error) == f"the cloud serves {model.name} now, so the answer cannot go on: ask again"


def test_an_answer_that_begins_while_the_cloud_is_away_is_begun_alone() -> None:
    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, str]:
        network.cut()
        gone(network)
        asyncio.get_running_loop().call_later(5.0, setattr, network, "refuse", False)
        await asyncio.sleep(0.1)
        seen = Told(network)
        return await device.generate(request("local"), connection, seen.show), seen.most

    result, most = broken(test, methods=METHODS, models=lambda: TOYS)
    whole = told(request("wait"))
    assert whole.result is not None
    assert result.token_ids == whole.result.token_ids
    assert len(most) > 10


def test_a_device_that_is_left_leaves_nothing_behind() -> None:
    """Who reads along goes while it writes alone: nobody dials any more."""

    async def test(device: Device, connection: Connection, network: Network) -> None:
        network.arm((12, "before"))
        gone(network)
        stream = device.stream(request("local"))
        device.clouds._connections["here"] = connection
        device.clouds.addresses = ("here",)
        async for piece in stream:
            if piece.provisional:
                break
        await stream.aclose()
        dials = network.dials
        await asyncio.sleep(60.0)
        assert network.dials == dials

    broken(test, methods=METHODS, models=lambda: TOYS)


def test_what_a_lost_session_sent_is_not_sent_again() -> None:
    """What stands goes up with the opening, and no more of it."""
    whole, network = written(request("local"), (12, "before"), methods=METHODS)
    opened = [envelope.message for envelope, _ in network.device_frames if isinstance(envelope.message, m.Open)]
    assert [len(one.committed) for one in opened[:1]] == [0]
    assert 0 < len(opened[-1].committed) < whole.tokens


@pytest.mark.parametrize(
    ("method", "on_loss", "sentence"),
    [
        ("dssd", "local", "the method dssd cannot write on alone: ask for on-loss wait or fail, or use coupled"),
        ("cloud", "local", "the method cloud cannot write on alone"),
        ("device", "fail", "the method device asks no cloud: leave on-loss out"),
        ("concord", "local", "the method concord goes on without a cloud that is lost in any case: leave on-loss out"),
    ],
)
def test_what_a_method_cannot_is_refused_before_anything_leaves(method: str, on_loss: str, sentence: str) -> None:
    what = Request("the ", method, ALL_METHODS[method].options(), on_loss=on_loss)

    async def run() -> None:
        await Device(TOYS[0]).generate(what)

    with pytest.raises(UsageError, match=sentence):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"on_loss": "cry"}, "on-loss must be wait, local or fail, not 'cry'"),
        ({"on_loss": "local", "on_return": "throw"}, "on-return must be verify or keep, not 'throw'"),
        ({"on_return": "keep"}, "on-return keep is for what on-loss local writes: give both, or neither"),
    ],
)
def test_requests_that_cannot_be(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Request("the ", **change)
