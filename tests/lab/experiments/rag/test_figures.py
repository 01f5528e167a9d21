"""Figures of `bench rag` from answers, against sums by hand."""

from types import SimpleNamespace

import pytest

from antiphon.core.mixture.consult import Effort
from antiphon.core.mixture.debt import DebtOptions
from antiphon.device.output.emission import Emission
from antiphon.methods.effects import Consulted, Kind
from antiphon_lab.experiments.rag.answers import Step, Written, steps
from antiphon_lab.experiments.rag.figures import Figures, cdf, late, quantile, submitted


def test_what_each_token_took_is_found_again() -> None:
    kinds = (Kind.CERTAIN, Kind.CHANGED, Kind.CERTAIN, Kind.LOCAL, Kind.CONFIRMED)
    took = [Consulted(0.1, Effort(1, 4, 0, False)), Consulted(0.2, None), Consulted(0.0, Effort(), drafted=True)]
    answer = SimpleNamespace(emissions=[Emission(float(place), (kind,), 0) for place, kind in enumerate(kinds)], consulted=took)
    assert list(steps(answer)) == [
        Step(Kind.CERTAIN),
        Step(Kind.CHANGED, 0.1, True, 1),
        Step(Kind.CERTAIN),
        Step(Kind.LOCAL, 0.2),
        Step(Kind.CONFIRMED, 0.0, True, drafted=True),
    ]


def test_the_debt_is_what_the_device_s_own_was() -> None:
    options = DebtOptions()
    in_vain, taken, changed = (
        Step(Kind.LOCAL, 0.1),
        Step(Kind.CONFIRMED, 0.0, True, drafted=True),
        Step(Kind.CHANGED, 0.0, True),
    )
    answer = _answer((in_vain, changed, Step(Kind.CERTAIN), in_vain, in_vain, in_vain, taken, taken))
    assert Figures((answer,), debt=options).debts() == [0, 1, 2, 2, 3, 4, 4, 3]
    other = _answer((taken, in_vain))
    assert Figures((answer, other)).debts()[:3] == [0, 0.5, 2]


def test_debt_grows_by_what_is_wasted_less_what_is_repaid() -> None:
    """The paper's constraint is of the mean of xi - rho_a * alpha, without the limits of the debt itself."""
    in_vain, taken, certain = Step(Kind.LOCAL, 0.1), Step(Kind.CONFIRMED, 0.0, True, drafted=True), Step(Kind.CERTAIN)
    own = Step(Kind.LOCAL, 0.1, True)
    answer = _answer((in_vain, in_vain, taken, certain, own))
    assert Figures((answer,)).debt_growth.mean == pytest.approx((3 - 1) / 5)
    assert Figures((answer,), debt=DebtOptions(debt_repayment=4)).debt_growth.mean == pytest.approx((3 - 4) / 5)
    assert Figures((answer,)).share(late).mean == pytest.approx(2 / 5)
    assert Figures((answer,)).share(submitted).mean == pytest.approx(1 / 5)


def _answer(steps: tuple[Step, ...]) -> Written:
    times = tuple(0.1 * (place + 1) for place in range(len(steps)))
    return Written(
        row="",
        example="",
        text="",
        scores=(),
        times=times,
        steps=steps,
        up=(0, 0),
        down=(0, 0),
        opening=0,
        messages=(0, 0),
        different=0,
        compared=0,
        nats=(),
        forced_alone=0,
        cloud_passes=0,
    )


def test_distributions() -> None:
    assert quantile([], 50) is None
    assert quantile([1.0, 2.0, 3.0], 50) == 2
    curve = cdf([1.0, 1.0, 3.0])
    assert curve[0] == (1, 0)
    assert curve[-1] == (3, 1)
    assert curve == sorted(curve)
