"""Clouds that break the protocol of the methods with candidates: one clear sentence, and the device goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import process
from antiphon.core.rounding import LogRatios, fixed_point, quantise_ratios
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import ProtocolError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send
from antiphon.models.toy import named_toy
from antiphon.testing.distributions import SHARED, Pair
from antiphon.testing.lockstep import run_pair
from antiphon.wire import messages as m
from antiphon.wire.candidates import Candidate, CandidateCodec
from antiphon.wire.packing import Writer
from methods.speculative.peers import TOKENS, common
from support.links import linked, request

NAMES = {"xcosd", "xcosd-e", "u-hlm", "cu-hlm", "gr", "tr"}


@cache
def device_counts() -> np.ndarray:
    """The first draft's distribution after "the ", in units of 1 / 65535, by wire number."""
    toy = named_toy("toy-device")
    logits = toy.logits(toy.tokenize("the "))[common().device_ids]
    return fixed_point(process(logits, SamplingParams(temperature=1.0)), 16)


@dataclass(frozen=True)
class Script:
    """A cloud half that answers one message after the other with these, whatever they are."""

    replies: tuple[Callable[[m.Message], m.Message], ...]

    def __call__(self, side: CloudSide, options: object) -> "Script":
        return self

    def run(self) -> Half:
        for reply in self.replies:
            message = yield Receive()
            yield Send(reply(message))
        yield Receive()
        return Finish.END


def failing(method: str, *replies: Callable[[m.Draft], m.Message], **options: object) -> ProtocolError:
    """What a device says of a cloud that answers so. The connection must survive it."""
    right = WITHOUT_DOCUMENTS[method]
    wrong = Method("dsd", "", True, right.device, Script(replies), options=right.options)
    given = right.options_from({"draft_length": 3, **options})

    async def test(device: Device, connection: Connection) -> ProtocolError:
        asked = request("dssd", tokens=TOKENS)
        with pytest.raises(ProtocolError) as caught:
            await device.generate(type(asked)(asked.prompt, "dsd", given, asked.sampling, TOKENS, seed=1), connection)
        for name in ("dssd", method):
            assert (await device.generate(request(name), connection)).tokens > 0
        return caught.value

    return linked(test, methods={**WITHOUT_DOCUMENTS, "dsd": wrong})


def first_id(message: m.Draft) -> int:
    """The first draft of a round, before which nothing is owed."""
    return int.from_bytes(message.payload[:4], "little") & (2 ** common().common_bits - 1)


def never_passing(draft: int) -> Candidate:
    """The device's likeliest token but the draft, said to be as unlikely as can be: its test accepts with probability 0."""
    counts = device_counts().copy()
    counts[draft] = 0
    assert counts.max() > 1
    return Candidate(int(counts.argmax()), 1)


def listed(candidates: Sequence[Candidate], more: Sequence[tuple[int, int]] = ()) -> bytes:
    writer = Writer()
    CandidateCodec(common(), 16).write(writer, candidates)
    for value, bits in more:
        writer.number(value, bits)
    return writer.finish()


class Drafting:
    """Remembers the draft of the round: later replies need it."""

    draft = -1

    def none_stand(self, make: Callable[[int], bytes]) -> Callable[[m.Draft], m.Message]:
        def reply(message: m.Draft) -> m.Message:
            self.draft = first_id(message)
            return m.Verdict(0, 0, make(self.draft))

        return reply

    def more(self, make: Callable[[int], bytes], turn: int = 0) -> Callable[[m.Message], m.Message]:
        def reply(message: m.Message) -> m.Message:
            assert isinstance(message, m.Retry)
            return m.Resampling(turn, make(self.draft))

        return reply


def none_passes(draft: int) -> bytes:
    return listed([never_passing(draft)] * 2)


def distribution_with(spare: int | None, outside: float = 0.5, more: int = 0) -> bytes:
    """A list of no candidates, a distribution with this mass outside the common vocabulary, and this spare."""
    probs = np.full(common().size + 1, (1 - outside) / common().size)
    probs[-1] = outside
    writer = Writer()
    writer.number(0, 5)
    writer.distribution(quantise_ratios(LogRatios())(probs), LogRatios())
    if spare is not None:
        writer.number(spare, common().target_bits)
    writer.number(0, more)
    return writer.finish()


