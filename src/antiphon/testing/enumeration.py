"""The exact output distribution of real code, summed over every branch instead of sampled (METHODS 0).

`output_distribution(run)` calls `run(chance)` once for each path through its draws and adds up the probabilities of what it
returns. The code under test is the production code of both halves; only the source of chance is another, and it is keyed as
production's is: asked again for a draw it gives the same one, and two draws that share a key are an error.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from antiphon.core.chance import Place, Role
from antiphon.core.distributions import Ids, Probs
from antiphon.core.tree import draw_children

Outcome = TypeVar("Outcome", bound=Hashable)


class EnumeratingChance:
    """Replays a script of choices, then takes the first possible choice at every further draw.

    Each draw of a stream is a branch of its own; made again, as in a round that is done again, it is the same one. It is also a
    stream by itself, of draws that nobody makes again.
    """

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.script = list(script)
        self.choices: list[list[tuple[int, float]]] = []
        self.probability = 1.0
        self.races: dict[tuple[int, bytes, int], list[int]] = {}
        self.drawn: dict[tuple[Place, Role, int], tuple[float | bytes, int]] = {}

    def at(self, place: Place, role: Role) -> "EnumeratingStream":
        """The stream of `role` at `place`, from its first draw."""
        return EnumeratingStream(self, place, role)

    def race(self, position: int, ids: Ids) -> "EnumeratingRace":
        """The race at `position`; run again over the same distribution it has the same winners."""
        return EnumeratingRace(self, position)

    def bernoulli(self, probability: float) -> bool:
        """Branch on both outcomes of positive probability."""
        clipped = min(max(probability, 0.0), 1.0)
        return bool(self._choose([(1, clipped), (0, 1.0 - clipped)]))

    def categorical(self, probs: Probs) -> int:
        """Branch on every index of positive probability; `probs` is taken as given, without normalising."""
        return self._choose([(int(index), float(probs[index])) for index in np.flatnonzero(probs)])

    def _choose(self, outcomes: list[tuple[int, float]]) -> int:
        possible = [(value, weight) for value, weight in outcomes if weight > 0]
        depth = len(self.choices)
        if depth == len(self.script):
            self.script.append(0)
        self.choices.append(possible)
        # With the same choices before, a draw must have the same outcomes: else what runs draws from elsewhere too, or
        # remembers.
        if self.script[depth] >= len(possible):
            raise RuntimeError("the same draws before led elsewhere: what runs must be deterministic but for its chance")
        value, weight = possible[self.script[depth]]
        self.probability *= weight
        return value

    def next_script(self) -> list[int] | None:
        """The script of the next branch in depth-first order, or None after the last."""
        script = self.script[: len(self.choices)]
        while script:
            script[-1] += 1
            if script[-1] < len(self.choices[len(script) - 1]):
                return script
            script.pop()
        return None


class EnumeratingStream:
    """Successive draws of one key. Whether a key that comes again is of the very draw is told by its distribution."""

    def __init__(self, chance: EnumeratingChance, place: Place, role: Role) -> None:
        self._chance, self._place, self._role, self._count = chance, place, role, 0

    def bernoulli(self, probability: float) -> bool:
        """Branch on both outcomes of positive probability, once."""
        return bool(self._drawn(probability, lambda: self._chance.bernoulli(probability)))

    def categorical(self, probs: Probs) -> int:
        """Branch on every index of positive probability, once."""
        return self._drawn(probs.tobytes(), lambda: self._chance.categorical(probs))

    def _drawn(self, distribution: float | bytes, draw: Callable[[], int]) -> int:
        key = self._place, self._role, self._count
        self._count += 1
        if key not in self._chance.drawn:
            self._chance.drawn[key] = distribution, draw()
        known, value = self._chance.drawn[key]
        # The one mistake that sums over branches could hide: two draws that production would make alike.
        if known != distribution:
            raise RuntimeError(f"two draws share one key: draw {key[2]} of {self._role.name} at {self._place}")
        return value


class EnumeratingRace:
    """A race whose winners are branches.

    Two distributions at one position have independent winners here, which noise would couple: who wins over each is what
    counts.
    """

    def __init__(self, chance: EnumeratingChance, position: int) -> None:
        self._chance, self._position = chance, position

    def winner(self, probs: Probs) -> int:
        """Branch on every token of positive probability, once for each distribution."""
        return self.first(probs, 1)[0]

    def times(self) -> Probs:
        """Real numbers cannot be enumerated."""
        raise RuntimeError("the noise of a race is no branch: compare with a dense decision under the same noise")

    def first(self, probs: Probs, count: int) -> list[int]:
        """Branch on every order of `count` different tokens, once for each distribution."""
        key = (self._position, probs.tobytes(), count)
        if key not in self._chance.races:
            self._chance.races[key] = draw_children(self._chance, probs, count, replacement=False)
        return self._chance.races[key]

    def first_with_times(self, probs: Probs, count: int) -> tuple[list[int], Probs]:
        """As `first`, with 1 / p in place of each time: which nodes a tree has must not change what is written."""
        runners = self.first(probs, count)
        return runners, 1.0 / probs[runners]


def output_distribution(run: Callable[[EnumeratingChance], Outcome]) -> Mapping[Outcome, float]:
    """The probability of every value that `run(chance)` can return. `run` must be deterministic but for `chance`."""
    distribution: defaultdict[Outcome, float] = defaultdict(float)
    script: list[int] | None = []
    while script is not None:
        chance = EnumeratingChance(script)
        distribution[run(chance)] += chance.probability
        script = chance.next_script()
    return dict(distribution)
