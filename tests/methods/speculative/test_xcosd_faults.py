"""Peers that break the protocol of the new methods: one clear sentence with the right code, and the next session is served."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.session import DeviceSession
from antiphon.errors import RemoteError
from antiphon.vocabulary import bits_for
from antiphon.wire import messages as m
from antiphon.wire.packing import Writer
from methods.speculative.peers import TOKENS, common
from support.links import linked, raw_session, request


def told(method: str, act: Callable[[DeviceSession], Any], **options: object) -> tuple[str, str]:
    """What a wrong device is told: code and sentence. The connection must survive it, and serve this method again."""

    async def exchange(session: DeviceSession) -> None:
        await act(session)
        await session.receive()

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        given = {"draft_length": 3, "draft_precision": 16, "precision": 16, **options}
        session = await raw_session(connection, method=method, options=given, max_tokens=TOKENS)
        with pytest.raises(RemoteError) as caught:
            await exchange(session)
        for name in ("dssd", method):
            assert (await device.generate(request(name), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    return linked(test)


def drafts(numbers: Sequence[int], *, turn: int = 0, before: Sequence[tuple[int, int]] = (), units: int = 65535) -> m.Draft:
    """Drafts with a scalar each, behind numbers of so many bits that are owed."""
    writer = Writer()
    for value, bits in before:
        writer.number(value, bits)
    for number in numbers:
        writer.number(number, common().common_bits)
    for _ in numbers:
        writer.number(units, 16)
    return m.Draft(turn, len(numbers), writer.finish())


async def rejected(session: DeviceSession) -> m.Verdict:
    """A draft that the cloud's model would hardly write, said to be certain: rejected."""
    await session.send(drafts([0x01]))
    verdict = await session.receive()
    assert isinstance(verdict, m.Verdict)
    assert verdict.accepted == 0
    return verdict


async def retry_at_once(session: DeviceSession) -> None:
    await session.send(m.Retry(0))


async def retry_after_a_bonus(session: DeviceSession) -> None:
    await session.send(drafts([]))
    await session.receive()
    await session.send(m.Retry(0))


async def retry_of_another_round(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(m.Retry(5))


async def retry_of_the_next_round(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(m.Retry(1))


async def retry_after_the_distribution(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(m.Retry(0))
    assert isinstance(await session.receive(), m.Resampling)
    await session.send(m.Retry(0))


async def retry_after_the_choice(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1, before=[(0, 2)]))
    assert isinstance(await session.receive(), m.Verdict)
    await session.send(m.Retry(0))


async def retry_of_the_round_after_the_choice(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1, before=[(0, 2)]))
    assert isinstance(await session.receive(), m.Verdict)
    await session.send(m.Retry(1))


OFFERED = "Retry came where no candidates were offered"


@pytest.mark.core(3)
@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (retry_at_once, OFFERED),
        (retry_after_a_bonus, OFFERED),
        (retry_of_another_round, "Retry of round 5 came in round 0"),
        (retry_of_the_next_round, "Retry of round 1 came in round 0"),
        (retry_after_the_distribution, OFFERED),
        (retry_after_the_choice, "Retry came where no candidates were offered"),
        (retry_of_the_round_after_the_choice, OFFERED),
    ],
)
def test_a_retry_out_of_turn(act: Callable[[DeviceSession], Any], sentence: str) -> None:
    code, said = told("xcosd-e", act, candidates=3, iterations=1)
    assert said == sentence
    assert code == "out-of-turn"


@pytest.mark.core(3)
@pytest.mark.parametrize("method", ["xcosd", "dssd", "dsd", "gr", "tr", "u-hlm", "cu-hlm"])
def test_a_retry_where_no_candidates_ever_are(method: str) -> None:
    assert told(method, retry_at_once) == ("out-of-turn", "Retry came where Draft was due")


async def a_place_beyond_the_list(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1, before=[(3, 2)]))


def test_a_choice_beyond_the_list() -> None:
    """Three candidates take two bits, which can say a fourth."""
    code, said = told("xcosd-e", a_place_beyond_the_list, candidates=3)
    assert said == "the place of the chosen candidate is 3, but must be below 3"
    assert code == "out-of-range"


async def a_token_beyond_the_vocabulary(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1, before=[(300, 9)]))


async def nothing_owed(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1))


async def more_than_is_owed(session: DeviceSession) -> None:
    await rejected(session)
    await session.send(drafts([], turn=1, before=[(5, 9), (5, 9)]))


