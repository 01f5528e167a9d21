"""Answers go on after a lost link: whatever is cut and wherever, they are complete, and the very same."""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.cloud.service import Cloud
from antiphon.config import Limits, Request, SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection, connect
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError, LinkError, ProtocolError, RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Finish, Half
from antiphon.methods.speculative.cloud_only import CLOUD, CloudOnlyCloud
from antiphon.methods.speculative.draft_length import Auto
from antiphon.methods.verifier import REPLAY_WIDTH, Verifier
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.options import NoOptions
from antiphon.vocabulary import identity
from antiphon.wire import messages as m
from antiphon.wire.packing import Reader
from antiphon.wire.session import Traffic, TrafficCounter
from antiphon_lab.links.virtual_time import VirtualWorker
from support.broken_links import Cut, End, Network, boundaries, broken, random_delay, verify_cost
from support.examples import examples
from support.links import linked, raw_session, request

TOYS = named_toy("toy-device"), named_toy("toy-cloud")
WITH_CLOUD = [name for name, method in WITHOUT_DOCUMENTS.items() if method.cloud is not None]
RATIO = ["dsd", "tslt", "tslt-tree", "dssd", "xcosd", "xcosd-e"]
HANDSHAKE = 4
"""Frames of a handshake with a cloud that knows the common vocabulary: Hello, Welcome, Common, CommonReady."""


def asked(name: str, **more: Any) -> Request:
    """A request with options that leave nothing to the clock."""
    options = WITHOUT_DOCUMENTS[name].options_from(
        {"draft_length": 3, "candidates": 2, "expansion": "2,2", **more.pop("options", {})}
    )
    return replace(request(name, **{"tokens": 10, **more}), options=options)


def written(what: Request, *cuts: Cut, **link: Any) -> tuple[Result, Network]:
    """An answer whose link is cut there."""

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Network]:
        network.arm(*cuts)
        return await device.generate(what, connection), network

    return broken(test, **{"models": lambda: TOYS, **link})


def frames(network: Network) -> int:
    return len(network.log)


def assert_same(result: Result, whole: Result) -> None:
    """The same answer in every respect that does not tell of how it crossed the link."""
    assert result.token_ids == whole.token_ids
    assert result.answer.text == whole.answer.text
    assert result.finish_reason == whole.finish_reason
    assert result.answer.committed == whole.answer.committed
    assert result.prompt_tokens == whole.prompt_tokens


def assert_cut_anywhere(what: Request, **link: Any) -> Counter[int]:
    """Cut at every boundary; how often it went on how many times."""
    whole, network = written(what, **link)
    resumed: Counter[int] = Counter()
    for cut in boundaries(frames(network)):
        result, _ = written(what, cut, **link)
        assert_same(result, whole)
        assert result.answer.kinds == whole.answer.kinds or what.method == "coupled"  # ahead: a bonus may become a draft
        resumed[result.answer.resumed] += 1
    return resumed


# One cut, anywhere.


@pytest.mark.core(2)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cut_at_every_boundary(name: str) -> None:
    """Only where the last token had come already is there nothing left to go on with."""
    resumed = assert_cut_anywhere(asked(name, tokens=8))
    assert set(resumed) == {0, 1}
    assert resumed[1] > 3 * resumed[0]


@pytest.mark.core(2)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cloud_that_stops_says_goodbye_at_any_time(name: str) -> None:
    """Also while the device drafts, and would send what nobody may send any more."""
    what = asked(name, tokens=8)
    whole, network = written(what)
    for number in range(1, frames(network) + 1):
        assert_same(written(what, (number, "goodbye"))[0], whole)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["coupled", "coupled-tree"])
