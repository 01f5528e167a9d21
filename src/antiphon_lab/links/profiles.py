"""Links by name, each with the source of its figures. `notation.parse_link` reads a name with changes.

Where a source gives a mean or median round trip, a profile's two delays and its jitter (which is ours unless the source has it)
add up to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from antiphon_lab.links.link import HANDSHAKES, HEADER_BYTES, QUEUE_BYTES, Direction, Link

MEGABIT = 1e6
UNLIMITED = 1000 * MEGABIT
"""Where a source names no rate: 1 Gbit/s."""

FAST_QUEUE_BYTES = 4 * 2**20
"""The queue from 1 Gbit/s on, where less is empty before a sender of real time has woken up; Linux's largest by default."""


WINDOW = 10
"""Segments that TCP has on their way at first (RFC 6928), as Linux does."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named link. parameter: the key and the unit of what may follow an `@`, if something may."""

    link: Link
    parameter: tuple[str, str] | None = None


def _profile(
    name: str,
    source: str,
    *,
    up: float,
    down: float,
    round_trip: float,
    jitter: float = 0.0,
    overhead: int = HEADER_BYTES,
    handshakes: int = HANDSHAKES,
    window: int = WINDOW,
    parameter: tuple[str, str] | None = None,
) -> Profile:
    """Rates in Mbit/s, times in milliseconds; `round_trip` without the jitter of both ways."""

    def direction(rate: float) -> Direction:
        queue = FAST_QUEUE_BYTES if MEGABIT * rate >= UNLIMITED else QUEUE_BYTES
        return Direction(MEGABIT * rate, round_trip / 2000, jitter / 1000, overhead=overhead, queue=queue, window=window)

    return Profile(Link(name, direction(up), direction(down), source, handshakes), parameter)


_PROFILES = (
    _profile(
        "lan",
        "Gigabit Ethernet (IEEE 802.3ab); a round trip of 0.2 ms through one switch is our figure",
        up=1000,
        down=1000,
        round_trip=0.2,
        handshakes=2,
    ),
    _profile(
        "wifi",
        "Ookla, fixed lines in the USA, Q2 2021, medians: 115.22 Mbit/s down, 17.18 up, 14 ms; jitter of 2 ms each way is ours",
        up=17.18,
        down=115.22,
        round_trip=10,
        jitter=2,
    ),
    _profile(
        "5g",
        "Ookla: world medians of Q3 2021, 166.13 Mbit/s down, 21.08 up; medians of operators in the USA, Q4 2023, 48 to 63 ms: "
        "52 here; jitter of 4 ms each way is ours",
        up=21.08,
        down=166.13,
        round_trip=44,
        jitter=4,
    ),
    _profile(
        "4g",
        "Opensignal, USA, Q1 2019: 21.3 Mbit/s down, 6.3 up, 44 to 66 ms: 55 here; jitter of 5 ms each way is ours",
        up=6.3,
        down=21.3,
        round_trip=45,
        jitter=5,
    ),
    _profile(
        "3g",
        'WebPageTest, "Mobile 3G": 1.6 Mbit/s down, 768 kbit/s up, 300 ms, no loss',
        up=0.768,
        down=1.6,
        round_trip=300,
    ),
    _profile(
        "satellite",
        "geostationary: Ookla, Viasat in the USA, Q2 2021, medians: 18.13 Mbit/s down, 3.38 up, 630 ms; jitter of 10 ms each "
        "way is ours",
        up=3.38,
        down=18.13,
        round_trip=610,
        jitter=10,
    ),
    _profile(
        "satellite-leo",
        "low orbit: Ookla, Starlink in the USA, Q2 2021, medians: 97.23 Mbit/s down, 13.89 up, 45 ms; jitter of 5 ms each way "
        "is ours",
        up=13.89,
        down=97.23,
        round_trip=35,
        jitter=5,
    ),
    _profile(
        "x-cosd",
        "X-CoSD, second-hand: 30 Mbit/s up, 100 to 300 down (@200 is 200; 100 here); bits over rates: no delay, no headers",
        up=30,
        down=100,
        round_trip=0,
        overhead=0,
        window=0,
        parameter=("down", "Mbit"),
    ),
    _profile(
        "concord",
        "CONCORD, V-A: 50 ms of round trip put into a path on one machine, which has no rate (1 Gbit/s here); @10 is 10 ms",
        up=1000,
        down=1000,
        round_trip=50,
        handshakes=2,
        parameter=("rtt", "ms"),
    ),
    _profile(
        "tslt",
        "TSLT, 2.2 and 5: a sweep of the uplink's rate (@5 is 5 Mbit/s; 10 here is ours); as in the paper the downlink costs "
        "nothing to speak of (1 Gbit/s), no delay, no headers",
        up=10,
        down=1000,
        round_trip=0,
        overhead=0,
        window=0,
        parameter=("up", "Mbit"),
    ),
)

PROFILES: Mapping[str, Profile] = {profile.link.name: profile for profile in _PROFILES}
