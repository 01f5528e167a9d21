"""How long evidence takes that was asked for anew: what a step may wait for it (METHODS 4, tau_base)."""

import math

UNKNOWN = 1.0
"""Seconds to wait before anything is known."""
FORGET = 0.9
"""What an arrival still counts one later."""


class ResponseTime:
    """The time from a new epoch to its first evidence: a round trip and a step of the cloud."""

    def __init__(self, fixed: float = 0.0) -> None:
        self._fixed = fixed
        self._asked: float | None = None
        self._count = self._sum = self._squares = 0.0

    def asked(self, now: float) -> None:
        """A new epoch began."""
        self._asked = now

    def interrupted(self) -> None:
        """The link was lost: what was asked for does not come."""
        self._asked = None

    def arrived(self, now: float) -> None:
        """Evidence came."""
        if self._asked is None:
            return
        # Only the first evidence of an epoch: what follows is sent ahead, and tells nothing of a round trip.
        seconds, self._asked = now - self._asked, None
        self._count = FORGET * self._count + 1.0
        self._sum = FORGET * self._sum + seconds
        self._squares = FORGET * self._squares + seconds * seconds

    @property
    def timeout(self) -> float:
        """How long a step may wait: the fixed time if there is one, else the usual one."""
        return self._fixed or self.usual

    @property
    def usual(self) -> float:
        """How long evidence usually takes at most: the mean and 3 standard deviations, in seconds."""
        if not self._count:
            return UNKNOWN
        mean = self._sum / self._count
        # A tenth on top: after few arrivals, or on a steady link, the deviation is close to nothing, and one late message would
        # be a timeout.
        return mean + 3.0 * math.sqrt(max(0.0, self._squares / self._count - mean * mean)) + 0.1 * mean
