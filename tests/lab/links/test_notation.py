"""Links in words: names, changes, values, and one sentence for what is none."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon_lab.links.link import Direction
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.profiles import PROFILES
from antiphon_lab.links.traces import Trace

FIGURES = {
    "lan": (1000e6, 1000e6, 0.2),
    "wifi": (17.18e6, 115.22e6, 14),
    "5g": (21.08e6, 166.13e6, 52),
    "4g": (6.3e6, 21.3e6, 55),
    "3g": (768e3, 1.6e6, 300),
    "satellite": (3.38e6, 18.13e6, 630),
    "satellite-leo": (13.89e6, 97.23e6, 45),
    "x-cosd": (30e6, 100e6, 0),
    "concord": (1000e6, 1000e6, 50),
    "tslt": (10e6, 1000e6, 0),
}


def test_the_profiles() -> None:
    """Rates and mean round trips in milliseconds, as their sources have them."""
    found = {name: (p.link.up.rate, p.link.down.rate, 1000 * p.link.round_trip()) for name, p in PROFILES.items()}
    assert {name: pytest.approx(figures) for name, figures in FIGURES.items()} == found
    assert all(len(profile.link.source) > 20 for profile in PROFILES.values())
    assert all(parse_link(name) == profile.link for name, profile in PROFILES.items())


def test_the_page_has_the_figures_and_the_sources() -> None:
    page = " ".join((Path(__file__).resolve().parents[3] / "docs" / "links.md").read_text().split())
    assert all(f"| `{name}" in page for name in PROFILES)
    assert all(profile.link.source in page for profile in PROFILES.values())


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x-cosd@200", "x-cosd,down=200Mbit"),
        ("x-cosd@0.5Gbit", "x-cosd,down=500Mbit"),
        ("concord@10", "concord,rtt=10ms"),
        ("tslt@2.5", "tslt, up = 2500kbit/s"),
        ("4g,loss=1%", "4g,loss=0.01"),
        ("4g,rtt=0", "4g,rtt=0ms"),
        ("4g,queue=64KiB", "4g,queue=65536"),
        ("rtt=50ms,up=1Mbit", "rtt=0.05s,up=1000000bit"),
    ],
)
def test_two_ways_to_write_a_link(text: str, same: str) -> None:
    one, other = parse_link(text), parse_link(same)
    assert (one.up, one.down, one.handshakes) == (other.up, other.down, other.handshakes)
    assert (one.name, other.name) == (text, same)


def test_every_value_can_be_changed(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("1\n2\n")
    changes = "jitter=5ms,loss=2%,floor=300ms,outage=1s-2s+4s-5s,every=20s,queue=9,overhead=7,mss=1200"
    link = parse_link(f"rtt=60ms,up=trace:{tmp_path / 't'},down=10Mbit,handshakes=1,{changes}")
    direction = Direction(10e6, 0.03, 0.005, 0.02, 0.3, ((1.0, 2.0), (4.0, 5.0)), 20.0, 1200, 7, 9)
    assert (link.down, link.handshakes) == (direction, 1)
    assert link.up == replace(direction, rate=Trace((1, 2), "t"))


def test_a_changed_profile_says_so() -> None:
    link = parse_link("4g,loss=1%,rtt=10ms")
    assert link.source == PROFILES["4g"].link.source + "; changed: loss=1%,rtt=10ms"
    assert parse_link("up=1Mbit").source == "as given"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "6g",
            "there is no link profile '6g': use one of lan, wifi, 5g, 4g, 3g, satellite, satellite-leo, x-cosd, concord, tslt,",
        ),
        ("", "there is no link profile ''"),
        ("4g@3", r"4g takes no @ \(of lan, .*, only x-cosd, concord, tslt do\): write a change such as 4g,rtt=10ms"),
        ("4g,speed=3", r"'speed=3' is no part of a link: after a profile \(lan, .*\) give values of up, down, rtt, "),
        ("4g,", "'' is no part of a link"),
        ("4g,3g", "'3g' is no part of a link"),
        ("rtt=50", "rtt must be a time such as 50ms or 1.5s, not '50'"),
        ("rtt=-5ms", "rtt must be a time such as 50ms"),
        ("rtt=ms", "rtt must be a time such as 50ms"),
        ("rtt=1h", "rtt must be a time such as 50ms"),
        (f"rtt={'9' * 400}s", "rtt must be a time such as 50ms"),
        ("up=5", "up must be a rate above 0 such as 768kbit, 10Mbit or 1Gbit, or trace:FILE, not '5'"),
        ("up=0Mbit", "up must be a rate above 0"),
        ("down=trace:no/such", "cannot read the trace no/such"),
        ("x-cosd@", "down must be a rate above 0"),
        ("x-cosd@fast", "down must be a rate above 0 .*, not 'fast'"),
        ("concord@1.2.3", "rtt must be a time"),
        ("loss=70%", "loss must be a share from 0 to 0.5 of the segments, not 0.7"),
        ("loss=some", "loss must be a share such as 1% or 0.01, not 'some'"),
        ("outage=5s", "outage must be times from-to such as 5s-7s or 5s-7s[+]20s-21s, not '5s'"),
        ("outage=7s-5s", "outages must be times from 0 s on"),
        ("queue=big", "queue must be a size in bytes such as 65536, 64KiB or 1MiB, not 'big'"),
        ("mss=1.5", "mss must be a whole number, not '1.5'"),
        ("mss=0", "a segment must hold at least 1 byte, not 0"),
        ("handshakes=9999999999", "handshakes must be a whole number"),
        ("handshakes=101", "handshakes must be 0 to 100 round trips, not 101"),
    ],
)
def test_what_is_no_link(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_link(text)
