"""What TCP/IP and TLS add to a frame, against sums by hand."""

import pytest

from antiphon.wire import messages as m
from antiphon.wire.packets import packet_bytes, packets
from wire.session.ends import CLOUD, DEVICE, TO_LIFE, Life, header, ready


@pytest.mark.parametrize(
    ("size", "tls", "count", "total"),
    [
        (13, True, 1, 13 + 22 + 52),
        (13, False, 1, 13 + 52),
        (1448, False, 1, 1500),
        (1449, False, 2, 1449 + 104),
        (1426, True, 1, 1500),
        (1427, True, 2, 1427 + 22 + 104),
        (2**14, True, 12, 2**14 + 22 + 12 * 52),
        (2**14 + 1, True, 12, 2**14 + 1 + 44 + 12 * 52),
        (92_292, True, 64, 92_292 + 6 * 22 + 64 * 52),
    ],
)
def test_sums(size: int, tls: bool, count: int, total: int) -> None:
    assert packets(size, tls=tls) == count
    assert packet_bytes(size, tls=tls) == total


def test_traffic_counts_them_frame_by_frame() -> None:
    ends = ready().walk(TO_LIFE[Life.RUNNING], session=1)
    for payload in (bytes(4), bytes(4), bytes(5000)):
        ends.say(DEVICE, m.Draft(0, 2, payload), 1)
    ends.say(CLOUD, m.Verdict(0, 2, bytes(3)), 1)
    sizes = [2 + size + header(2 + size, True) for size in (4, 4, 5000)]
    traffic = ends.of[DEVICE].counters[1]
    assert (traffic.up.frames, traffic.up.packets, traffic.down.packets) == (3, 1 + 1 + 4, 1)
    assert traffic.up.packet_bits == 8 * sum(packet_bytes(size) - size for size in sizes)
    assert (traffic.up + traffic.down).packets == 7
    assert (traffic.up + traffic.down).packet_bits == traffic.up.packet_bits + 8 * (22 + 52)
    assert traffic.up.bits == 8 * sum(sizes), "what TCP/IP and TLS add is told apart"
