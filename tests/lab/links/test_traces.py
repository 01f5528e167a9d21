"""Recorded rates: the file's form, and packets that go when it says, again and again."""

from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon_lab.links.link import Channel, Direction
from antiphon_lab.links.traces import PACKET_BYTES, Trace, read_trace

FULL = 1448
"""A frame that with its headers is one packet."""


def test_a_file_is_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "road.up"
    file.write_text("0\n5\n5\n 12 \n")
    trace = read_trace(file)
    assert trace == Trace((0, 5, 5, 12), "road.up")
    assert trace.rate == 4 * PACKET_BYTES * 8 / 0.012


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have a line"),
        ("0\n0\n", "its last time must be above 0 ms"),
        ("1\nx\n", "line 2 of the trace .* must be a whole number of milliseconds, not 'x'"),
        ("1\n\n2\n", "line 2 of the trace .* must be a whole number of milliseconds, not ''"),
        ("1\n2.5\n", "line 2 of the trace .*, not '2.5'"),
        ("-1\n", "line 1 of the trace .*, not '-1'"),
        ("1\n" + 50 * "9" + "\n", "line 2 of the trace .*, not '9999999999999999999999999999999999999999'"),
        ("1\n4\n3\n", "line 3 of the trace .* goes back in time, from 4 to 3 ms"),
        ("1\n\u0662\n", "is no text"),
    ],
)
def test_what_is_no_trace(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.trace"
    file.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read_trace(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read the trace .*/none \(No such file or directory\)"):
        read_trace(tmp_path / "none")


@pytest.mark.parametrize("times", [(), (0,), (-1, 3), (3, 1)])
def test_times_that_are_no_trace(times: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"the (times of the )?trace"):
        Trace(times)


def test_packets_go_at_their_times_and_the_trace_begins_again() -> None:
    channel = Channel(Direction(Trace((2, 3, 3, 10))), 1)
    assert [channel.arrival(FULL, 0.0) for _ in range(6)] == [0.002, 0.003, 0.003, 0.010, 0.012, 0.013]
    assert channel.arrival(1, 0.0135) == 0.020  # the second packet of 13 ms went without it
    assert channel.arrival(1, 1.0) == 1.0  # as one round of the trace ends, a packet can leave
    assert channel.arrival(FULL, 1.0) == 1.002


def test_a_packet_carries_what_fits_into_it() -> None:
    channel = Channel(Direction(Trace((2, 4)), overhead=0), 1)
    assert [channel.arrival(500, 0.0) for _ in range(4)] == [0.002, 0.002, 0.002, 0.004]
    assert channel.arrival(1000, 0.004) == 0.004
    assert channel.arrival(3001, 0.004) == 0.010


def test_a_queue_before_a_trace() -> None:
    channel = Channel(Direction(Trace((2, 4)), overhead=0, queue=3000), 1)
    channel.arrival(6000, 0.0)
    assert channel.accepted(0.0) == 0.004
