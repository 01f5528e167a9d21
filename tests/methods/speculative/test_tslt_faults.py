"""Peers that break the protocol of `tslt` and `tslt-tree`: one clear sentence, the right code, the next session is served."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.distributions import Probs
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import ProtocolError, RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send
from antiphon.models.toy import named_toy
from antiphon.vocabulary import CommonVocabulary, bits_for, common_vocabulary
from antiphon.wire import messages as m
from antiphon.wire.packing import Writer
from antiphon.wire.sparse import SparseCodec
from support.links import linked, raw_session, request

TOKENS = 8
TREE = {"expansion": "2,2", "truncate": "k=4", "draft_precision": 8, "wire": "delta", "replacement": False}
CHAIN = {"draft_length": 3, "truncate": "k=4", "draft_precision": 8, "wire": "delta"}
SHORT, LONG = "the payload is shorter than its message says", "the payload is longer than its message says"
PADDING = "the payload has padding that is not zero"


@cache
def common() -> CommonVocabulary:
    """265 tokens of 272, so nine bits can name one that there is not; 0 is the end of an answer."""
    return common_vocabulary(named_toy("toy-device").vocabulary, named_toy("toy-cloud").vocabulary)


def test_the_numbers_that_the_cases_below_use() -> None:
    assert (common().size, common().target_size, common().common_bits, common().target_bits) == (265, 272, 9, 9)
    assert common().ends == {0}


# A wrong device, and the cloud's own halves.


def on(*numbers: int) -> Probs:
    """A distribution on these tokens."""
    distribution = np.zeros(common().size)
    distribution[list(numbers)] = 1 / len(numbers)
    return quantise_ratios(ratios_of(8))(distribution)


Siblings = tuple[int, Sequence[int]]
"""How many children a node may have, and those that are listed."""


def tree(
    layers: int,
    *nodes: Siblings,
    distributions: Sequence[Probs],
    turn: int = 0,
    claimed: int | None = None,
    wire: str = "delta",
) -> m.Draft:
    """A tree as a device packs it, whatever it lists. claimed: the count of children that the first node says it has."""
    writer = Writer()
    for width, numbers in nodes:
        writer.number((claimed or len(numbers)) - 1, bits_for(width))
        claimed = None
        for number in numbers:
            writer.number(number, 9)
    SparseCodec(common().size, ratios_of(8), wire).write(writer, distributions)
    return m.Draft(turn, layers, writer.finish())


def chain(*numbers: int, distributions: Sequence[Probs], turn: int = 0, wire: str = "delta") -> m.Draft:
    """Drafts and distributions as a device packs them."""
    writer = Writer()
    for number in numbers:
        writer.number(number, 9)
    SparseCodec(common().size, ratios_of(8), wire).write(writer, distributions)
    return m.Draft(turn, len(numbers), writer.finish())


def told(method: str, message: m.Message, max_tokens: int = TOKENS, **options: object) -> tuple[str, str]:
    """What a wrong device is told: code and sentence. The connection must survive it, and serve this method again."""

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        given = {**(TREE if method == "tslt-tree" else CHAIN), **options}
        session = await raw_session(connection, method=method, options=given, max_tokens=max_tokens)
        await session.send(message)
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        for name in ("dssd", method):
            assert (await device.generate(request(name), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    return linked(test)


def answered(method: str, message: m.Message, **options: object) -> m.Message:
    """What a device is answered that is right."""

    async def test(device: Device, connection: Connection) -> m.Message:
        given = {**(TREE if method == "tslt-tree" else CHAIN), **options}
        session = await raw_session(connection, method=method, options=given, max_tokens=TOKENS)
        await session.send(message)
        return await session.receive()

    return linked(test)


RIGHT = tree(2, (2, [5, 6]), (2, [7]), (2, [8, 9]), distributions=[on(5, 6), on(7), on(8, 9)])


def test_a_tree_that_is_right() -> None:
    """Else those below might fail for another reason. Fewer layers, and none, are right too; so is an end without children."""
    for message in (
        RIGHT,
        tree(1, (2, [5, 6]), distributions=[on(5, 6)]),
        tree(0, distributions=[]),
        tree(2, (2, [0, 6]), (2, [7]), distributions=[on(0, 6), on(7)]),
    ):
        verdict = answered("tslt-tree", message)
        assert isinstance(verdict, m.Verdict)
        assert verdict.round == 0
    assert isinstance(answered("tslt", chain(5, 6, distributions=[on(5, 6), on(6)])), m.Verdict)


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (
            tree(3, (2, [5]), (2, [5]), (2, [5]), distributions=[on(5)] * 3),
            "out-of-range",
            "at most 2 layers fit here, but 3 came",
        ),
        (tree(2**20, distributions=[]), "out-of-range", "at most 2 layers fit here, but 1048576 came"),
        (tree(1, (2, [5, 5]), distributions=[on(5, 6)]), "out-of-range", "a child was drawn twice without replacement"),
        (
            tree(2, (2, [5, 6]), (2, [7, 7]), (2, [8]), distributions=[on(5, 6), on(7), on(8)]),
            "out-of-range",
            "a child was drawn twice without replacement",
        ),
        (
            tree(1, (2, [5, 7]), distributions=[on(5, 6)]),
            "bad-probability",
            "a child has probability 0, so it cannot have been drawn",
        ),
        (
            tree(2, (2, [5]), (2, [7]), distributions=[on(5), on(5, 6)]),
            "bad-probability",
            "a child has probability 0, so it cannot have been drawn",
        ),
        (tree(1, (2, [5, 265]), distributions=[on(5, 6)]), "out-of-range", "the id of a child is 265, but must be below 265"),
        (tree(1, (2, [511]), distributions=[on(5)]), "out-of-range", "the id of a child is 511, but must be below 265"),
        (tree(1, (2, [5, 6]), distributions=[]), "bad-frame", SHORT),
        (tree(2, (2, [5, 6]), (2, [7]), (2, [8]), distributions=[on(5, 6), on(7)]), "bad-frame", SHORT),
        (tree(1, (2, [5, 6]), distributions=[on(5, 6), on(7)]), "bad-frame", LONG),
        (tree(0, distributions=[on(5)]), "bad-frame", LONG),
        (tree(2, (2, [0, 6]), (2, [7]), (2, [8]), distributions=[on(0, 6), on(7), on(8)]), "bad-frame", PADDING),
        (tree(2, (2, [5]), distributions=[on(5)]), "bad-frame", SHORT),
        (tree(1, (2, [5, 6]), distributions=[on(5, 6)], turn=1), "out-of-turn", "Draft of round 1 came in round 0"),
        (m.Retry(0), "out-of-turn", "Retry came where Draft was due"),
    ],
)
def test_a_tree_that_no_device_grows(message: m.Message, code: str, sentence: str) -> None:
    """Children of an end, or of a layer that is not there, are bits that stand where something else is due."""
    assert told("tslt-tree", message) == (code, sentence)


def test_a_count_of_children_beyond_the_expansion() -> None:
    """Three take two bits, which can say a fourth."""
    message = tree(1, (3, [5, 6, 7, 8]), distributions=[on(5, 6, 7, 8)])
    wanted = "out-of-range", "the count of children is 3, but must be below 3"
    assert told("tslt-tree", message, expansion="3") == wanted


def test_more_children_listed_than_there_are() -> None:
    assert told("tslt-tree", tree(1, (2, [5]), distributions=[], claimed=2)) == ("bad-frame", SHORT)


@pytest.mark.parametrize(("max_tokens", "room"), [(2, 1), (1, 0)])
def test_layers_beyond_the_end_of_the_answer(max_tokens: int, room: int) -> None:
    """One token is the cloud's own, always."""
    found = told("tslt-tree", RIGHT, max_tokens=max_tokens)
    assert found == ("out-of-range", f"at most {room} layers fit here, but 2 came")


