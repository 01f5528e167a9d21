"""Where devices come in: how many connections there are at once, which of them has to go, and until when each must ask.

A connection that has made no request yet, or has no session under way, goes where room is needed for another; the one that
came first goes first. So silence does not keep others out, and one that is at work is never sent away.
"""

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import urlsplit

from antiphon.config import ServeConfig

ACCEPTED_AT_ONCE = 32
"""Connections that the listener takes in one go; a few goes can come before the first of them is counted."""
KEPT_DESCRIPTORS = 64 + 3 * ACCEPTED_AT_ONCE
"""Descriptors for all else: files of models and libraries, the loop's own, and connections that are not counted yet."""
BEGUN_BYTES = 2**28
"""Of frames that are partly here, on all connections together."""
WANTED_DESCRIPTORS = 8192
FULL = "this cloud has no room for another connection: try again shortly"


class Visitor(Protocol):
    """One connection, whatever it has got to."""

    @property
    def at_work(self) -> bool:
        """Whether something is under way for it."""
        ...

    def dismiss(self) -> None:
        """End it at once."""
        ...


class Doors:
    """The connections of one server."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self._most = min(config.connections, _descriptors())
        self._inside: dict[Visitor, None] = {}  # in the order in which they came
        self._refused: set[Visitor] = set()
        self._begun: dict[Visitor, int] = {}
        self._begun_bytes = 0

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, visitor: Visitor) -> bool:
        """Take one in, if need be in the place of another; False if every one is at work."""
        if len(self._inside) >= self._most:
            # The oldest first: who has been silent longest is the likeliest to stay so.
            idle = next((one for one in self._inside if not one.at_work), None)
            if idle is None:
                return False
            self.leave(idle)
            idle.dismiss()
        self._inside[visitor] = None
        return True

    def become(self, before: Visitor, after: Visitor) -> None:
        """The same connection, which has come in now."""
        if before in self._inside:
            del self._inside[before]
            self._inside[after] = None

    def may_be_told(self, visitor: Visitor) -> bool:
        """Whether one that was not admitted may stay for the moment that it takes to say so; else it has to go unheard."""
        fits = len(self._refused) < ACCEPTED_AT_ONCE
        if fits:
            self._refused.add(visitor)
        return fits

    def begun(self, visitor: Visitor, size: int) -> None:
        """So many bytes came of a frame that is not whole. Where all such take too much, the one with the most has to go."""
        self._begun_bytes += size - self._begun.pop(visitor, 0)
        if size:
            self._begun[visitor] = size
        if self._begun_bytes > BEGUN_BYTES:
            # Not the newest, which only happened to come when the room was used up.
            greatest = max(self._begun, key=self._begun.__getitem__)
            self.leave(greatest)
            greatest.dismiss()

    def leave(self, visitor: Visitor) -> None:
        """It has gone. Harmless if it had before."""
        self._begun_bytes -= self._begun.pop(visitor, 0)
        self._inside.pop(visitor, None)
        self._refused.discard(visitor)


def foreign_page(origins: Sequence[str], hosts: Sequence[str], own_name: str) -> str | None:
    """Why a request comes from a web page that has no business here, or None.

    A browser says where its page is from (`Origin`), a device does not. A page is at home where the cloud itself would have
    sent it from: its origin is the host that was asked, and that is an address, this machine, or the name that the cloud
    listens by. Any other name may be made to lead here by whoever owns it.
    """
    if not origins:
        return None
    try:
        page, asked = urlsplit(origins[0]), urlsplit(f"//{hosts[0]}" if hosts else "")
        same = (page.hostname, page.port) == (asked.hostname, asked.port)
    except ValueError:
        same = False
    if len(origins) == len(hosts) == 1 and same and _is_own(page.hostname or "", own_name):
        return None
    return "this cloud serves devices, and no page of another origin: connect with `antiphon`"


def _is_own(name: str, own_name: str) -> bool:
    if name in ("localhost", own_name.lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def raise_descriptors() -> None:
    """Let this process have as many descriptors as it may without asking anyone."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _descriptors() -> int:
    """Connections that this process has descriptors for."""
    try:
        import resource
    except ImportError:  # Windows has no such bound
        return 2**31
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**31 if soft == resource.RLIM_INFINITY else max(8, soft - KEPT_DESCRIPTORS)