def test_coupled_answers_stay_those_of_cloud(name: str) -> None:
    """Also with automatic lengths, which another clock would choose otherwise."""
    what = asked(name, seed=2, options={"draft_length": 0})
    network = written(what)[1]
    theirs, _ = written(replace(what, method="cloud", options=NoOptions()))
    for cut in boundaries(frames(network)):
        assert written(what, cut)[0].token_ids == theirs.token_ids


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=0.8, top_p=0.9, repetition_penalty=1.3, presence_penalty=0.3, frequency_penalty=0.1),
    ],
    ids=["greedy", "penalties"],
)
@pytest.mark.parametrize("name", WITH_CLOUD)
def test_a_cut_at_every_boundary_of_longer_answers(name: str, sampling: SamplingParams) -> None:
    assert_cut_anywhere(replace(asked(name, tokens=20, seed=2), sampling=sampling))


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "gr", "tr"])
def test_with_automatic_lengths_the_answer_is_complete(name: str) -> None:
    """The lengths hang on the clock, so the tokens may be others; at temperature 0 they may not (but for `tr`, a draw)."""
    for heat in (0.0, 1.0):
        what = asked(name, tokens=8, temperature=heat, options={"draft_length": 0, "candidates": 0})
        whole, network = written(what)
        for cut in boundaries(frames(network))[::2]:
            result, _ = written(what, cut)
            assert result.finish_reason == Finish.END or result.tokens == 8
            assert heat > 0 or result.token_ids == whole.token_ids