def test_a_child_may_be_drawn_twice_with_replacement() -> None:
    """It is one node, so the layer below it has one list of children."""
    message = tree(2, (2, [5, 5]), (2, [7, 7]), distributions=[on(5, 6), on(7)])
    assert isinstance(answered("tslt-tree", message, replacement=True), m.Verdict)
    twice = tree(2, (2, [5, 5]), (2, [7, 7]), (2, [7, 7]), distributions=[on(5, 6), on(7), on(7)])
    assert told("tslt-tree", twice, replacement=True) == ("bad-frame", SHORT)


@pytest.mark.core(3)
@pytest.mark.parametrize(
    ("message", "code", "sentence"),
    [
        (
            chain(5, 6, distributions=[on(5), on(5, 7)]),
            "bad-probability",
            "draft 2 has probability 0, so it cannot have been drawn",
        ),
        (chain(5, 6, 7, 8, distributions=[on(5)] * 4), "out-of-range", "at most 3 drafts fit here, but 4 came"),
        (chain(265, distributions=[on(5)]), "out-of-range", "the id of draft 1 is 265, but must be below 265"),
        (chain(5, 6, distributions=[on(5)]), "bad-frame", SHORT),
        (chain(5, distributions=[on(5), on(6)]), "bad-frame", LONG),
        (chain(distributions=[on(5)]), "bad-frame", LONG),
        (chain(5, distributions=[on(5)], turn=1), "out-of-turn", "Draft of round 1 came in round 0"),
        (m.Retry(0), "out-of-turn", "Retry came where Draft was due"),
    ],
)
def test_a_chain_that_no_device_drafts(message: m.Message, code: str, sentence: str) -> None:
    assert told("tslt", message) == (code, sentence)


