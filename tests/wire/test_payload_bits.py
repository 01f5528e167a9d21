"""What of a message is payload and what is framing."""

from collections.abc import Callable

import pytest

from antiphon.wire import messages as m
from wire.message_samples import KINDS, sample

PAYLOADS: list[tuple[Callable[[bytes], m.Message], int]] = [
    (lambda payload: m.Draft(0, 1, payload), 8),
    (lambda payload: m.Verdict(0, 1, payload), 8),
    (m.Tokens, 8),
    (lambda payload: m.Resampling(0, payload), 8),
    (lambda payload: m.Evidence(0, 1, payload), 8),
    (lambda payload: m.Ask(0, 1, payload), 8),
    (lambda payload: m.Supplement(0, 1, payload), 8),
    (lambda payload: m.Realign(1, 1, 2, payload), 8),
    (lambda payload: m.Probe(1, 0, 0, 0, 0, payload), 0),
    (m.Ping, 0),
]


@pytest.mark.parametrize(("make", "bits_a_byte"), PAYLOADS)
@pytest.mark.parametrize("size", [0, 1, 1000])
def test_payload_bits(make: Callable[[bytes], m.Message], bits_a_byte: int, size: int) -> None:
    assert m.payload_bits(make(bytes(size))) == bits_a_byte * size


COUNTED = {m.Draft, m.Verdict, m.Resampling, m.Tokens, m.Evidence, m.Ask, m.Supplement, m.Realign}


@pytest.mark.parametrize("kind", sorted(set(KINDS) - COUNTED, key=lambda kind: kind.__name__))
def test_everything_else_is_framing(kind: type) -> None:
    assert m.payload_bits(sample(kind)) == 0
