"""The cloud survives devices that are wrong: one sentence, the session is over, and nobody else is touched."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import pytest

from antiphon.cloud.session import MESSAGES_IN_FLIGHT
from antiphon.config import Limits, SamplingParams
from antiphon.core.mixture.consult import AskAll, AskChunk, AskScores, Question
from antiphon.device.session import DeviceSession
from antiphon.errors import ProtocolError, RemoteError
from antiphon.methods.effects import Kind
from antiphon.methods.mixture.cloud import KEPT
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from support.mixtures import PIECES, answer, ask, question, require_true, virtually, world

CODEC = ScoreCodec(len(PIECES), 7)
EVIDENCE = ["concord", "concord-nocomm", "dragon", "drdg-tw", "drdg-sw"]

Act = Callable[[DeviceSession], Awaitable[None]]


def opening(method: str = "concord", **changes: Any) -> m.Open:
    options = asdict(MixtureOptions(**{key: changes.pop(key) for key in ("ahead", "first") if key in changes}))
    fields = {"sampling": SamplingParams(temperature=0.0), "prompt": "who is it?", "chat": False, "max_tokens": 12, "seed": 1}
    return m.Open(**{"method": method, "options": options, "committed": (), **fields, **changes})


async def until(session: DeviceSession, kind: type, number: int = 1) -> m.Message:
    """The message of this kind that comes as the number-th."""
    while True:
        message = await session.receive(5.0)
        assert message is not None, f"no {kind.__name__} came"
        number -= isinstance(message, kind)
        if number == 0:
            return message


async def failure(session: DeviceSession) -> RemoteError:
    """What the session ends with."""
    try:
        while await session.receive(5.0) is not None:
            pass
    except RemoteError as error:
        return error
    raise AssertionError("the session goes on")


def told(act: Act, opened: m.Open | None = None) -> RemoteError:
    """What the cloud says to a device that does this; others, and the next question of this one, must not notice."""
    there, request = world(4), question("concord-nosystem", tokens=24)
    undisturbed = answer(there, request).numbers

    async def run() -> RemoteError:
        async with there.ends() as (device, connections), there.beside() as (other, others):
            honest = asyncio.create_task(ask(there, other, others, request))
            session = await connections[0].open(opened or opening())
            await until(session, m.Retrieved)
            await act(session)
            error = await failure(session)
            assert not connections[0].has(session.number)
            for one in (await honest, await ask(there, device, connections, request)):
                require_true(there, request, one)
            assert (await honest).numbers == undisturbed
            return error

    return virtually(run())


def says(*messages: m.Message, after: int = 2) -> Act:
    """Send these once so much evidence is there."""

    async def act(session: DeviceSession) -> None:
        await until(session, m.Evidence, after)
        for message in messages:
            await session.send(message)

    return act


def tokens(*numbers: int) -> bytes:
    return CODEC.tokens(list(numbers))


def asks(step: int, question: Question | bytes, epoch: int = 0) -> m.Ask:
    return m.Ask(epoch, step, question if isinstance(question, bytes) else CODEC.question(question))


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("act", "code", "sentence"),
    [
        (says(m.Realign(1, 13, 0, b"")), "out-of-turn", "0 tokens came for step 13 of"),
        (says(m.Realign(1, 2**31, 1, tokens(1))), "out-of-turn", "1 tokens came for step 2147483648 of"),
        (says(m.Realign(1, 1, 12, tokens(*range(12)))), "out-of-turn", "12 tokens came for step 1 of"),
        (says(m.Realign(1, 1, 2**31, b"")), "out-of-turn", "2147483648 tokens came for step 1 of"),
        (says(m.Realign(0, 1, 1, tokens(1))), "out-of-turn", "epoch 0 came after 0"),
        (says(m.Realign(2, 1, 1, tokens(1))), "out-of-turn", "epoch 2 came after 0"),
        (says(*[m.Realign(1, 1, 1, tokens(1))] * 2), "out-of-turn", "epoch 1 came after 1"),
        (says(m.Realign(1, 1, 1, b"\x7f")), "out-of-range", "a token is 127, but must be below 100"),
        (says(m.Realign(1, 1, 2, tokens(1))), "bad-frame", "the payload is shorter than its message says"),
        (says(m.Realign(1, 1, 1, tokens(1, 2))), "bad-frame", "the payload is longer than its message says"),
        (says(m.Progress(12)), "out-of-turn", "progress to token 12 of"),
        (says(m.Progress(2**31)), "out-of-turn", "progress to token 2147483648 of"),
        (says(asks(11, AskAll())), "out-of-range", "scores of step 11 were asked for, which are not kept"),
        (says(asks(0, b"\x03")), "out-of-range", "the kind of question is 3"),
        (says(asks(0, b"")), "bad-frame", "the payload is shorter"),
        (says(asks(0, AskAll()), asks(0, b"\x02\x00")), "bad-frame", "the payload is longer"),
        (says(asks(0, AskScores((1, 127)))), "out-of-range", "a token is 127, but must be below 100"),
        (says(m.Draft(0, 1, b"\0\0\0")), "out-of-turn", "Draft came in a stream of evidence"),
        (says(m.Retry(0)), "out-of-turn", "Retry came in a stream of evidence"),
        (says(m.Probe(1, 0, 0, 0, 0, b"\0")), "out-of-turn", "Probe came in a stream of evidence"),
    ],
)
def test_a_device_that_is_wrong(act: Act, code: str, sentence: str) -> None:
    error = told(act, opening(ahead=4))
    assert (error.code, sentence in str(error)) == (code, True), error


@pytest.mark.core(1)
@pytest.mark.parametrize("method", EVIDENCE)
def test_every_method_refuses_alike(method: str) -> None:
    error = told(says(m.Realign(7, 0, 0, b""), after=1), opening(method, ahead=4))
    assert "epoch 7 came after 0" in str(error)


def test_scores_of_steps_long_past_are_not_kept() -> None:
    """`KEPT` steps behind the device's progress: what was on its way can be answered, no more."""

    async def act(session: DeviceSession) -> None:
        await until(session, m.Evidence, 20)
        await session.send(m.Progress(20))
        for step in (20 - KEPT, 20 - KEPT - 1):
            await session.send(asks(step, AskChunk(1)))
        assert (await until(session, m.Supplement)).step == 20 - KEPT

    error = told(act, opening(ahead=64, max_tokens=40))
    assert f"scores of step {20 - KEPT - 1} were asked for" in str(error)