@pytest.mark.parametrize(
    ("act", "code", "sentence"),
    [
        (a_token_beyond_the_vocabulary, "out-of-range", "the resampled token is 300, but must be below 272"),
        (nothing_owed, "bad-frame", "the payload is shorter than its message says"),
        (more_than_is_owed, "bad-frame", "the payload is longer than its message says"),
    ],
)
@pytest.mark.parametrize("method", ["dssd", "xcosd"])
def test_a_token_that_the_device_cannot_have_drawn(method: str, act: Any, code: str, sentence: str) -> None:
    assert told(method, act) == (code, sentence)


def alone(count: int, numbers: Sequence[int], *, drafted: int = 0) -> m.Draft:
    """Tokens that the device committed alone, of an answer of 8 tokens."""
    writer = Writer()
    writer.number(count, bits_for(TOKENS + 1))
    for number in numbers:
        writer.number(number, common().common_bits)
    return m.Draft(0, drafted, writer.finish())


@pytest.mark.core(3)
@pytest.mark.parametrize("method", ["u-hlm", "cu-hlm"])
@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (alone(9, [5] * 9), "out-of-range", "the count of tokens that were committed alone is 9, but must be below 9"),
        (alone(15, [5] * 15), "out-of-range", "the count of tokens that were committed alone is 15, but must be below 9"),
        (alone(2, [5, 300]), "out-of-range", "a token that was committed alone is 300, but must be below 265"),
        (alone(2, [0, 5]), "out-of-range", "tokens follow the end of the answer"),
        (alone(3, [5, 0, 0]), "out-of-range", "tokens follow the end of the answer"),
        (alone(3, [5]), "bad-frame", "the payload is shorter than its message says"),
        (alone(1, [5, 5]), "bad-frame", "the payload is longer than its message says"),
        (alone(8, [5] * 8, drafted=1), "out-of-range", "at most 0 drafts fit here, but 1 came"),
        (alone(1, [0], drafted=1), "out-of-range", "at most 0 drafts fit here, but 1 came"),
        (alone(7, [5] * 7, drafted=1), "out-of-range", "at most 0 drafts fit here, but 1 came"),
        (alone(0, [], drafted=2), "out-of-range", "at most 1 drafts fit here, but 2 came"),
    ],
)
def test_tokens_that_cannot_have_been_committed_alone(method: str, message: m.Draft, code: str, sentence: str) -> None:
    """0 is the end of an answer, 265 tokens are common."""
    assert common().ends == {0}

    async def act(session: DeviceSession) -> None:
        await session.send(message)

    assert told(method, act) == (code, sentence)


def kept(number: int, distribution: Sequence[tuple[int, int]], count: int | None = None) -> m.Draft:
    """A draft with the kept part of its distribution, 4 tokens at most."""
    writer = Writer()
    writer.number(0, bits_for(TOKENS + 1))
    writer.number(number, common().common_bits)
    writer.number(len(distribution) if count is None else count, bits_for(4 + 1))
    for token, units in distribution:
        writer.number(token, common().common_bits)
        writer.number(units, 16)
    return m.Draft(0, 1, writer.finish())


PART = "the kept tokens are no part of a distribution"


@pytest.mark.core(3)
@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (kept(5, [(5, 40000), (6, 40000)]), "bad-probability", PART),
        (kept(5, [(5, 65535), (6, 1)]), "bad-probability", PART),
        (kept(5, [(5, 100), (6, 1), (5, 100)]), "bad-probability", PART),
        (kept(7, [(5, 65535)]), "bad-probability", "the draft has probability 0, so it cannot have been drawn"),
        (kept(5, [(5, 0)]), "bad-probability", "the draft has probability 0, so it cannot have been drawn"),
        (kept(5, [], count=5), "out-of-range", "the count of kept tokens is 5, but must be below 5"),
        (kept(5, [(265, 9)]), "out-of-range", "a kept token is 265, but must be below 265"),
        (kept(265, [(5, 9)]), "out-of-range", "the id of draft 1 is 265, but must be below 265"),
        (kept(5, [(5, 9)], count=2), "bad-frame", "the payload is shorter than its message says"),
    ],
)
def test_a_compressed_distribution_that_is_none(message: m.Draft, code: str, sentence: str) -> None:
    async def act(session: DeviceSession) -> None:
        await session.send(message)

    assert told("cu-hlm", act, top_k=4) == (code, sentence)


@pytest.mark.parametrize("distribution", [[], [(5, 65535)], [(6, 100)], [(5, 1), (6, 2), (7, 3), (8, 4)]], ids=str)
def test_a_compressed_distribution_that_is_one(distribution: list[tuple[int, int]]) -> None:
    """None kept is the even distribution; a draft may be one of the rest."""

    async def test(device: Device, connection: Connection) -> m.Message:
        session = await raw_session(connection, method="cu-hlm", options={"top_k": 4}, max_tokens=TOKENS)
        await session.send(kept(5, distribution))
        return await session.receive()

    assert isinstance(linked(test), m.Verdict)