@pytest.mark.core(3)
@pytest.mark.parametrize(
    "garbage", [b"\xff" * 64, b"\x00" * 64, bytes(range(64)), b"\xff" * 4, b""], ids=lambda data: data[:4].hex()
)
@pytest.mark.parametrize("method", ["tslt", "tslt-tree"])
def test_packed_distributions_that_are_none(method: str, garbage: bytes) -> None:
    """Bytes that the entropy coder cannot have written are the peer's fault, not a crash that ends everybody's session."""
    writer = Writer()
    writer.number(0, 1 if method == "tslt-tree" else 0)  # one child of two
    writer.number(5, 9)
    writer.array(np.frombuffer(garbage, np.uint8))
    code, sentence = told(method, m.Draft(0, 1, writer.finish()), wire="tight")
    assert code in ("bad-frame", "out-of-range", "bad-probability")
    assert "distribution" in sentence


@pytest.mark.core(1)
@pytest.mark.parametrize("method", ["tslt", "tslt-tree"])
def test_packed_distributions_of_another_number(method: str) -> None:
    for distributions in ([], [on(5)] * 2):
        made = {
            "tslt": chain(5, distributions=distributions, wire="tight"),
            "tslt-tree": tree(1, (2, [5]), distributions=distributions, wire="tight"),
        }
        code, _ = told(method, made[method], wire="tight")
        assert code == "bad-frame"


# A wrong cloud, and the device's own halves.


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


