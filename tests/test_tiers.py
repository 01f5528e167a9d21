"""Of a test marked `core(n)`, n cases are in the fast core, and every case in `make test`."""

import pytest

from support.tiers import spread


@pytest.mark.parametrize(
    ("total", "count", "kept"), [(10, 3, {0, 3, 6}), (5, 5, {0, 1, 2, 3, 4}), (2, 7, {0, 1}), (90, 1, {0})]
)
def test_cases_are_spread_over_all(total: int, count: int, kept: set[int]) -> None:
    assert spread(total, count) == kept


@pytest.mark.core(2)
@pytest.mark.parametrize("number", range(5))
def test_the_others_are_medium(request: pytest.FixtureRequest, number: int) -> None:
    assert (request.node.get_closest_marker("medium") is None) == (number in (0, 2))
