"""Waiting debt: the queue and the waits by the formula."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.mixture.debt import DECAYS, DebtOptions, Decay, WaitingDebt
from antiphon.errors import UsageError

AMOUNTS = st.floats(0, 10)


@given(st.lists(st.booleans(), max_size=40), AMOUNTS, AMOUNTS, st.floats(0.01, 5), AMOUNTS, AMOUNTS)
def test_the_queue(steps: list[bool], threshold: float, limit: float, repayment: float, short: float, base: float) -> None:
    debt, owed = WaitingDebt(DebtOptions(threshold, limit, repayment, short)), 0.0
    for alpha in steps:
        debt = debt.absorbed() if alpha else debt.wasted()
        owed = min(limit, max(0.0, owed + (0 if alpha else 1) - repayment * alpha))
        assert debt.owed == owed
        assert debt.timeout(base) == (base if owed < threshold else min(base, short))
        assert 0 <= debt.owed <= limit


def test_the_defaults() -> None:
    """Three waits in vain, and the device only looks whether something is there; two successes, and it waits again."""
    debt = WaitingDebt()
    patience = []
    for step in "wwwwwaaa":
        debt = debt.wasted() if step == "w" else debt.absorbed()
        patience.append(debt.timeout(0.08))
    assert patience == [0.08, 0.08, 0, 0, 0, 0, 0.08, 0.08]


@pytest.mark.parametrize(
    ("fall", "waits"), [("constant", [40, 40, 40, 40]), ("linear", [40, 30, 20, 0]), ("halving", [40, 28.28, 20, 10])]
)
def test_the_short_wait_falls_with_debt(fall: Decay, waits: list[float]) -> None:
    """tau_short(q) from the threshold 2 to the limit 4."""
    options = DebtOptions(debt_threshold=2, max_debt=4, short_timeout=40, timeout_decay=fall)
    found = [WaitingDebt(options, owed).timeout(90) for owed in (2, 2.5, 3, 4)]
    assert found == pytest.approx(waits, abs=0.01)
    assert WaitingDebt(options, 1.9).timeout(90) == 90


@pytest.mark.parametrize("fall", DECAYS)
def test_no_debt_beyond_the_threshold_can_be_owed(fall: Decay) -> None:
    assert WaitingDebt(DebtOptions(debt_threshold=4, max_debt=4, short_timeout=40, timeout_decay=fall), 4).timeout(90) == 40


def test_a_fall_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="timeout_decay must be constant, linear or halving, not 'free'"):
        DebtOptions(timeout_decay="free")  # type: ignore[arg-type]


def test_the_short_wait_is_never_longer_than_the_usual() -> None:
    assert WaitingDebt(DebtOptions(debt_threshold=0, short_timeout=0.5)).timeout(0.2) == 0.2


def test_a_threshold_above_the_limit_never_shortens() -> None:
    debt = WaitingDebt(DebtOptions(debt_threshold=5, max_debt=4))
    for _ in range(20):
        debt = debt.wasted()
    assert debt.timeout(0.1) == 0.1


@pytest.mark.parametrize("name", ["debt_threshold", "max_debt", "debt_repayment", "short_timeout"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_options_out_of_range(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        DebtOptions(**{name: value})


def test_debt_that_is_never_repaid() -> None:
    with pytest.raises(UsageError, match="never shrink"):
        DebtOptions(debt_repayment=0.0)