class Timeless(Auto):
    """Chooses by what the drafts are like and by how rounds went, but not by the clock, which a cut changes."""

    def __init__(self) -> None:
        super().__init__()
        self.fallen = 0

    def more(self, drafts: Sequence[Drafted]) -> bool:
        return len(drafts) < 1 + (self.fallen + int(10 * sum(draft.entropy for draft in drafts))) % 4

    def tested(self, stood: Sequence[Drafted], next: Drafted | None, follows: bool) -> None:
        self.fallen += next is not None and not follows


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "coupled"])
def test_automatic_lengths_go_on_with_what_they_learned(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very text, at every boundary: a round that was cut is done again, and the later ones are as they would have been."""
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", Timeless)
    for precision in (16, 32) if name in ("dssd", "xcosd", "xcosd-e") else (16,):
        what = asked(name, tokens=10, seed=3, options={"draft_length": 0, "candidates": 0, "precision": precision})
        whole, network = written(what)
        resumed = 0
        for cut in boundaries(frames(network)):
            result, _ = written(what, cut)
            assert_same(result, whole)
            resumed += result.answer.resumed
        assert resumed > 5


@pytest.mark.medium
@pytest.mark.parametrize("name", RATIO)
def test_the_very_text_with_default_options(name: str) -> None:
    """Also where the cloud chooses how many candidates come, and where candidates are dearer than a distribution or not."""
    for seed, options in enumerate(
        [WITHOUT_DOCUMENTS[name].options_from({"draft_length": 3, "precision": bits}) for bits in (16, 32)]
    ):
        what = replace(request(name, tokens=12, seed=seed), options=options)
        whole, network = written(what)
        for cut in boundaries(frames(network)):
            assert_same(written(what, cut)[0], whole)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("length", [0, 1, 2, 4])
@pytest.mark.parametrize("name", RATIO)
def test_the_very_text_of_more_answers(name: str, length: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", Timeless)
    given = {"draft_length": length, "candidates": seed % 3, "iterations": 2, "precision": (16, 32)[seed % 2]}
    what = asked(name, tokens=20, seed=seed, options=given)
    whole, network = written(what)
    for cut in boundaries(frames(network)):
        assert_same(written(what, cut)[0], whole)
    for first, second in zip(boundaries(frames(network))[::3], boundaries(2 * frames(network))[::7], strict=False):
        assert_same(written(what, first, second)[0], whole)


def sent(network: Network) -> list[list[m.Draft]]:
    """The drafts of the device, by session."""
    sessions: list[list[m.Draft]] = []
    for envelope, _ in network.device_frames:
        if isinstance(envelope.message, m.Open):
            sessions.append([])
        elif isinstance(envelope.message, m.Draft):
            sessions[-1].append(envelope.message)
    return sessions


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dsd", "tslt", "tslt-tree"])
def test_a_round_without_a_verdict_is_sent_again_bit_by_bit(name: str) -> None:
    """With the real automatic lengths, on a link that has become slower since."""
    what = asked(name, tokens=20, seed=1, options={"draft_length": 0})
    _, network = written(what)
    log = [envelope.message for _, _, envelope in network.log]
    verdicts = [place + 1 for place, message in enumerate(log) if isinstance(message, m.Verdict)]
    assert len(verdicts) > 4
    for place in verdicts:
        slow = iter([0.02] * place + [0.7] * 1000)
        _, network = written(what, (place, "before"), delay=lambda slow=slow: next(slow))
        before, after = sent(network)
        assert (before[-1].count, before[-1].payload) == (after[0].count, after[0].payload)


def test_a_device_without_a_model_goes_on_too() -> None:
    what = asked("cloud")

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, Result]:
        bare = Device(None, worker=device.worker)
        other = Connection(network.dial, None, device.worker)
        await other.establish()
        whole = await bare.generate(what, other)
        network.arm((6, "before"))
        result = await bare.generate(what, other)
        await other.close()
        return result, whole

    result, whole = broken(test)
    assert_same(result, whole)
    assert result.answer.resumed == 1


# More than one cut.


@pytest.mark.core(3)
@pytest.mark.parametrize("name", ["cloud", "coupled", "coupled-tree", "dssd", "xcosd-e", "u-hlm"])
@pytest.mark.parametrize("every", [HANDSHAKE + 13, HANDSHAKE + 20])
def test_cuts_again_and_again(name: str, every: int) -> None:
    """Each time there is time for a round or two; the answer does not end before."""
    endless = SamplingParams(temperature=1.0, logit_bias=((TOYS[1].vocabulary.end, -1000.0),))
    what = replace(asked(name, tokens=40), sampling=endless)
    whole, _ = written(what)
    result, network = written(what, *((place, "before") for place in range(every, 1000, every)))
    assert_same(result, whole)
    assert result.answer.resumed >= 2
    assert network.dials == 1 + result.answer.resumed


@pytest.mark.core(6)
@pytest.mark.parametrize("later", range(1, HANDSHAKE + 3))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_cut_while_the_connection_is_made_anew(later: int, when: str) -> None:
    """In its handshake it is dialled once more, and the answer counts one loss; from `Open` on it counts two."""
    what = asked("coupled", tokens=16)
    whole, _ = written(what)
    result, network = written(what, (6, "before"), (6 + later, when))
    assert_same(result, whole)
    assert network.dials == 3
    assert result.answer.resumed == (1 if later < HANDSHAKE or (later, when) == (HANDSHAKE, "before") else 2)


@pytest.mark.medium
@examples(40)
@given(
    name=st.sampled_from(WITH_CLOUD),
    cuts=st.lists(st.tuples(st.integers(1, 60), st.sampled_from(["before", "after"])), max_size=6),
    seed=st.integers(0, 1000),
    tokens=st.integers(1, 24),
    delay=st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 0.01, 0.2])),
)
def test_any_cuts_on_any_link(name: str, cuts: list[Cut], seed: int, tokens: int, delay: tuple[int, float]) -> None:
    what = asked(name, tokens=tokens, seed=seed)
    whole, _ = written(what)
    result, _ = written(what, *cuts, delay=random_delay(*delay))
    assert_same(result, whole)


# How it ends.


@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "xcosd", "tslt-tree", "cu-hlm"])
def test_a_cut_after_the_last_token(name: str) -> None:
    """Nothing is missing but `Closed`: the answer is there, and nobody is dialled."""
    what = asked(name)
    whole, network = written(what)
    last = frames(network)
    assert isinstance(network.log[-1][2].message, m.Closed)
    result, network = written(what, (last, "before"))
    assert_same(result, whole)
    assert result.closed is None
    assert (result.answer.resumed, network.dials) == (0, 1)


@cache
def with_a_stop(name: str) -> tuple[Request, Result]:
    """A request whose stop string comes in the middle of a round, and its answer."""
    whole, _ = written(asked(name, tokens=24))
    text = whole.answer.text
    what = replace(asked(name, tokens=24), stop=(text[6:8], "\0never"))
    return what, written(what)[0]


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "coupled-tree"])
def test_a_stop_string_ends_an_answer_that_was_cut(name: str) -> None:
    what, whole = with_a_stop(name)
    assert whole.finish_reason == Finish.STOP
    assert_cut_anywhere(what)


def owing(network: Network) -> int | None:
    """The frame of the last verdict, if the device then owes the last token."""
    sent = [envelope.message for _, _, envelope in network.log]
    owes = isinstance(sent[-2], m.Draft) and sent[-2].count == 0 and isinstance(sent[-3], m.Verdict)
    return len(sent) - 2 if owes else None


@pytest.mark.medium
def test_what_was_held_back_is_shown_where_only_the_end_is_lost() -> None:
    """The text's end could begin a stop string, and the device owes the end, which it drew itself, when the link goes."""
    soon = SamplingParams(temperature=1.0, logit_bias=((TOYS[1].vocabulary.end, 6.0),))
    tried = 0
    for name in ("dssd", "xcosd"):
        for seed in range(20):
            what = replace(asked(name, seed=seed), sampling=soon)
            what = replace(what, stop=(written(what)[0].answer.text[-1:] + "\0",))
            whole, network = written(what)
            if whole.finish_reason == Finish.END and whole.answer.text and (verdict := owing(network)) is not None:
                tried += 1
                assert_same(written(what, (verdict, "after"))[0], whole)
    assert tried > 3, tried


def test_what_is_shown_is_the_text_once() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> str:
        network.arm((7, "after"), (20, "before"))
        shown: list[str] = []
        await device.generate(what, connection, lambda pieces: shown.extend(piece.text for piece in pieces))
        return "".join(shown)

    assert broken(test) == whole.answer.text


def test_it_is_said_once_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    result, _ = written(asked("dssd"), (8, "before"))
    assert result.as_json()["resumed"] == 1
    assert [record.getMessage() for record in caplog.records] == [
        "antiphon: the other end closed the link; trying again for 30 s"
    ]


# Nobody comes back, or somebody else.


def refused(what: Request, *others: Request, mend_seconds: float = 30.0, prepare: Callable[[Network], None]) -> list[Any]:
    """What each answer ends with, and when after the cut, if the cloud is prepared so after the first frames."""

    async def one(device: Device, connection: Connection, each: Request) -> tuple[object, float]:
        try:
            return await device.generate(each, connection), asyncio.get_running_loop().time()
        except AntiphonError as error:
            return error, asyncio.get_running_loop().time()

    async def test(device: Device, connection: Connection, network: Network) -> list[Any]:
        prepare(network)
        network.arm((9, "before"))
        found = await asyncio.gather(*(one(device, connection, each) for each in (what, *others)))
        cut = network.cut_at
        return [(end, time - cut) for end, time in found]

    return broken(test, mend_seconds=mend_seconds)


def gone(network: Network) -> None:
    network.refuse = True


@pytest.mark.parametrize("mend_seconds", [0.0, 3.0, 30.0])
def test_a_cloud_that_does_not_come_back(mend_seconds: float) -> None:
    [(error, seconds)] = refused(asked("coupled", tokens=40), prepare=gone, mend_seconds=mend_seconds)
    assert isinstance(error, LinkError)
    assert str(error) == f"the other end closed the link, and it did not come back within {mend_seconds:g} s"
    assert 0.9 * mend_seconds - 2.0 <= seconds <= mend_seconds + 0.1


def test_it_is_not_dialled_all_the_time() -> None:
    dials: list[int] = []

    def noting(network: Network) -> None:
        gone(network)
        dials.append(network.dials)
        plain = network.dial

        async def dial() -> End:
            dials.append(network.dials)
            return await plain()

        network.dial = dial  # type: ignore[method-assign]

    refused(asked("coupled", tokens=40), prepare=noting)
    assert len(dials) <= 25


def test_a_cloud_that_comes_back_late_is_found() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    def away(network: Network) -> None:
        gone(network)
        asyncio.get_running_loop().call_later(20.0, setattr, network, "refuse", False)

    [(result, seconds)] = refused(what, prepare=away)
    assert_same(result, whole)
    assert 18.0 < seconds < 24.0


def another(model: ToyModel) -> Callable[[Network], None]:
    """The cloud is another one from the next dial on."""

    def prepare(network: Network) -> None:
        cloud = Cloud(model, None, WITHOUT_DOCUMENTS, VirtualWorker(verify_cost))
        network.cloud = lambda: cloud

    return prepare


OTHERS = {
    "another name": ToyModel(toy_pieces(order=1), seed=1, noise=0.5, sharpness=3.0, name="other"),
    "other tokens": ToyModel(toy_pieces(order=5), seed=1, noise=0.5, sharpness=3.0, name="toy-cloud"),
}


@pytest.mark.parametrize("model", OTHERS.values(), ids=OTHERS)
def test_another_model_does_not_go_on_with_the_answer(model: ToyModel) -> None:
    [(error, _)] = refused(asked("coupled", tokens=40), prepare=another(model))
    assert isinstance(error, ProtocolError)
    assert str(error) == f"the cloud serves {model.name} now, so the answer cannot go on: ask again"


def test_the_same_model_in_another_process_goes_on() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)
    [(result, _)] = refused(what, prepare=another(named_toy("toy-cloud")))
    assert_same(result, whole)


