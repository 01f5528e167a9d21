"""Growing trees in a stream against peers that break the protocol, or send more than there is any use for."""

import inspect
from collections import deque
from typing import Any

import pytest

from antiphon.core.chance import PhiloxChance
from antiphon.core.stream import RUN_AHEAD
from antiphon.core.tree import ROOT
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, DeviceSide
from antiphon.methods.effects import Came, Now, Receive, Send, Step
from antiphon.methods.speculative.coupled_tree import CoupledTreeCloud, CoupledTreeDevice
from antiphon.methods.speculative.options import CoupledTreeOptions
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Message, Progress, Verdict
from antiphon.wire.packing import Writer
from methods.speculative.ahead import PLAIN, alike, reference


def cloud_half(patience: float = 0.0, tokens: int = 8) -> tuple[CloudSide, Any]:
    side = alike().cloud_side(tokens, PLAIN, PhiloxChance(3))
    return side, CoupledTreeCloud(side, CoupledTreeOptions(nodes=5, patience=patience)).run()


def fed(half: Any, inbox: deque[Message]) -> list[Verdict]:
    """Run a cloud half on these messages until it waits without end or is over."""
    verdicts: list[Verdict] = []
    answer: Any = inbox.popleft() if inspect.getgeneratorstate(half) == inspect.GEN_SUSPENDED else None
    try:
        while True:
            effect = half.send(answer)
            answer = effect.run() if isinstance(effect, Step) else 0.0 if isinstance(effect, Now | Came) else None
            verdicts += [effect.message] if isinstance(effect, Send) else []
            if isinstance(effect, Receive):
                if not inbox and effect.within is None:
                    return verdicts
                answer = inbox.popleft() if inbox else None
    except StopIteration:
        return verdicts


def nodes_of(epoch: int, *listed: tuple[int, int], known: int = 0) -> Draft:
    writer = Writer()
    for place, (parent, number) in enumerate(listed, known):
        writer.number(parent + 1, bits_for(place + 1))
        writer.number(number, 2)
    return Draft(epoch, len(listed), writer.finish())


def test_a_cloud_in_a_stream_goes_on_without_a_node() -> None:
    side, half = cloud_half()
    assert len(fed(half, deque())) == 8
    assert side.transcript.numbers == reference(alike(), PLAIN, PhiloxChance(3), 8)


def test_it_runs_so_far_ahead_and_no_further() -> None:
    side, half = cloud_half(tokens=200)
    side.transcript._ends = frozenset()
    assert len(fed(half, deque())) == RUN_AHEAD
    assert len(fed(half, deque([Progress(10)]))) == 10


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([nodes_of(1, (ROOT, 0))], "nodes of epoch 1 came in epoch 0"),
        ([Progress(9)], "the answer has 0 tokens, not 9"),
        ([Verdict(0, 0, b"")], "Verdict came where drafts were due"),
        ([nodes_of(0, (ROOT, 0), (ROOT, 0))], "a node has the same child twice"),
        ([nodes_of(0, *((place - 1, 0) for place in range(64)))], "at most 63 nodes may come at once, but 64 came"),
    ],
)
def test_messages_that_cannot_be(messages: list[Message], sentence: str) -> None:
    _, half = cloud_half()
    with pytest.raises(ProtocolError, match=sentence):
        fed(half, deque(messages))


def test_a_device_that_sends_and_sends_is_kept_in_bounds() -> None:
    """Nodes that never stand, as many as a message can hold, before each of the cloud's passes."""
    side, half = cloud_half(tokens=40)
    flood: deque[Message] = deque()
    for known in range(0, 2_520, 63):
        flood.append(nodes_of(0, *((known + place - 1, 0) for place in range(63)), known=known))
    assert len(fed(half, flood)) >= 1
    assert side.transcript.numbers == reference(alike(), PLAIN, PhiloxChance(3), 40)


def verdict(round: int, accepted: int, *places: int, token: int | None) -> Verdict:
    writer = Writer()
    for place in places:
        writer.small(place)
    if token is not None:
        writer.number(token, 2)
    return Verdict(round, accepted, writer.finish())


def tell(device: DeviceSide, *verdicts: Message) -> None:
    """Let a device in a stream have these, once it has nothing more to do."""
    half: Any = CoupledTreeDevice(device, CoupledTreeOptions(nodes=5)).run()
    inbox, answer = deque(verdicts), None
    while True:
        effect = half.send(answer)
        answer = effect.run() if isinstance(effect, Step) else 0.0 if isinstance(effect, Now | Came) else None
        if isinstance(effect, Receive) and effect.within is None:
            if not inbox:
                return
            answer = inbox.popleft()


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([verdict(99, 0, token=0)], "a verdict on 99 messages came behind one on 0"),
        ([verdict(1, 0, token=0), verdict(0, 0, token=0)], "a verdict on 0 messages came behind one on 1"),
        ([verdict(1, 9, *[0] * 9, token=0)], "9 drafts were accepted, but the tree ends before"),
        ([verdict(0, 1, 0, token=0)], "1 drafts were accepted, but the tree ends before"),
        ([verdict(1, 1, 7, token=0)], "the place of an accepted child"),
        ([verdict(1, 0, token=3)], "the token after the accepted ones is 3, but must be below 3"),
        ([Verdict(1, 0, b"")], "the payload is shorter than its message says"),
        ([Draft(0, 0, b"")], "Draft came where Verdict was due"),
    ],
)
def test_verdicts_that_cannot_be(messages: list[Message], sentence: str) -> None:
    device, _ = alike().sides(12, PLAIN, PhiloxChance(3))
    with pytest.raises(ProtocolError, match=sentence):
        tell(device, *messages)