@pytest.mark.parametrize("question", [AskScores(()), AskScores((5, 5, 99)), AskChunk(0), AskChunk(8191), AskAll()])
def test_odd_questions_that_can_be_answered(question: Question) -> None:
    async def run() -> None:
        async with world(4).ends() as (_, connections):
            session = await connections[0].open(opening())
            await says(asks(0, question), after=1)(session)
            reply = await until(session, m.Supplement)
            if isinstance(question, AskAll):
                assert len(CODEC.read_everything(reply.payload)[0]) == len(PIECES)
            else:
                CODEC.read_report(reply.payload)
            await session.cancel()
            assert (await session.closed()).reason == "cancelled"

    virtually(run())


def test_a_question_of_another_epoch_is_not_answered() -> None:
    """The device has moved on, or never will be there: it cannot use the answer."""

    async def run() -> None:
        async with world(4).ends() as (_, connections):
            session = await connections[0].open(opening())
            await says(asks(0, AskAll(), epoch=3), asks(1, AskChunk(1)))(session)
            assert (await until(session, m.Supplement)).step == 1
            await session.cancel()

    virtually(run())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"options": {"ahead": 0}}, "ahead must be 1 to 64 steps, not 0"),
        ({"options": {"bound": "none"}}, "Invalid enum value 'none'"),
        ({"options": {"passages": "two"}}, "Expected `int`, got `str`"),
        ({"max_tokens": 0}, "max-tokens must be 1 to"),
        ({"method": "crcg"}, "there is no method 'crcg'"),
    ],
)
def test_a_session_that_cannot_be(changes: dict[str, Any], sentence: str) -> None:
    async def run() -> None:
        there = world(4)
        async with there.ends() as (device, connections):
            session = await connections[0].open(opening(**changes))
            error = await failure(session)
            assert error.code == "refused"
            assert sentence in str(error)
            assert (await ask(there, device, connections, question())).steps

    virtually(run())


