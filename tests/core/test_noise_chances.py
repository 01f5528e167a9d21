"""The numbers are uniform and independent over ids, positions, keys, prompts and bits."""

from collections.abc import Sequence

import numpy as np
import pytest

from antiphon.core.chance import PhiloxChance, Place, Role, answer_key
from antiphon.core.distributions import Ids, Probs
from antiphon.core.noise import Noise, _mixed
from core.noise_samples import numbers


def at_random(bits: int, count: int, seed: int) -> list[int]:
    source = np.random.default_rng(seed)
    return [int.from_bytes(source.bytes(bits // 8), "little") for _ in range(count)]


def table(keys: Sequence[int], positions: Sequence[int], ids: Ids) -> Probs:
    """The uniform numbers of all keys at all positions: shape (keys times positions, ids)."""
    return np.stack([Noise(key).uniform(position, ids) for key in keys for position in positions])


def require_uniform(values: Probs) -> None:
    """In 256 cells, by the upper bits, and by what is left after them."""
    from scipy.stats import chisquare

    for scale in (1, 2**8, 2**20, 2**32, 2**40):
        cells = np.floor(values.ravel() * scale % 1.0 * 256).astype(int)
        assert chisquare(np.bincount(cells, minlength=256)).pvalue > 1e-5


def require_independent(first: Probs, second: Probs) -> None:
    """In 16 times 16 cells; so also near both ends, where races are won."""
    from scipy.stats import chi2_contingency

    for scale in (1, 2**8, 2**14):
        cells = [np.floor(values.ravel() * scale % 1.0 * 16).astype(int) for values in (first, second)]
        counts = np.bincount(16 * cells[0] + cells[1], minlength=256).reshape(16, 16)
        assert chi2_contingency(counts).pvalue > 1e-5
    both = ((first > 1 - 2**-7) & (second > 1 - 2**-7)).mean()
    assert abs(both - 2**-14) < 5 * np.sqrt(2**-14 / first.size)


def test_uniform_over_ids_positions_and_keys() -> None:
    require_uniform(table([1], [0, 1], numbers(200_000)))
    require_uniform(table([2], range(2000), numbers(100)))
    require_uniform(table(range(2000), [0], numbers(100)))
    require_uniform(table([answer_key(7, f"prompt {place}", chat=False) for place in range(2000)], [3], numbers(100, 50_000)))


@pytest.mark.core(4)
@pytest.mark.parametrize("apart", [1, 2, 3, 256, 65_536, 131_072, 2**21])
def test_ids_are_independent(apart: int) -> None:
    """At one position, and over positions."""
    one = Noise(5).uniform(0, numbers(200_000))
    require_independent(one, Noise(5).uniform(0, numbers(200_000, apart)))
    keys = np.random.default_rng(6).integers(0, 2**32, (2, 2**18), dtype=np.uint32)
    for token in (0, 1000):
        words = [_mixed(np.full(2**18, one, dtype=np.int32), keys[0], keys[1]) for one in (token, token + apart)]
        require_independent(words[0] * 2.0**-32, words[1] * 2.0**-32)


def test_positions_keys_and_prompts_are_independent() -> None:
    ids = numbers(200_000)
    one = Noise(5).uniform(3, ids)
    for other in (Noise(5).uniform(4, ids), Noise(5).uniform(3 + 2**30, ids)):
        require_independent(one, other)
    for shift in (0, 31, 32, 64, 96, 127):
        require_independent(one, Noise(5 ^ 1 << shift).uniform(3, ids))
    require_independent(one[1:], Noise(5).uniform(4, ids)[:-1])


@pytest.mark.medium
def test_every_bit_decides_over_all() -> None:
    """Of an id and of both keys: each changes half of the word's bits, any other bit as often as not."""
    source, count = np.random.default_rng(8), 40_000
    ids = source.integers(0, 2**18, count, dtype=np.int32)
    keys = source.integers(0, 2**32, (200, 2)).tolist()
    for bit in range(32):
        flipped = np.zeros((3, 32))
        for first, second in keys:
            part, shift = ids[: count // 200], 1 << bit
            words = _mixed(part, first, second)
            others = [_mixed(part, first ^ shift, second), _mixed(part, first, second ^ shift)]
            others.append(_mixed(part ^ shift, first, second) if bit < 22 else ~words)
            for place, other in enumerate(others):
                flipped[place] += np.unpackbits((words ^ other).view(np.uint8)).reshape(-1, 32).sum(axis=0)
            ids = np.roll(ids, count // 200)
        flipped = flipped[: 2 if bit >= 22 else 3]
        assert abs(flipped / count - 0.5).max() < 0.04, bit


@pytest.mark.medium
def test_the_order_of_neighbours() -> None:
    """Which of four wins, and who comes next: all 24 orders alike."""
    from scipy.stats import chisquare

    for ids in (numbers(4), numbers(4, 1021), np.array([3, 259, 65_539, 7], dtype=np.int32)):
        orders = np.argsort(table([21], range(12_000), ids), axis=1) @ [64, 16, 4, 1]
        assert chisquare(np.unique(orders, return_counts=True)[1]).pvalue > 1e-5
        assert len(np.unique(orders)) == 24


def test_the_fastest_of_a_vocabulary() -> None:
    """The smallest E of n tokens is exponential with rate n, and any of them has it."""
    from scipy.stats import kstest

    ids = numbers(50_000)
    races = [PhiloxChance(key).race(2, ids).times() for key in at_random(128, 400, 4)]
    assert kstest([float(times.min()) * len(ids) for times in races], "expon").pvalue > 1e-5
    assert kstest([int(times.argmin()) / len(ids) for times in races], "uniform").pvalue > 1e-5


def test_prompts_seeds_forms_and_choices_share_nothing() -> None:
    """One seed given to two prompts: other keys, and of all the chance of an answer no number twice."""
    asked = [
        (1, "a", False, 0),
        (2, "a", False, 0),
        (1, "a ", False, 0),
        (1, "a", True, 0),
        (1, "a", False, 1),
        (1, "b", False, 0),
    ]
    keys = [answer_key(seed, prompt, chat=chat, choice=choice) for seed, prompt, chat, choice in asked]
    assert len(set(keys)) == len(asked)
    drawn_numbers: list[float] = []
    for key in keys:
        chance = PhiloxChance(key)
        drawn_numbers += chance.race(0, numbers(200)).times().tolist()
        drawn_numbers += [chance.at(Place(position), role)._uniform() for role in Role for position in range(20)]
    assert len(set(drawn_numbers)) == len(drawn_numbers)