def test_who_asks_again_gets_an_answer_of_the_new_model() -> None:
    """As the sentence says; over the same connection."""
    model = OTHERS["another name"]

    async def test(device: Device, connection: Connection, network: Network) -> tuple[int, ...]:
        another(model)(network)
        network.arm((9, "before"))
        with pytest.raises(ProtocolError, match="ask again"):
            await device.generate(asked("coupled", tokens=40), connection)
        return (await device.generate(asked("coupled", tokens=10), connection)).token_ids

    async def fresh(device: Device, connection: Connection, network: Network) -> tuple[int, ...]:
        return (await device.generate(asked("coupled", tokens=10), connection)).token_ids

    assert broken(test) == broken(fresh, models=lambda: (TOYS[0], model))


def test_after_a_failure_to_come_back_a_later_answer_tries_again() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> Result:
        network.arm((9, "before"))
        network.refuse = True
        with pytest.raises(LinkError, match="did not come back within 30 s"):
            await device.generate(what, connection)
        network.refuse = False
        return await device.generate(what, connection)

    assert broken(test).token_ids == whole.token_ids


class Failing(CloudOnlyCloud):
    """A cloud half with a fault that shows whenever it runs."""

    def run(self) -> Half:
        yield from self._side.verifier.prefill()
        raise RuntimeError("a fault of the cloud")


