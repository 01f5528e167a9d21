"""The grids of what crosses, and the bounds: true of everything that was not sent, after any mix of replies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.mixture.scores import SCORES, SUMS, ZERO, Bound, LogGrid, StepScores, Values, bound_grid, ranked
from antiphon.core.noise import Noise
from support.examples import examples

GRIDS = pytest.mark.parametrize("grid", [SCORES, SUMS], ids=["scores", "sums"])


@GRIDS
def test_every_code_comes_back(grid: LogGrid) -> None:
    codes = np.arange(ZERO + 1, dtype=np.uint16)
    values = grid.values(codes)
    assert np.array_equal(grid.codes(values), codes)
    assert (np.diff(values) < 0).all(), "a larger code is a smaller number"
    assert values[ZERO] == 0 == grid.value(ZERO)
    assert all(grid.value(code) == values[code] for code in (0, 1, 777, ZERO - 1))


@GRIDS
@given(position=st.floats(0, 1))
def test_the_nearest_code(grid: LogGrid, position: float) -> None:
    log = grid.top - position * grid.step * (ZERO - 1)
    decoded = math.log(grid.value(int(grid.codes(np.array([math.exp(log)]))[0])))
    assert abs(decoded - log) <= grid.step / 2 + 1e-9


@GRIDS
def test_beyond_the_grid(grid: LogGrid) -> None:
    lowest = grid.value(ZERO - 1)
    assert grid.codes(np.array([0.0, lowest / 2, math.exp(grid.top) * 2])).tolist() == [ZERO, ZERO, 0]
    assert grid.code_above(0.0) == ZERO
    assert grid.code_above(lowest / 1e6) == ZERO - 1


def test_the_codes_of_scores() -> None:
    """A distribution's largest score is 1, code 0; rounding may put it above."""
    assert SCORES.codes(np.array([1.0, 1.0 + 2e-16, math.exp(-1), 0.0])).tolist() == [0, 0, 2048, ZERO]
    assert SCORES.value(ZERO - 1) == pytest.approx(math.exp(-32), rel=2e-3)
    assert bound_grid(sampled=False) is SCORES
    assert bound_grid(sampled=True) is SUMS


@given(st.floats(-25.99, 37), st.floats(-1e-10, 1e-10))
def test_a_bound_is_above_and_close(log: float, error: float) -> None:
    """Also of the value as a machine with other last digits would have computed it."""
    value = math.exp(log)
    bound = SUMS.value(SUMS.code_above(value))
    assert value * (1 + error) <= bound <= value * math.exp(1.001 * SUMS.step)


def test_a_bound_on_the_grid_has_room() -> None:
    for code in (1, 5, 4000, ZERO - 2):
        assert SUMS.code_above(SUMS.value(code)) == code - 1


def distributions(seed: int, size: int) -> Values:
    """Scores with many ties and zeros."""
    random = np.random.default_rng(seed)
    values = SCORES.values(random.integers(0, 5, size) * random.integers(1, 4000))
    values[random.random(size) < 0.2] = 0.0
    return values


REPLIES = st.lists(st.one_of(st.integers(0, 6), st.lists(st.integers(0, 11), max_size=4)), max_size=6)
"""What is asked for: so many of the strongest, first the evidence and then chunks, or these tokens."""


@examples(300)
@given(st.integers(0, 2**32), st.integers(1, 12), REPLIES, st.sampled_from(["next", "global"]), st.booleans())
def test_reports(seed: int, size: int, replies: list[int | list[int]], bound: Bound, sampled: bool) -> None:
    """Whatever was asked before: scores and ranks are right, the bound holds for the rest and is as small as it should be.

    The paper's is the largest of all until a chunk came, and of what that left from then on (CONCORD V-A).
    """
    probs = distributions(seed, size)
    noise = -np.log(Noise(seed).uniform(1, np.arange(size, dtype=np.int32))) if sampled else None
    end, sent, unsent_by_chunk = StepScores(probs, noise, bound), set[int](), list(range(size))
    strengths = SCORES.values(SCORES.codes(probs)) / (1.0 if noise is None else noise)
    for number, reply in enumerate(replies):
        left = [token for token in sorted(range(size), key=lambda token: (-strengths[token], token)) if token not in sent]
        if isinstance(reply, int):
            report = end.chunk(reply) if number else end.strongest(reply)
            assert list(report.scores) == left[:reply]
            unsent_by_chunk = left[reply:] if number else unsent_by_chunk
        else:
            report = end.of(token % size for token in reply)
            assert list(report.scores) == list(dict.fromkeys(token % size for token in reply))
        sent |= report.scores.keys()
        assert all(code == end.codes[token] for token, code in report.scores.items())
        rest = strengths[unsent_by_chunk] if bound == "global" else np.delete(strengths, sorted(sent))
        most = rest.max(initial=0.0)
        ceiling = bound_grid(sampled=sampled).value(report.bound)
        assert ceiling == most if not sampled else most <= ceiling <= most * 1.01 or ceiling <= SUMS.value(ZERO - 1)


def test_the_paper_s_bound_by_hand() -> None:
    """First the largest of all; a question for tokens leaves it so; a chunk makes it the largest of what is left."""
    codes = SCORES.codes(np.array([0.4, 0.3, 0.2, 0.06, 0.04]))
    end = StepScores(SCORES.values(codes), bound="global")
    assert end.strongest(1).bound == codes[0]
    assert end.of([1]).bound == codes[0]
    assert end.chunk(1).bound == codes[3]
    assert end.of([3]).bound == codes[3], "the last chunk's: nothing said is taken back"
    assert end.chunk(1).bound == ZERO


def test_ids_outside_the_vocabulary() -> None:
    end = StepScores(np.array([0.5, 0.5]))
    for token in (-1, 2):
        with pytest.raises(IndexError):
            end.of([token])


@examples(100)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.integers(0, 40), st.sampled_from([3, 50, 10**9]))
def test_ranks(seed: int, size: int, count: int, different: int) -> None:
    """Of many blocks and few, with many ties and none."""
    random = np.random.default_rng(seed)
    values = random.integers(-1, different, size).astype(np.float64)
    values[: size // 2].sort()
    expected = sorted((token for token in range(size) if values[token] >= 0), key=lambda token: (-values[token], token))
    assert ranked(values, count) == expected[:count]


def test_a_large_vocabulary_is_ranked_with_its_ties() -> None:
    probs = np.zeros(5000)
    probs[[17, 4000, 300, 9]] = [0.3, 0.3, 0.3, 0.1]
    report = StepScores(probs).strongest(6)
    assert list(report.scores) == [17, 300, 4000, 9, 0, 1]
    assert report.bound == ZERO