def test_more_messages_of_candidates_than_agreed() -> None:
    for agreed in (1, 2, 3):
        cloud = Drafting()
        replies = [cloud.none_stand(none_passes), *[cloud.more(none_passes)] * agreed]
        error = failing("xcosd-e", *replies, iterations=agreed)
        assert str(error) == f"more than {agreed} messages of candidates came"
        assert error.code == "out-of-range"


def test_as_many_messages_as_agreed_are_fine() -> None:
    """What then fails is the distribution that comes at last."""
    cloud = Drafting()
    last = cloud.more(lambda draft: distribution_with(3))
    error = failing("xcosd-e", cloud.none_stand(none_passes), cloud.more(none_passes), last, iterations=2)
    assert "spare" in str(error)


@pytest.mark.core(4)
@pytest.mark.parametrize(
    ("reply", "code", "sentence"),
    [
        (lambda message: m.Resampling(0, b""), "out-of-turn", "Resampling came where Verdict was due"),
        (lambda message: m.Tokens(b""), "out-of-turn", "Tokens came where Verdict was due"),
        (lambda message: m.Verdict(1, 0, b""), "out-of-turn", "Verdict of round 1 came in round 0"),
        (lambda message: m.Verdict(0, 4, b""), "out-of-range", "4 drafts were accepted, but only 3 were sent"),
        (lambda message: m.Verdict(0, 0, b""), "bad-frame", "the payload is shorter than its message says"),
    ],
)
@pytest.mark.parametrize("method", ["xcosd", "xcosd-e"])
def test_an_answer_that_was_not_due(method: str, reply: Any, code: str, sentence: str) -> None:
    error = failing(method, reply)
    assert (error.code, str(error)) == (code, sentence)


@pytest.mark.core(4)
@pytest.mark.parametrize(
    ("reply", "code", "sentence"),
    [
        (lambda message: m.Verdict(0, 0, b""), "out-of-turn", "Verdict came where Resampling was due"),
        (lambda message: m.Resampling(1, b""), "out-of-turn", "Resampling of round 1 came in round 0"),
        (lambda message: m.Resampling(0, b""), "bad-frame", "the payload is shorter than its message says"),
        (lambda message: m.Resampling(0, distribution_with(3)), "out-of-range", "the spare token is in the common vocabulary"),
        (
            lambda message: m.Resampling(0, distribution_with(400)),
            "out-of-range",
            "the spare token is 400, but must be below 272",
        ),
        (
            lambda message: m.Resampling(0, distribution_with(270, more=8)),
            "bad-frame",
            "the payload is longer than its message says",
        ),
        (lambda message: m.Resampling(0, distribution_with(None)), "bad-frame", "the payload is shorter than its message says"),
        (
            lambda message: m.Resampling(0, distribution_with(270, 0.0)),
            "bad-frame",
            "the payload is longer than its message says",
        ),
    ],
)
def test_an_answer_to_a_retry_that_was_not_due(reply: Any, code: str, sentence: str) -> None:
    error = failing("xcosd-e", Drafting().none_stand(none_passes), reply)
    assert (error.code, str(error)) == (code, sentence)


@pytest.mark.core(4)
@pytest.mark.parametrize(
    ("make", "code", "sentence"),
    [
        (lambda draft: listed([Candidate(draft, 9)]), "out-of-range", "a candidate is the very draft that was rejected"),
        (lambda draft: listed([Candidate(270), Candidate(5, 9)]), "out-of-range", "always passes, but more follow"),
        (lambda draft: listed([Candidate(9, 0)]), "bad-probability", "a probability of 0 or above 1"),
        (lambda draft: listed([Candidate(270)], [(0, 8)]), "bad-frame", "the payload is longer than its message says"),
        (lambda draft: listed([never_passing(draft)], [(0, 8)]), "bad-frame", "the payload is longer than its message says"),
        (lambda draft: distribution_with(3), "out-of-range", "the spare token is in the common vocabulary"),
        (lambda draft: distribution_with(270, more=8), "bad-frame", "the payload is longer than its message says"),
    ],
)
@pytest.mark.parametrize("later", [False, True], ids=["at once", "after a retry"])
def test_candidates_that_cannot_be(later: bool, make: Callable[[int], bytes], code: str, sentence: str) -> None:
    cloud = Drafting()
    replies = [cloud.none_stand(none_passes), cloud.more(make)] if later else [cloud.none_stand(make)]
    error = failing("xcosd-e", *replies)
    assert sentence in str(error)
    assert error.code == code