def test_a_flood_ends_the_connection_that_it_came_over() -> None:
    """More messages than may wait: nobody can be asked to read them, and the others' answers go on."""
    there, request = world(4, verify_s=0.5), question("concord", tokens=12)

    async def run() -> None:
        async with there.ends() as (_, connections), there.beside() as (other, others):
            honest = asyncio.create_task(ask(there, other, others, request))
            session = await connections[0].open(opening())
            await until(session, m.Retrieved)
            for _ in range(MESSAGES_IN_FLIGHT + 8):
                await session.send(m.Progress(0))
            assert (await failure(session)).code == "busy"
            require_true(there, request, await honest)
            assert set((await honest).kinds) - {Kind.LOCAL}

    virtually(run())


def test_realigning_without_end_costs_no_one_else_anything() -> None:
    """Every realignment fits, and each makes the cloud work; it answers between them, and a cancelled session is over."""

    async def run() -> None:
        there, request = world(4), question("concord", tokens=24)
        async with there.ends() as (_, connections), there.beside() as (other, others):
            honest = asyncio.create_task(ask(there, other, others, request))
            session = await connections[0].open(opening(ahead=2))
            for epoch in range(1, 200):
                await session.send(m.Realign(epoch, 0, 1, tokens(epoch % 90)))
                await until(session, m.Evidence)
            await session.cancel()
            assert (await session.closed()).reason == "cancelled"
            require_true(there, request, await honest)

    virtually(run())


def test_the_cloud_runs_ahead_so_far_and_no_further() -> None:
    """W steps beyond what it knows of the answer, and W more from there once the device has said so."""

    async def run() -> None:
        async with world(4, end=-99.0).ends() as (_, connections):
            session = await connections[0].open(opening(ahead=3))
            assert await steps(session) == [0, 1, 2]
            await session.send(m.Progress(2))
            assert await steps(session) == [3, 4]
            await session.send(m.Progress(1))  # older news is no news
            assert await steps(session) == []
            await session.send(m.Realign(1, 1, 1, tokens(7)))
            assert await steps(session) == [2, 3, 4]
            await session.send(m.Realign(2, 5, 7, tokens(*range(1, 8))))  # the answer is as long as it may be
            assert await steps(session) == []

    async def steps(session: DeviceSession) -> list[int]:
        found = []
        while (message := await session.receive(2.0)) is not None:
            found += [message.step] if isinstance(message, m.Evidence) else []
        return found

    virtually(run())


def test_a_silent_device_is_not_kept_for_ever() -> None:
    async def run() -> None:
        there = world(4, limits=Limits(idle_seconds=20.0))
        async with there.ends() as (_, connections):
            session = await connections[0].open(opening())
            await until(session, m.Evidence, 8)
            with pytest.raises(RemoteError, match="the device was silent for 20 s"):
                await session.receive(30.0)

    virtually(run())


def test_a_device_cannot_send_what_a_cloud_sends() -> None:
    async def run() -> None:
        async with world(4).ends() as (_, connections):
            session = await connections[0].open(opening())
            for message in (m.Evidence(0, 0, b""), m.Supplement(0, 0, b""), m.Retrieved(1, 0.0, 0), m.Passages(("private",))):
                with pytest.raises(ProtocolError, match="out of turn"):
                    await session.send(message)
            await session.cancel()

    virtually(run())