def test_a_cloud_that_fails_at_this_answer_is_not_asked_for_ever() -> None:
    """The answer ends with its sentence, and the link stays."""

    async def test(device: Device, connection: Connection, network: Network) -> int:
        with pytest.raises(RemoteError, match="the cloud failed: its log says why"):
            await device.generate(asked("cloud"), connection)
        return network.dials

    assert broken(test, methods={**WITHOUT_DOCUMENTS, "cloud": replace(CLOUD, cloud=Failing)}) == 1


def test_a_cloud_that_is_silent_when_it_comes_back_is_given_up() -> None:
    """Somebody takes the call and never greets."""

    async def test(device: Device, connection: Connection, network: Network) -> float:
        async def dial() -> End:
            network.dials += 1
            ends = End(network), End(network)
            ends[0].other, ends[1].other = ends[1], ends[0]
            return ends[0]

        network.arm((9, "before"))
        connection._dial = dial
        with pytest.raises(LinkError, match="did not come back within 30 s"):
            await device.generate(asked("coupled", tokens=40), connection)
        return asyncio.get_running_loop().time() - network.cut_at

    assert broken(test) < 35.0


def test_a_cloud_that_never_greets_is_given_up_the_first_time_too() -> None:
    """docs/protocol.md: each end counts the seconds of a handshake by its own clock."""

    async def test(device: Device, connection: Connection, network: Network) -> float:
        async def dial() -> End:
            ends = End(network), End(network)
            ends[0].other, ends[1].other = ends[1], ends[0]
            return ends[0]

        with pytest.raises(AntiphonError):
            await Connection(dial, device.model, device.worker).establish()
        return asyncio.get_running_loop().time()

    assert broken(test) <= Limits().handshake_seconds + 1.0


