"""How a link is written: `4g`, `concord,rtt=10ms`, `x-cosd@200`, `rtt=50ms,up=1Mbit,down=10Mbit,jitter=5ms,loss=1%`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from antiphon.errors import UsageError
from antiphon_lab.links.link import Direction, Link
from antiphon_lab.links.profiles import PROFILES, UNLIMITED
from antiphon_lab.links.traces import Rate, read_trace

_CUSTOM = Link("link", Direction(UNLIMITED), Direction(UNLIMITED), "as given")


def parse_link(text: str) -> Link:
    """The link that a text names: a profile, changes of it, or values alone. Raises UsageError."""
    head, *rest = (part.strip() for part in text.split(","))
    if "=" in head:
        link, changes = _CUSTOM, [head, *rest]
    else:
        link, given = _named(head)
        changes = [*given, *rest]
    for change in changes:
        link = _changed(link, change)
    source = f"{link.source}; changed: {','.join(changes)}" if changes and link.source != _CUSTOM.source else link.source
    return replace(link, name=text.strip(), source=source)


def _named(head: str) -> tuple[Link, list[str]]:
    """The profile of `name` or `name@value`, and the change that the value is."""
    name, at, value = head.partition("@")
    profile = PROFILES.get(name)
    if profile is None:
        raise UsageError(f"there is no link profile {name!r}: use one of {_NAMES}, or values such as {_EXAMPLE}")
    if not at:
        return profile.link, []
    if profile.parameter is None:
        takers = ", ".join(known for known, other in PROFILES.items() if other.parameter)
        raise UsageError(
            f"the link profile {name} takes no @ (of {_NAMES}, only {takers} do): write a change such as {name},rtt=10ms"
        )
    key, unit = profile.parameter
    return profile.link, [f"{key}={value}{unit}" if re.fullmatch("[0-9.]+", value) else f"{key}={value}"]


def _changed(link: Link, change: str) -> Link:
    key, _, value = (part.strip() for part in change.partition("="))
    handler = _KEYS.get(key)
    if handler is None:
        keys = ", ".join(_KEYS)
        raise UsageError(
            f"{change!r} is no part of a link: after a profile ({_NAMES}) give values of {keys}, such as {_EXAMPLE}"
        )
    return handler(link, value)


def _both(link: Link, **values: Any) -> Link:
    return replace(link, up=replace(link.up, **values), down=replace(link.down, **values))


def _set_up(link: Link, value: str) -> Link:
    return replace(link, up=replace(link.up, rate=_rate("up", value)))


def _set_down(link: Link, value: str) -> Link:
    return replace(link, down=replace(link.down, rate=_rate("down", value)))


def _set_handshakes(link: Link, value: str) -> Link:
    return replace(link, handshakes=_whole("handshakes", value))


def _set_outages(link: Link, value: str) -> Link:
    spans = [span.split("-", 1) for span in value.split("+")]
    if any(len(span) != 2 for span in spans):
        raise UsageError(f"outage must be times from-to such as 5s-7s or 5s-7s+20s-21s, not {value!r}")
    times = tuple((_time("outage", since), _time("outage", until)) for since, until in spans)
    return _both(link, outages=times)


_KEYS: Mapping[str, Callable[[Link, str], Link]] = {
    "up": _set_up,
    "down": _set_down,
    "rtt": lambda link, value: _both(link, delay=_time("rtt", value) / 2),
    "jitter": lambda link, value: _both(link, jitter=_time("jitter", value)),
    "loss": lambda link, value: _both(link, loss=_share("loss", value)),
    "floor": lambda link, value: _both(link, timeout_floor=_time("floor", value)),
    "outage": _set_outages,
    "every": lambda link, value: _both(link, outage_period=_time("every", value)),
    "queue": lambda link, value: _both(link, queue=_size("queue", value)),
    "overhead": lambda link, value: _both(link, overhead=_whole("overhead", value)),
    "mss": lambda link, value: _both(link, mss=_whole("mss", value)),
    "window": lambda link, value: _both(link, window=_whole("window", value)),
    "handshakes": _set_handshakes,
}

_NAMES = ", ".join(PROFILES)
_EXAMPLE = "rtt=50ms,up=1Mbit,down=10Mbit,jitter=5ms,loss=1%"

_RATE_UNITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZE_UNITS = {"": 1.0, "b": 1.0, "kib": 2.0**10, "mib": 2.0**20}
_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{0,15})?)\s*([a-z]*)")


def _scaled(value: str, units: Mapping[str, float]) -> float | None:
    """The number in a text with one of these units, in the unit of factor 1; 0 needs none."""
    found = _NUMBER.fullmatch(value.strip().lower())
    if found is None:
        return None
    if found[2] not in units:
        return 0.0 if found[2] == "" and float(found[1]) == 0 else None
    return float(found[1]) * units[found[2]]


def _rate(key: str, value: str) -> Rate:
    if value.startswith("trace:"):
        return read_trace(Path(value.removeprefix("trace:")))
    rate = _scaled(value.removesuffix("/s"), _RATE_UNITS)
    if not rate:
        raise UsageError(f"{key} must be a rate above 0 such as 768kbit, 10Mbit or 1Gbit, or trace:FILE, not {value!r}")
    return rate


def _time(key: str, value: str) -> float:
    seconds = _scaled(value, _TIME_UNITS)
    if seconds is None:
        raise UsageError(f"{key} must be a time such as 50ms or 1.5s, not {value!r}")
    return seconds


def _share(key: str, value: str) -> float:
    number = _scaled(value.removesuffix("%"), {"": 1.0})
    if number is None:
        raise UsageError(f"{key} must be a share such as 1% or 0.01, not {value!r}")
    return number / 100 if value.endswith("%") else number


def _size(key: str, value: str) -> int:
    size = _scaled(value, _SIZE_UNITS)
    if size is None:
        raise UsageError(f"{key} must be a size in bytes such as 65536, 64KiB or 1MiB, not {value!r}")
    return int(size)


def _whole(key: str, value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value):
        raise UsageError(f"{key} must be a whole number, not {value!r}")
    return int(value)
