"""`antiphon-lab bench noise`: what is measured is what is said; no time is held against another machine's."""

import numpy as np
import pytest

from antiphon.core.noise import NoiseRace
from antiphon.errors import UsageError
from antiphon_lab.experiments.noise import numbers, run, table


def test_every_number_of_tokens_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the numbers, a race over a peaked distribution and one over an even one, at every position."""
    raced = []
    winner = NoiseRace.winner

    def watched(race: NoiseRace, probs: np.ndarray) -> int:
        raced.append((len(probs), float(probs.max())))
        return winner(race, probs)

    monkeypatch.setattr(NoiseRace, "winner", watched)
    found = run((50, 4000), 7)
    assert [(cost.tokens, cost.repeats) for cost in found] == [(50, 7), (4000, 7)]
    assert [size for size, _ in raced] == [50] * 14 + [4000] * 14
    for size, peaks in ((50, raced[:14]), (4000, raced[14:])):
        assert {peak for _, peak in peaks[7:]} == {1 / size}
        assert min(peak for _, peak in peaks[:7]) > 0.1
    for cost in found:
        assert min(cost.uniform_ms, cost.race_ms, cost.even_race_ms, cost.distribution_ms) > 0
        assert cost.share == cost.race_ms / cost.distribution_ms
    assert table(found).row_count == 2


@pytest.mark.parametrize("text", ["", "0", "a", "5,,6", "-1", "1e3", str(2**22 + 1)])
def test_numbers_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="tokens must be numbers from 1 to 4194304 with commas between, not"):
        numbers(text)
    assert numbers("5, 70") == (5, 70)


def test_no_repeats() -> None:
    with pytest.raises(UsageError, match="each must be measured at least once, not 0 times"):
        run((5,), 0)
