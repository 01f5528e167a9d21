"""What one device can cost a cloud is bounded before it is spent: in bytes, in entries, in time of the model's thread."""

import asyncio
import time

import msgspec
import pytest

from antiphon.cloud.service import SCORES_BYTES, Cloud
from antiphon.cloud.session import SessionHost
from antiphon.cloud.told import told
from antiphon.config import MAX_LOGIT_BIASES, Limits, SamplingParams
from antiphon.core.distributions import Logits
from antiphon.core.mixture.scores import StepScores
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.session import DeviceSession
from antiphon.engine.worker import Worker
from antiphon.errors import CapacityError, ProtocolError, RemoteError, UsageError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.effects import Step
from antiphon.methods.mixture.cloud import STEP_BYTES, MixtureCloud, kept_bytes
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.transport.frames import Inbox
from antiphon.vocabulary import Vocabulary
from antiphon.wire import messages as m
from support.links import linked, raw_session, request, toy_cloud, toy_device


def test_a_vocabulary_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[int] = []
    pack = Vocabulary.pack
    monkeypatch.setattr(Vocabulary, "pack", lambda vocabulary: (packed.append(1), pack(vocabulary))[1])

    async def run() -> None:
        cloud = Cloud(named_toy("toy-cloud"))
        found = await asyncio.gather(*[cloud.vocabulary() for _ in range(10)])
        assert found == [pack(cloud.model.vocabulary)] * 10
        await cloud.vocabulary()
        cloud.close()

    asyncio.run(run())
    assert len(packed) == 1


def test_so_many_biases_and_no_more() -> None:
    SamplingParams(logit_bias=((1, 1.0),) * MAX_LOGIT_BIASES)
    with pytest.raises(UsageError, match="at most 1024 tokens can have a logit bias, not 1025"):
        SamplingParams(logit_bias=((1, 1.0),) * (MAX_LOGIT_BIASES + 1))


def test_more_biases_on_the_wire_are_refused() -> None:
    opening = m.Open("cloud", {}, SamplingParams(), "the ", False, 1, 1, ())
    frame = msgspec.msgpack.decode(m.encode(m.Envelope(1, opening)))
    frame[1][3]["logit_bias"] = [[1, 1.0]] * (MAX_LOGIT_BIASES + 1)
    with pytest.raises(ProtocolError, match="at most 1024 tokens can have a logit bias"):
        m.decode(msgspec.msgpack.encode(frame))


def test_messages_that_wait_are_bounded_in_bytes_and_in_number() -> None:
    async def run() -> None:
        inbox: Inbox[int] = Inbox(3, 100)
        inbox.offer(1, 1000)  # one alone may be as long as a frame
        with pytest.raises(ProtocolError, match="too many messages wait to be read"):
            inbox.offer(2, 1)
        assert inbox.get_nowait() == 1
        for number in range(3):
            inbox.offer(number, 30)
        with pytest.raises(ProtocolError, match="too many messages wait to be read"):
            inbox.offer(3, 1)
        assert [inbox.get_nowait() for _ in range(3)] == [0, 1, 2]
        inbox.offer(9, 100)
        inbox.get_nowait()
        assert inbox._bytes == 0

    asyncio.run(run())


def test_a_device_that_sends_long_drafts_without_waiting_is_stopped_before_they_fill_the_memory() -> None:
    async def test(device: Device, connection: Connection) -> str:
        session = await raw_session(connection, method="cloud", options={}, max_tokens=500)
        for _ in range(40):
            connection._transport._outbox.put_nowait(connection.wire.send(m.Draft(0, 0, bytes(30_000)), session.number))
        with pytest.raises(RemoteError, match="too many messages wait to be read") as caught:
            await to_its_end(session)
        return str(caught.value)

    assert linked(test, Limits(frame_bytes=100_000))


async def to_its_end(session: DeviceSession) -> None:
    while True:
        await session.receive()


def options(ahead: int) -> MixtureOptions:
    return MixtureOptions(ahead=ahead)


def test_what_a_session_of_evidence_keeps_is_what_it_is_charged() -> None:
    import numpy as np

    size = 5000
    scores = StepScores(np.full(size, 1 / size), np.ones(size))
    assert scores.codes.nbytes + scores._left.nbytes == size * STEP_BYTES
    assert kept_bytes(MixtureCloud, options(64), 400, size) == 73 * size * STEP_BYTES
    assert kept_bytes(MixtureCloud, options(64), 10, size) == 19 * size * STEP_BYTES
    for name, method in WITH_DOCUMENTS.items():
        asks = name.startswith("concord") and name != "concord-nocomm"
        assert (kept_bytes(method.cloud, options(64), 400, size) > 0) == asks, name


