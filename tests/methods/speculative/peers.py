"""What the peers that break a protocol share: the tokens of the toys, trees and chains for `tslt`, and what is told of them."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from antiphon.core.distributions import Probs
from antiphon.core.rounding import quantise_ratios, ratios_of
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import RemoteError
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


@cache
def common() -> CommonVocabulary:
    """265 tokens of 272, so nine bits can name one that there is not; 0 is the end of an answer."""
    return common_vocabulary(named_toy("toy-device").vocabulary, named_toy("toy-cloud").vocabulary)


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


RIGHT = tree(2, (2, [5, 6]), (2, [7]), (2, [8, 9]), distributions=[on(5, 6), on(7), on(8, 9)])


def verdict(accepted: int, *numbers: tuple[int, int], turn: int = 0) -> m.Verdict:
    writer = Writer()
    for value, bits in numbers:
        writer.number(value, bits)
    return m.Verdict(turn, accepted, writer.finish())