@pytest.mark.core(3)
@pytest.mark.parametrize(
    ("payload", "code", "sentence"),
    [
        (distribution_with(3), "out-of-range", "the spare token is in the common vocabulary"),
        (distribution_with(264), "out-of-range", "the spare token is in the common vocabulary"),
        (distribution_with(272), "out-of-range", "the spare token is 272, but must be below 272"),
        (distribution_with(None), "bad-frame", "the payload is shorter than its message says"),
        (distribution_with(270, 0.0), "bad-frame", "the payload is longer than its message says"),
        (distribution_with(270, more=8), "bad-frame", "the payload is longer than its message says"),
    ],
)
def test_a_lumped_distribution_that_cannot_be(payload: bytes, code: str, sentence: str) -> None:
    """As `xcosd-e` sends it, without the count of candidates in front: five bits that are nothing here."""
    bits = int.from_bytes(payload, "little")
    assert bits & 31 == 0
    head = (bits & 0xFF) >> 5  # the distribution begins in the first byte, its values on the second
    error = failing("xcosd", lambda message: m.Verdict(0, 0, bytes([head]) + payload[1:]))
    assert (error.code, str(error)) == (code, sentence)


def goes_on(payload: bytes, **options: object) -> list[m.Message]:
    """What a cloud answers to the first drafts, none, of an answer that goes on behind one token."""
    method, models = WITHOUT_DOCUMENTS["xcosd-e"], Pair(SHARED, SHARED)
    cloud = models.cloud_side(4, SamplingParams(temperature=1.0), PhiloxChance(1), [0])
    heard: list[m.Message] = []

    def device() -> Half:
        yield Send(m.Draft(0, 0, payload))
        heard.append((yield Receive()))
        return Finish.CANCELLED

    assert method.cloud is not None
    run_pair(device(), method.cloud(cloud, method.options_from({"draft_length": 1, "candidates": 0, **options})).run())
    return heard


@pytest.mark.parametrize(
    ("estimate", "code"),
    [
        ((np.nan, 2.0), "out-of-range"),
        ((1.0, np.inf), "out-of-range"),
        ((-np.inf, 2.0), "out-of-range"),
        ((1.0, 0.0), "out-of-range"),
        ((1.0, -3.0), "out-of-range"),
        ((1.0,), "bad-frame"),
        ((), "bad-frame"),
        ((1.0, 2.0, 3.0), "bad-frame"),
    ],
    ids=str,
)
def test_an_estimate_that_cannot_be(estimate: tuple[float, ...], code: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        goes_on(np.array(estimate, "<f8").tobytes())
    assert caught.value.code == code


def test_an_estimate_is_told_where_it_is_needed_only() -> None:
    """Where the number of candidates is fixed, or nothing is committed, the first drafts begin with themselves."""
    for passed, tested in ((1.0, 2.0), (-1e300, 1e-300), (1e300, 5.0)):
        assert isinstance(goes_on(np.array([passed, tested], "<f8").tobytes())[0], m.Verdict)
    assert isinstance(goes_on(b"", candidates=2)[0], m.Verdict)
    with pytest.raises(ProtocolError):
        goes_on(np.array([1.0, 2.0], "<f8").tobytes(), candidates=2)


def test_every_new_method_is_served() -> None:
    """Else the tests above would pass for another reason."""

    async def test(device: Device, connection: Connection) -> dict[str, int]:
        return {name: (await device.generate(request(name), connection)).tokens for name in sorted(NAMES)}

    assert all(linked(test).values())