def test_a_cloud_that_has_not_noticed_the_loss_has_room_soon() -> None:
    """It keeps the lost session's cells until it finds out; two such prompts do not fit."""
    what = asked("dssd", prompt="x" * 2100, tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> Result:
        loop = asyncio.get_running_loop()
        ours, theirs = network.newest
        loop.call_later(0.4, ours.cut_off)
        loop.call_later(5.0, theirs.down)
        try:
            return await device.generate(what, connection)
        finally:
            theirs.down()

    assert_same(broken(test, models=lambda: TOYS), whole)


def test_room_is_waited_for_anew_after_each_loss() -> None:
    """Twice for 20 s: together more than what one wait may take, but between them the answer went on."""
    what = asked("dssd", prompt="x" * 2100, tokens=80)
    whole, _ = written(what)

    async def losing(network: Network) -> None:
        for writing in (3.0, 4.0):  # reading the prompt takes 2.3 s
            await asyncio.sleep(writing)
            ours, theirs = network.newest
            ours.cut_off()
            await asyncio.sleep(20.0)
            theirs.down()

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, float]:
        task = asyncio.create_task(losing(network))
        result = await device.generate(what, connection)
        seconds = asyncio.get_running_loop().time()
        await task
        return result, seconds

    result, seconds = broken(test, models=lambda: TOYS)
    assert_same(result, whole)
    assert result.answer.resumed == 2
    assert seconds > 40.0


def test_a_link_that_takes_nothing_any_more_but_says_nothing_either() -> None:
    """Sending fails before receiving does, as when a task that sends runs before the one that reads."""
    what = asked("dssd", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, int]:
        asyncio.get_running_loop().call_later(0.3, setattr, network.newest[0], "mute", True)
        return await device.generate(what, connection), network.dials

    result, dials = broken(test)
    assert_same(result, whole)
    assert (result.answer.resumed, dials) == (1, 2)


def test_a_link_that_is_lost_between_answers_is_made_anew_for_the_next() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, float]:
        network.cut()
        await asyncio.sleep(100.0)
        result = await device.generate(what, connection)
        return result, await connection.ping()

    result, trip = broken(test)
    assert result.token_ids == whole.token_ids
    assert trip == pytest.approx(0.04), "of the new link, and nothing is left of the old one's end"


# Figures.


def counted(network: Network) -> tuple[int, int]:
    """Frames and bytes of sessions that the device sent and read, over all links."""
    seen = [(envelope, size) for envelope, size in network.device_frames if envelope.session]
    return len(seen), sum(size for _, size in seen)


def total(traffic: TrafficCounter) -> tuple[int, int]:
    """Frames and bytes of a traffic, without the headers of a WebSocket: 2 bytes, and 4 more from the device."""
    parts: Sequence[Traffic] = (traffic.up, traffic.down, traffic.setup)
    return sum(part.frames for part in parts), sum(part.bits for part in parts) // 8


