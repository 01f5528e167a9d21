"""How far two tokens are apart, by whatever decides between them."""

import math

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits, process
from antiphon.core.near_tie import MOST, farthest, least_shift

GREEDY = SamplingParams(temperature=0)
IDS = np.arange(6, dtype=np.int32)


def shift(logits: list[float], wanted: int, other: int, params: SamplingParams, history: tuple[int, ...] = ()) -> float:
    def wins(row: Logits) -> bool:
        return PhiloxChance(5).race(0, IDS[: len(row)]).winner(process(row, params, history)) == wanted

    return least_shift(np.array(logits, np.float32), wanted, other, wins)


@pytest.mark.parametrize("gap", [0.001, 0.02, 0.3, 5.0])
def test_at_temperature_0_it_is_half_of_the_gap(gap: float) -> None:
    assert shift([1.0, 1.0 + gap, -3.0], 0, 1, GREEDY) == pytest.approx(gap / 2, rel=0.15)


def test_what_is_farther_than_any_noise_is_infinitely_far() -> None:
    assert shift([0.0, 2 * MOST + 1, 0.0], 0, 1, GREEDY) == math.inf


def test_a_bias_and_penalties_count() -> None:
    """Token 0 is behind by 1 as the model says, by .2 with its bias and the other's penalty."""
    biased = SamplingParams(temperature=0, logit_bias=((0, 0.5),), presence_penalty=0.3)
    assert shift([1.0, 2.0, -3.0], 0, 1, biased, history=(1,)) == pytest.approx(0.1, rel=0.15)
    doubled = SamplingParams(temperature=0, repetition_penalty=2.0)
    assert shift([1.0, 2.4, -3.0], 0, 1, doubled, history=(1,)) == pytest.approx(0.2 / 1.5, rel=0.15)


def test_a_token_that_is_cut_off_comes_in_by_the_border() -> None:
    """Whatever the race: of two tokens top-k keeps only the first, so the other wins when it has overtaken that one."""
    assert shift([2.0, 2.4, -3.0], 0, 1, SamplingParams(top_k=1)) == pytest.approx(0.2, rel=0.15)


def test_a_token_can_fall_out_by_what_others_do() -> None:
    """Token 1 wins the race among three, and is just the second of two; where token 2 takes its place, token 0 wins."""
    params, distribution = SamplingParams(top_k=2), [3.0, 2.0, 1.9]
    order = PhiloxChance(5).race(0, IDS[:3]).first(process(np.array(distribution, np.float32), SamplingParams()), 3)
    found = [shift(_placed(distribution, order), order[1], order[0], params)]
    assert found[0] < 1.0


def _placed(values: list[float], order: list[int]) -> list[float]:
    """The race's second the likeliest, its first just kept, its third just not."""
    placed = [0.0] * 3
    for value, token in zip(values, (order[1], order[0], order[2]), strict=True):
        placed[token] = value
    return placed


@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(top_p=0.7), SamplingParams(min_p=0.2, temperature=0.5)])
def test_the_shift_that_is_told_decides(params: SamplingParams) -> None:
    """Some move of all logits by no more than it gives the wanted token; without any it does not win."""
    random = np.random.Generator(np.random.PCG64(1))
    for _ in range(20):
        logits = random.normal(size=6).astype(np.float32)
        winner = PhiloxChance(5).race(0, IDS).winner(process(logits, params))
        wanted = (winner + 1) % 6
        found = shift(logits.tolist(), wanted, winner, params)
        assert 0 < found < math.inf
        shifts = [np.where(wanted == IDS, 1.0, np.where(winner == IDS, -1.0, rest)) for rest in (-1.0, 0.0, 1.0)]
        rows = [(logits + found * one).astype(np.float32) for one in shifts]
        assert any(PhiloxChance(5).race(0, IDS).winner(process(row, params)) == wanted for row in rows)


def test_how_far_two_readings_are_apart() -> None:
    """What both rule out is no difference, and what one alone does is one without bound."""
    first, ruled_out = np.float32([1.0, 2.0, -np.inf]), np.float32([-np.inf, 2.0, -np.inf])
    assert farthest(first, first) == 0.0
    assert farthest(first, np.float32([1.5, 1.0, -np.inf])) == 1.0
    assert farthest(first, ruled_out) == farthest(ruled_out, first) == math.inf
    assert farthest(ruled_out, ruled_out) == 0.0
