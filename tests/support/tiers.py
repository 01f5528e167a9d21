"""Which tests make up the fast core: all that are not marked, and of each that is marked `core(n)` so many of its cases.

make test-fast    the core: under a minute
make test         and `medium`, and the real models briefly: under ten
make test-all     and `slow`: everything
"""

from collections import defaultdict
from collections.abc import Iterable

import pytest


def spread(total: int, count: int) -> set[int]:
    """So many of the first `total` numbers, from the first on, at equal distances."""
    kept = min(count, total)
    return {number * total // kept for number in range(kept)}


def divide(items: Iterable[pytest.Item]) -> None:
    """Mark as `medium` all cases of a test marked `core(n)` but n, spread over them."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("core") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in cases.values():
        mark = of_one_test[0].get_closest_marker("core")
        kept = spread(len(of_one_test), mark.args[0])
        for number, item in enumerate(of_one_test):
            if number not in kept:
                item.add_marker(pytest.mark.medium)