def test_an_answer_that_is_taken_up_gives_others_their_turns() -> None:
    """What was committed elsewhere is read in hundreds of passes: nobody waits for all of them."""

    async def test(device: Device, connection: Connection) -> list[int]:
        worker, turns = connection_worker(), list[int]()
        session = await raw_session(connection, method="coupled", options={}, max_tokens=500, committed=(5,) * 400)
        while session.prompt_tokens is None:
            await asyncio.sleep(0)
        for _ in range(5):
            turns.append(await worker.run(lambda: 1))
        return turns

    made: list[Worker] = []

    def connection_worker() -> Worker:
        return made[-1]

    calls: list[int] = []
    passes = SessionHost.step

    def counted(host: SessionHost, step: Step) -> Logits:
        calls.append(len(step.tokens))
        return passes(host, step)

    original = Cloud.__init__

    def noting(cloud: Cloud, *arguments: object, **named: object) -> None:
        original(cloud, *arguments, **named)  # type: ignore[arg-type]
        made.append(cloud.worker)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionHost, "step", counted)
        patch.setattr(Cloud, "__init__", noting)
        linked(test)
    assert len(calls) < 50


def test_room_for_scores_is_set_aside_and_comes_back() -> None:
    cloud = Cloud(named_toy("toy-cloud"))
    third = SCORES_BYTES // 3
    with cloud._reserving(1, 1, third), cloud._reserving(1, 1, third), cloud._reserving(1, 1, third):
        with pytest.raises(CapacityError, match="the cloud is full at the moment"), cloud._reserving(1, 1, third):
            pass
        with cloud._reserving(1, 1, 0):
            pass  # other methods are served beside
    with pytest.raises(UsageError, match="choose a smaller ahead"), cloud._reserving(1, 1, SCORES_BYTES + 1):
        pass
    assert cloud._reserved_bytes == 0
    cloud.close()


SENTENCES = [
    ("all 64 contexts of /home/someone/x.gguf are in use", "all 64 contexts of x.gguf are in use"),
    ("the library /srv/private/docs.db is locked", "the library docs.db is locked"),
    ("cannot reach postgresql://u:s3cret@db.inside/docs (refused)", "cannot reach the library (refused)"),
    ("'~/notes/of mine/a.txt' cannot be read", "'a.txt' cannot be read"),
    (r"C:\Users\someone\docs.db is locked", "docs.db is locked"),
    (
        "the prompt has 3/4 of its bytes; see https://example.org/a/b",
        "the prompt has 3/4 of its bytes; see https://example.org/a/b",
    ),
    ("the folder /srv/private/docs/ is locked", "the folder docs/ is locked"),
    ("x" * 5000, "x" * 4096),
]


@pytest.mark.parametrize(("sentence", "crosses"), SENTENCES)
def test_what_crosses_names_no_folder_and_no_database(sentence: str, crosses: str) -> None:
    assert told(UsageError(sentence), ToyModel(toy_pieces(), name="/home/someone/x.gguf")) == crosses


@pytest.mark.parametrize("written", [" /", "/ ", "~/ ", " /a/ ", "/a/b ", "C:\\ ", " postgres://", "/" + "a" * 50 + " "])
def test_a_refusal_of_whatever_a_device_wrote_takes_no_time(written: str) -> None:
    """The sentence quotes a wrong option, which is as long as a frame."""
    began = time.process_time()
    told(UsageError(f"expansion must be numbers, not {written * (10**5 // len(written)) + ' '!r}"), named_toy("toy-cloud"))
    assert time.process_time() - began < 5.0


def test_a_prompt_of_blanks_is_answered_beside_others() -> None:
    async def run() -> None:
        async with toy_cloud(Limits(prompt_bytes=2**18)) as url, toy_device(url) as (device, connection):
            with pytest.raises(Exception, match="tokens, but with this max-tokens at most"):
                await device.generate(request("cloud", prompt=" " * 2**18), connection)
            assert (await device.generate(request(), connection)).tokens > 0

    asyncio.run(asyncio.wait_for(run(), 60))


def test_figures_of_floats_that_strayed_by_a_digit_are_what_they_can_be() -> None:
    host = SessionHost.__new__(SessionHost)
    host.answering, host.passes, host.compute_ms = None, 1, -1e-13
    assert host.last_word("end").compute_ms == 0.0
