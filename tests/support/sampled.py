"""Sampled answers against an exact distribution: toys large enough for it, and a G-test.

Enumeration follows both ends' draws one by one; what hangs together in production, because one number decides two things, shows
in the answers of many seeds.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, Place, Race, Role, Stream
from antiphon.core.distributions import Ids
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import Quantise, exactly, quantise_ratios, ratios_of
from antiphon.testing.distributions import Distribution, Pair, target_distribution

TOKENS = 3
LETTERS = [bytes([letter]) for letter in b"abcdefghijklmnop"]
OUTSIDE = [b"ab", b"bc", b"cd", b"de", b"ef", b"fg", b"gh", b"hi"]
"""Tokens of the cloud alone: two in three answers hold one, and no candidate after a rejection is likelier."""
SAMPLING = SamplingParams(temperature=1.0)
CANDIDATES = {"candidates": 2, "iterations": 2}
AUTO = {"precision": 32}
"""At 32 bits a whole distribution costs more than candidates, so the cloud draws some."""
FEW = {"truncate": "k=6"}
"""Six of 17 tokens: the rest come from residuals only."""
TREE = {**FEW, "expansion": "3,2"}
"""Two layers, whose nodes draw from one stream each."""


def pair() -> Pair:
    """17 common tokens of 25: enough for a spare, or a place in a distribution, to be anything."""
    return Pair([*LETTERS[::-1], b"", b"x"], [*OUTSIDE, b"", *LETTERS], seed=3, sharpness=1.5)


def expected(name: str, given: Mapping[str, object], models: Pair | None = None) -> Distribution:
    """The target's distribution, rounded as the method rounds it."""
    models, ratios = models or pair(), ratios_of(given.get("precision", 16))
    quantise: Quantise = exactly
    if name == "dssd":
        quantise = quantise_ratios(ratios)
    elif name.startswith("xcosd"):
        quantise = quantise_lumped(models.common.size, ratios)
    return target_distribution(models, SAMPLING, TOKENS, quantise)


def p_value(counts: Mapping[tuple[int, ...], int], distribution: Distribution) -> float:
    """How likely counts as far from the distribution as these are, if the distribution is true; 0 if one of them is impossible.

    By whole answers, by their first two tokens and by the first alone, each of which sees what the others smear out; the least
    of these counts, times as many as they are because it was chosen.
    """
    if not counts.keys() <= distribution.keys():
        return 0.0
    longest = max(map(len, distribution))
    return min(
        1.0,
        longest
        * min(_p_value(beginnings(counts, length), beginnings(distribution, length)) for length in range(1, longest + 1)),
    )


def beginnings(weights: Mapping[tuple[int, ...], float], length: int) -> dict[tuple[int, ...], float]:
    """The weights of the first tokens of answers."""
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for answer, weight in weights.items():
        found[answer[:length]] += weight
    return dict(found)


def _p_value(counts: Mapping[tuple[int, ...], float], distribution: Distribution) -> float:
    """G-test."""
    total = sum(counts.values())
    cell = pooled(distribution, 5 / total)
    wanted: defaultdict[tuple[int, ...], float] = defaultdict(float)
    seen: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for answer, probability in distribution.items():
        wanted[cell[answer]] += total * probability
        seen[cell[answer]] += counts.get(answer, 0)
    assert len(wanted) > 3
    assert sum(wanted.values()) == pytest.approx(total)
    frequencies = np.array(list(wanted.values()))
    frequencies *= total / frequencies.sum()
    return float(stats.power_divergence(list(seen.values()), frequencies, lambda_="log-likelihood").pvalue)


def pooled(distribution: Distribution, least: float) -> dict[tuple[int, ...], tuple[int, ...]]:
    """A cell for every answer: itself if it is likely enough, else all unlikely ones that begin as it does, else all others."""
    cell = {answer: answer for answer in distribution}
    for length in (2, 1, 0):
        mass: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for answer, probability in distribution.items():
            mass[cell[answer]] += probability
        cell = {answer: found if mass[found] >= least else found[:length] for answer, found in cell.items()}
    return cell


class Confused:
    """Streams of which some roles get another's, and races of which some positions do."""

    def __init__(self, chance: Chance, roles: Mapping[Role, Role] | None = None, races: int = 1) -> None:
        self._chance, self._roles, self._races = chance, roles or {}, races

    def at(self, place: Place, role: Role) -> Stream:
        return self._chance.at(place, self._roles.get(role, role))

    def race(self, position: int, ids: Ids) -> Race:
        return self._chance.race(position // self._races, ids)
