"""What a model's forward passes cost by their width, measured as they are made: whether one more draft pays hangs on it."""

import numpy as np

NEWEST = 0.1
"""Weight of a new measurement."""

FEW = 3
"""Of the first measurements of a width, so many, the least counts: what else the machine does only adds to a pass."""

OUTLIER = 3.0
"""A measurement counts as at most so many times what is known: a machine that was busy elsewhere says little of a pass."""

FORGOTTEN = 1024
"""Passes after which a width that was not made any more is unknown again."""


class PassCosts:
    """Seconds of a forward pass by its width, in tokens.

    Of a width that was never measured the nearest ones tell: a straight line between two of them, beyond all the last one, and
    below all a share of the first one. So a further token, or one token less, counts as a gain until it was tried.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._passes = 0

    def observe(self, width: int, seconds: float) -> None:
        """Learn from a pass."""
        self._passes += 1
        for old in [one for one, when in self._seen.items() if self._passes - when > FORGOTTEN]:
            del self._seconds[old], self._counts[old], self._seen[old]
        count = self._counts[width] = self._counts.get(width, 0) + 1
        known = self._seconds.get(width, seconds)
        newer = known + NEWEST * (min(seconds, OUTLIER * known) - known)
        self._seconds[width] = min(known, seconds) if count <= FEW else newer
        self._seen[width] = self._passes

    def measured(self, width: int) -> bool:
        """Whether it was measured, and not long ago: else a cost is a guess that makes it worth a try."""
        return width in self._seconds

    def seconds(self, width: int) -> float:
        """Of a pass of so many tokens; 0 where none was measured."""
        if not self._seconds:
            return 0.0
        widths = sorted(self._seconds)
        return float(np.interp(width, [0, *widths], [0.0, *(self._seconds[one] for one in widths)]))
