"""Devices that break the protocol of `tslt` and `tslt-tree`: one clear sentence, the right code, the next session is served."""

from collections.abc import Sequence

import numpy as np
import pytest

from antiphon.core.distributions import Probs
from antiphon.core.rounding import ratios_of
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.wire import messages as m
from antiphon.wire.packing import Writer
from antiphon.wire.sparse import SparseCodec
from methods.speculative.peers import CHAIN, LONG, RIGHT, SHORT, TOKENS, TREE, common, on, told, tree
from support.links import linked, raw_session

PADDING = "the payload has padding that is not zero"


def test_the_numbers_that_the_cases_below_use() -> None:
    assert (common().size, common().target_size, common().common_bits, common().target_bits) == (265, 272, 9, 9)
    assert common().ends == {0}


def chain(*numbers: int, distributions: Sequence[Probs], turn: int = 0, wire: str = "delta") -> m.Draft:
    """Drafts and distributions as a device packs them."""
    writer = Writer()
    for number in numbers:
        writer.number(number, 9)
    SparseCodec(common().size, ratios_of(8), wire).write(writer, distributions)
    return m.Draft(turn, len(numbers), writer.finish())


def answered(method: str, message: m.Message, **options: object) -> m.Message:
    """What a device is answered that is right."""

    async def test(device: Device, connection: Connection) -> m.Message:
        given = {**(TREE if method == "tslt-tree" else CHAIN), **options}
        session = await raw_session(connection, method=method, options=given, max_tokens=TOKENS)
        await session.send(message)
        return await session.receive()

    return linked(test)


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