@pytest.mark.core(2)
@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "xcosd-e", "u-hlm"])
def test_the_traffic_is_the_sum_of_all_sessions(name: str) -> None:
    _, network = written(asked(name))
    for cut in boundaries(frames(network))[::3]:
        result, network = written(asked(name), cut)
        number, size = counted(network)
        found, whole = total(result.traffic)
        assert found == number
        assert size + 2 * number <= whole <= size + 10 * number


@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd"])
def test_what_the_cloud_did_is_not_known_where_a_session_was_lost(name: str) -> None:
    """A lost session never tells; the last one's figures are not the answer's."""
    whole, network = written(asked(name))
    figures = ("cloud_passes_per_token", "cloud_ms_per_token", "rounding_tv")
    assert all(whole.as_json()[figure] is not None for figure in figures)
    middle, end = frames(network) // 2, frames(network)
    for cut in ((middle, "before"), (end, "before")):
        row = written(asked(name), cut)[0].as_json()
        assert [row[figure] for figure in figures] == [None, None, None]


# Several answers at once.

PAIRS = [("dssd", "coupled"), ("cloud", "xcosd-e"), ("coupled", "coupled-tree")]


@pytest.mark.medium
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_two_answers_at_once_on_a_link_that_is_cut(names: tuple[str, str], step: int) -> None:
    """Both go on over one new link, and each keeps its own figures, whatever each was doing when the link went."""
    each = [asked(name, tokens=10, seed=seed) for seed, name in enumerate(names)]

    async def both(device: Device, connection: Connection, network: Network, *cuts: Cut) -> tuple[list[Result], Network]:
        network.arm(*cuts)
        return await asyncio.gather(*(device.generate(one, connection) for one in each)), network

    whole, network = broken(both, models=lambda: TOYS)
    for cut in boundaries(frames(network))[::step]:
        results, after = broken(lambda *ends, cut=cut: both(*ends, cut), models=lambda: TOYS)
        for result, undisturbed in zip(results, whole, strict=True):
            assert_same(result, undisturbed)
        assert after.dials <= 2
        assert sum(total(result.traffic)[0] for result in results) == counted(after)[0]


def test_two_answers_at_once_and_a_cloud_that_does_not_come_back() -> None:
    ends = refused(asked("dssd", tokens=40), asked("coupled", tokens=40), prepare=gone)
    for error, seconds in ends:
        assert isinstance(error, LinkError)
        assert seconds <= 30.1


def test_two_answers_at_once_and_another_model() -> None:
    ends = refused(asked("dssd", tokens=40), asked("coupled", tokens=40), prepare=another(OTHERS["another name"]))
    assert {str(error) for error, _ in ends} == {"the cloud serves other now, so the answer cannot go on: ask again"}


# What the cloud makes of `Open.committed`.


def complaint(**changes: Any) -> str:
    """The sentence that a session is refused with; the connection must survive it."""

    async def test(device: Device, connection: Connection) -> str:
        session = await raw_session(connection, **changes)
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert caught.value.code == "refused"
        assert (await device.generate(request(), connection)).tokens > 0
        return str(caught.value)

    return linked(test, Limits())


def test_committed_tokens_that_cannot_be() -> None:
    async def sizes(device: Device, connection: Connection) -> tuple[int, int]:
        return connection.common.target_size, min(connection.common.ends)

    size, end = linked(sizes)
    assert complaint(committed=(1,) * 8) == "an answer of 8 tokens at most cannot go on after 8"
    assert complaint(committed=(1,) * 9) == "an answer of 8 tokens at most cannot go on after 9"
    assert complaint(committed=(1, size)) == "what was committed before holds a token that this cloud's model does not have"
    assert complaint(committed=(2**31,)) == "what was committed before holds a token that this cloud's model does not have"
    assert complaint(committed=(1, end)) == "an answer that has ended cannot go on"
    assert complaint(committed=(end, 1)) == "an answer that has ended cannot go on"


