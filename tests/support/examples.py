"""How many random examples a test tries: its own number by default, fewer in the fast core, many times as many in a deep run.

A test says `@examples(60)`, or goes through `seeds(20)`; the profile of hypothesis (see `conftest.py`) says how many of each
hundred are tried.
"""

from typing import Any

from hypothesis import settings

FEWEST = 10
"""No profile tries fewer than these, where the test itself asks for as many."""


def scaled(count: int) -> int:
    """So many of a test's `count` as the profile tries of a hundred."""
    return max(min(count, FEWEST), count * settings.default.max_examples // 100)


def examples(count: int, **others: Any) -> settings:
    """A test's own number of examples; `others` are settings of hypothesis. A time says nothing on a busy machine."""
    return settings(max_examples=scaled(count), deadline=None, **others)


def seeds(count: int) -> range:
    """The seeds that a test goes through one by one, whatever is drawn from them: a test of chances takes its own."""
    return range(scaled(count))