def failing(method: str, *replies: m.Message, ending: bool = False, **options: object) -> tuple[str, str]:
    """What a device says of a cloud that answers so: code and sentence. The connection must survive it.

    ending: the device's model is sure that the answer ends here.
    """
    right = WITHOUT_DOCUMENTS[method]
    script = Script(tuple(lambda message, reply=reply: reply for reply in replies))
    wrong = Method("dsd", "", True, right.device, script, options=right.options)
    given = right.options_from({**TREE, **CHAIN, **options})
    bias = ((int(common().cloud_ids[0]), 100.0),) if ending else ()
    sampling = SamplingParams(temperature=1.0, logit_bias=bias)

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        with pytest.raises(ProtocolError) as caught:
            await device.generate(Request("the ", "dsd", given, sampling, TOKENS, seed=1), connection)
        for name in ("dssd", method):
            assert (await device.generate(request(name), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    return linked(test, methods={**WITHOUT_DOCUMENTS, "dsd": wrong})


def verdict(accepted: int, *numbers: tuple[int, int], turn: int = 0) -> m.Verdict:
    writer = Writer()
    for value, bits in numbers:
        writer.number(value, bits)
    return m.Verdict(turn, accepted, writer.finish())


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("reply", "expansion", "code", "sentence"),
    [
        (verdict(3, (0, 1), (0, 1), (5, 9)), "2,2", "out-of-range", "3 drafts were accepted, but the tree ends before"),
        (verdict(2**20), "1", "out-of-range", "1048576 drafts were accepted, but the tree ends before"),
        (verdict(1, (3, 2), (5, 9)), "3,1", "out-of-range", "the place of an accepted child is 3, but must be below 3"),
        (verdict(2, (2, 2), (3, 2), (5, 9)), "3,3", "out-of-range", "the place of an accepted child is 3, but must be below 3"),
        (verdict(0, (272, 9)), "2,2", "out-of-range", "the token after the accepted ones is 272, but must be below 272"),
        (
            verdict(2, (1, 1), (1, 1), (300, 9)),
            "2,2",
            "out-of-range",
            "the token after the accepted ones is 300, but must be below 272",
        ),
        (verdict(0), "2,2", "bad-frame", SHORT),
        (verdict(2, (1, 1)), "2,2", "bad-frame", SHORT),
        (verdict(0, (5, 9), (5, 9)), "2,2", "bad-frame", LONG),
        (verdict(0, (5, 9), (1, 1)), "2,2", "bad-frame", LONG),
        (verdict(0, (5, 9), turn=1), "2,2", "out-of-turn", "Verdict of round 1 came in round 0"),
        (m.Tokens(b"\0\0"), "2,2", "out-of-turn", "Tokens came where Verdict was due"),
        (m.Resampling(0, b""), "2,2", "out-of-turn", "Resampling came where Verdict was due"),
    ],
)
def test_an_answer_to_a_tree_that_no_cloud_gives(reply: m.Message, expansion: str, code: str, sentence: str) -> None:
    assert failing("tslt-tree", reply, expansion=expansion, truncate="off") == (code, sentence)


def test_an_accepted_end_has_nothing_behind_it() -> None:
    """Neither a token nor another node; and not even a bit."""
    one_child = {"ending": True, "expansion": "1,1"}
    assert failing("tslt-tree", verdict(1, (5, 9)), **one_child) == ("bad-frame", LONG)
    assert failing("tslt-tree", verdict(1, (1, 1)), **one_child) == ("bad-frame", LONG)
    beyond = "out-of-range", "2 drafts were accepted, but the tree ends before"
    assert failing("tslt-tree", verdict(2, (5, 9)), **one_child) == beyond


def test_an_accepted_end_of_a_chain_has_nothing_behind_it() -> None:
    assert failing("tslt", verdict(1, (5, 9)), ending=True) == ("bad-frame", LONG)
    assert failing("tslt", verdict(2, (5, 9)), ending=True) == ("out-of-range", "2 drafts were accepted, but only 1 were sent")


@pytest.mark.core(2)
@pytest.mark.parametrize(
    ("reply", "code", "sentence"),
    [
        (verdict(4, (5, 9)), "out-of-range", "4 drafts were accepted, but only 3 were sent"),
        (verdict(3, (272, 9)), "out-of-range", "the bonus token is 272, but must be below 272"),
        (verdict(0, (300, 9)), "out-of-range", "the correction is 300, but must be below 272"),
        (verdict(0), "bad-frame", SHORT),
        (verdict(0, (5, 9), (5, 9)), "bad-frame", LONG),
        (verdict(0, (5, 9), turn=1), "out-of-turn", "Verdict of round 1 came in round 0"),
    ],
)
def test_an_answer_to_a_chain_that_no_cloud_gives(reply: m.Message, code: str, sentence: str) -> None:
    assert failing("tslt", reply) == (code, sentence)


def test_a_fault_in_a_later_round() -> None:
    """A first round that is right changes nothing."""
    first = verdict(1, (1, 1), (40, 9))
    assert failing("tslt-tree", first, verdict(0, (5, 9))) == ("out-of-turn", "Verdict of round 0 came in round 1")
    third = verdict(3, (0, 9), turn=1)
    assert failing("tslt-tree", first, third) == ("out-of-range", "3 drafts were accepted, but the tree ends before")


@pytest.mark.medium
def test_an_option_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    for options, sentence in [
        ({"expansion": "9,9"}, "a tree may have at most 63 nodes, but 9,9 has 90"),
        ({"expansion": "2,,2"}, "expansion must be numbers from 1 on with commas between, not '2,,2'"),
        ({"truncate": "k=0"}, "truncate must be k=NUMBER from 1 on"),
        ({"draft_precision": 7}, "draft precision must be 8, 16 or 32 bits, not 7"),
        ({"wire": "tight", "draft_precision": 32}, "wire tight needs a draft precision of 8 or 16 bits"),
    ]:
        assert sentence in told("tslt-tree", RIGHT, **options)[1]


def test_a_cloud_that_lacks_the_entropy_coder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses `tight` with the remedy, and serves the other forms."""
    monkeypatch.setitem(sys.modules, "constriction", None)

    async def test(device: Device, connection: Connection) -> tuple[str, str]:
        session = await raw_session(connection, method="tslt", options={**CHAIN, "wire": "tight"})
        with pytest.raises(RemoteError) as caught:
            await session.receive()
        assert (await device.generate(request("tslt"), connection)).tokens > 0
        return caught.value.code, str(caught.value)

    code, sentence = linked(test)
    assert code == "refused"
    assert sentence.endswith("pip install 'antiphon[tight]'")
