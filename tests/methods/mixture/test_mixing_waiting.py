"""What debt does to how long a device waits."""

import math

import pytest

from antiphon.methods.effects import Kind
from antiphon.methods.mixture.cloud import MixtureCloud
from support.mixtures import answer, question, require_true, world


class Silent(MixtureCloud):
    """Says what it found, and no more."""

    def _may_step(self) -> bool:
        return False


def test_what_debt_does_to_waiting() -> None:
    """Waits until the debt is there, then the short one; evidence never comes."""
    there = world(2, masses=(0.0, 0.0), halves={0: {"concord": Silent}})
    request = question("concord", tokens=20, timeout=0.2, short_timeout=0.03, debt_threshold=2.0, gate=math.inf)
    told = answer(there, request)
    waits = [step.consulted.waited for step in told.steps]
    assert set(told.kinds) == {Kind.LOCAL}
    assert waits == pytest.approx([0.2, 0.2] + [0.03] * 18)
    require_true(there, request, told)


def test_what_more_debt_does_to_short_waits() -> None:
    """tau_short(q): half as long for each more that is owed, up to the limit."""
    there = world(2, masses=(0.0, 0.0), halves={0: {"concord": Silent}})
    falling = {"short_timeout": 0.08, "timeout_decay": "halving", "debt_threshold": 2.0, "max_debt": 4.0}
    told = answer(there, question("concord", tokens=12, timeout=0.2, gate=math.inf, **falling))
    waits = [step.consulted.waited for step in told.steps]
    assert waits == pytest.approx([0.2, 0.2, 0.08, 0.04] + [0.02] * 8)


def test_debt_is_repaid_by_drafts_that_are_taken() -> None:
    """Models that agree wholly: with evidence in time the cloud's draft is the token, and no wait is ever short."""
    there = world(2, masses=(0.0, 0.0), agree=1.0)
    told = answer(there, question("concord", tokens=20, timeout=0.2, debt_threshold=1.0, gate=math.inf))
    assert set(told.kinds) == {Kind.CONFIRMED}
    assert all(step.consulted.drafted for step in told.steps)