@pytest.mark.parametrize("known", [0, 1, 2, 7, 8, 23])
def test_a_session_goes_on_behind_what_is_committed(known: int) -> None:
    """Of `cloud`, told by hand: the rest of the very answer; its second token is outside the common vocabulary."""
    what = asked("cloud", tokens=24, seed=25, prompt="the other one")

    async def test(device: Device, connection: Connection) -> tuple[list[int], list[int], int]:
        whole = (await device.generate(what, connection)).answer.numbers
        fields = {"method": "cloud", "options": {}, "max_tokens": 24, "seed": 25, "prompt": what.prompt}
        session = await raw_session(connection, **fields, committed=tuple(whole[:known]))
        told: list[int] = []
        while not isinstance(message := await session.receive(), m.Closed):
            assert isinstance(message, m.Tokens)
            told.append(Reader(message.payload).number(connection.common.target_bits, connection.common.target_size, "token"))
        return whole, told, connection.common.size

    whole, told, size = linked(test)
    assert len(whole) == 24
    assert whole[1] >= size
    assert told == whole[known:]


@pytest.mark.parametrize("committed", [0, 1, 6, 7, 8, 21, 22])
@pytest.mark.parametrize("prompt", [1, 2, 9])
def test_committed_tokens_are_read_as_they_were_written(prompt: int, committed: int) -> None:
    """The prompt in one pass, the rest in narrow ones, the last token with the first drafts."""
    model = TOYS[1]
    common = identity(model.vocabulary)
    numbers = list(range(3, 3 + committed))
    verifier = Verifier(model.open(), [5] * prompt, common, SamplingParams(), numbers)
    first, *rest = verifier.prefill()
    assert (first.keep, list(first.tokens), first.rows) == (0, [5] * (prompt - 1), 0)
    read = [token for step in rest for token in step.tokens]
    assert read == ([5] * prompt + numbers)[prompt - 1 : -1]
    assert all(0 < len(step.tokens) <= REPLAY_WIDTH and step.rows == 0 for step in rest)
    assert [step.keep for step in rest] == [prompt - 1 + REPLAY_WIDTH * place for place in range(len(rest))]


# Over a real socket.


def served(port: int) -> "tuple[subprocess.Popen[str], int]":
    """A toy cloud in a process of its own, and its port."""
    command = [sys.executable, "-m", "antiphon", "serve", "--model", "toy-cloud", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    found = re.search(r"ws://\S+:(\d+)", process.stdout.readline())
    assert found is not None
    return process, int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coupled", "dssd"])
def test_a_cloud_process_that_is_killed_and_started_again(name: str) -> None:
    """In the middle of an answer, on the same port."""
    what = replace(asked(name, tokens=400), sampling=SamplingParams(temperature=100.0))
    whole = linked(lambda device, connection: device.generate(what, connection))
    assert whole.tokens > 200

    async def run() -> Result:
        process, port = served(0)
        device = Device(named_toy("toy-device"))
        connection = await connect(f"ws://127.0.0.1:{port}", device.model, device.worker)
        shown = asyncio.Event()
        texts: list[str] = []

        def show(pieces: Sequence[Any]) -> None:
            texts.extend(piece.text for piece in pieces)
            if len(texts) > 40:
                shown.set()

        try:
            answering = asyncio.create_task(device.generate(what, connection, show))
            await shown.wait()
            process.kill()
            process.wait()
            process, _ = await asyncio.to_thread(served, port)
            return await answering
        finally:
            process.kill()
            process.communicate()
            await connection.close()
            device.close()

    result = asyncio.run(asyncio.wait_for(run(), 60))
    assert_same(result, whole)
    assert result.answer.resumed == 1
