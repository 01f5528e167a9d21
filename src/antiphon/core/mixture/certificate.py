"""Whether what the device knows of one step settles the dense token, and if not, which scores could (METHODS 4; CONCORD IV-C).

Of every token the device knows its own strength (`antiphon.core.mixture.weights`), and of every remote end either the strength
or a bound on it. The sum with 0 for what is not known is the least that the token can have, the sum with the bounds the most.
The *leader* has the largest least, lowest id on a tie. A token that is not wholly known and could have as much as the leader is
*ambiguous*; if nobody but the leader is, the leader is the dense token. (A token that is wholly known has exactly its least, so
it loses to the leader, also by its id.)

With one remote end, in the words of METHODS 4, certificate: for a known leader M > max U + delta; for another W(v) > M and
W(v) > every other U + delta. The ambiguous tokens are those with U >= max(M, W) - delta: never more than the paper's
U >= M - delta, and the dense token is among them or the leader. Before any report the bound is the largest number of its grid,
true of every distribution.

The paper's certificate has no least of what is not known (`known_only`): the leader is the largest of the tokens that are
wholly known, with M alone, and the ambiguous tokens are those with U >= M - delta. It asks more, and finds the same token.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from antiphon.core.distributions import Probs
from antiphon.core.mixture.scores import SCORES, ZERO, Codes, Report, Values, bound_grid, ranked
from antiphon.core.mixture.weights import certain_alone, dense_token, strengths_of, weights_of

Ids = NDArray[np.intp]


@dataclass(slots=True)
class _End:
    log_mass: float
    weight: float = 0.0
    scores: dict[int, int] = field(default_factory=dict)
    bound: int = 0


class Certificate:
    """The device's knowledge of one step.

    local: the device's distribution, shape (tokens,). log_masses: log h of the device, then of each remote end that takes part;
    the ends are numbered from 0 in that order. noise: the E of each token when the answer is sampled. known_only: only a token
    that is wholly known can be settled, as in the paper.
    """

    def __init__(
        self, local: Probs, log_masses: Sequence[float], noise: Values | None = None, *, known_only: bool = False
    ) -> None:
        self._distribution, self._log_mass, self._noise, self._known_only = local, log_masses[0], noise, known_only
        self._grid = bound_grid(sampled=noise is not None)
        self._ends = {number: _End(log_mass) for number, log_mass in enumerate(log_masses[1:])}
        self._weigh()

    def _weigh(self) -> None:
        own, *others = weights_of([self._log_mass, *(end.log_mass for end in self._ends.values())])
        for end, weight in zip(self._ends.values(), others, strict=True):
            end.weight = weight
        self._weight, self._local = own, strengths_of(own, self._distribution, self._noise)
        self._untouched = self._local.copy()  # -inf for tokens of which some remote end told the score
        self._untouched[list(self._touched())] = -np.inf

    @property
    def ends(self) -> list[int]:
        """The remote ends that take part."""
        return list(self._ends)

    def drop(self, number: int) -> None:
        """Go on without a remote end: the dense token is now that of the others, who share its weight."""
        del self._ends[number]
        self._weigh()

    @property
    def local_token(self) -> int:
        """What the device says by itself, whatever its weight."""
        return int(np.argmax(strengths_of(1.0, self._distribution, self._noise)))

    def certain_alone(self, kappa: float = 1.0) -> int | None:
        """The token, if no remote distribution could change it: see `antiphon.core.mixture.weights.certain_alone`."""
        return certain_alone(self._local, [end.weight for end in self._ends.values()], kappa, self._noise)

    def absorb(self, number: int, report: Report) -> None:
        """Take in what an end reported; each end's reports in the order in which it made them.

        Raises ValueError if a token or a code is out of range.
        """
        if not all(0 <= token < len(self._distribution) for token in report.scores):
            raise ValueError("a score is of a token outside the vocabulary")
        if not all(0 <= code <= ZERO for code in (report.bound, *report.scores.values())):
            raise ValueError("a score or bound is no 16-bit code")
        end = self._ends[number]
        end.scores.update(report.scores)
        end.bound = max(end.bound, report.bound)  # the larger code is the smaller bound, and true of what is not known now
        self._untouched[list(report.scores)] = -np.inf

    def settled(self, delta: float = 0.0) -> int | None:
        """The dense token if it is certain, with a margin of `delta` in log-probability, else None."""
        leader, ambiguous = self._state(delta)
        return leader if (ambiguous == leader).all() else None

    def wanted(self, count: int, epsilon: float, delta: float = 0.0) -> list[int]:
        """Which scores to ask for: the `count` ambiguous tokens with the most local mass, the largest first.

        Fewer if so many have 1 - epsilon of the local mass of all ambiguous ones; none if they have no local mass.
        """
        _, ambiguous = self._state(delta)
        masses = self._local[ambiguous]
        first = [place for place in ranked(masses, count) if masses[place] > 0]
        enough = int(np.searchsorted(np.cumsum(masses[first]), (1 - epsilon) * masses.sum())) + 1
        wanted: list[int] = ambiguous[first[:enough]].tolist()
        return wanted

    def unknown(self, number: int, tokens: Iterable[int]) -> list[int]:
        """Those of the tokens whose score at an end is not known."""
        return [token for token in tokens if token not in self._ends[number].scores]

    def dense(self, codes: Mapping[int, Codes]) -> int:
        """The dense token from all scores of every end that takes part.

        codes: of each end, shape (tokens,). Raises ValueError if they have another length.
        """
        if any(len(codes[number]) != len(self._distribution) for number in self._ends):
            raise ValueError("the scores of an end are not as many as the vocabulary's tokens")
        distributions = [self._distribution, *(SCORES.values(codes[number]) for number in self._ends)]
        return dense_token([self._weight, *(end.weight for end in self._ends.values())], distributions, self._noise)

    def _state(self, delta: float) -> tuple[int, Ids]:
        """The leader and the ambiguous tokens."""
        tokens = np.array(sorted(self._touched()), dtype=np.intp)
        least, most, whole = self._limits(tokens)
        leader, floor = self._known_leader(tokens, least, whole) if self._known_only else self._leader(tokens, least)
        # A margin of delta in logarithms is a factor of strengths, which are not logarithms here.
        factor = math.exp(delta)
        touched = tokens[(most * factor >= floor) & ~whole]
        return leader, np.concatenate([touched, self._ambiguous_untouched(floor, factor)])

    def _touched(self) -> set[int]:
        return set().union(*(end.scores for end in self._ends.values()))

    def _limits(self, tokens: Ids) -> tuple[Values, Values, NDArray[np.bool_]]:
        """The least and the most of each token, and whether it is wholly known."""
        least, most = self._local[tokens], self._local[tokens]
        whole = np.ones(len(tokens), dtype=np.bool_)
        noise = None if self._noise is None else self._noise[tokens]
        for end in self._ends.values():
            known = np.array([token in end.scores for token in tokens.tolist()], dtype=np.bool_)
            codes = np.array([end.scores.get(token, ZERO) for token in tokens.tolist()], dtype=np.uint16)
            told = strengths_of(end.weight, SCORES.values(codes), noise)
            # In the order of the ends, as `dense_token` adds them: the last bit of a sum hangs on it, and near ties on the last
            # bit.
            least, most, whole = least + told, most + np.where(known, told, self._bound(end)), whole & known
        return least, most, whole

    def _leader(self, tokens: Ids, least: Values) -> tuple[int, float]:
        first = int(np.argmax(self._untouched))
        rivals = [(float(self._untouched[first]), -first)]
        if len(tokens):
            best = int(np.argmax(least))
            rivals.append((float(least[best]), -int(tokens[best])))
        floor, token = max(rivals)
        return -token, floor

    def _known_leader(self, tokens: Ids, least: Values, whole: NDArray[np.bool_]) -> tuple[int, float]:
        """The paper's, and M; without one, no token and 0, which leaves every token ambiguous."""
        if not self._ends:
            return self._leader(tokens, least)  # no end takes part any more, so all is known
        known = np.where(whole, least, -np.inf)
        best = int(np.argmax(known)) if whole.any() else -1
        return (int(tokens[best]), float(known[best])) if best >= 0 else (-1, 0.0)

    def _ambiguous_untouched(self, floor: float, factor: float) -> Ids:
        # If the largest cannot reach the leader none can; mostly so, and the vocabulary need not be gone through.
        if not self._ends or self._most_untouched(self._untouched.max()) * factor < floor:
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(self._most_untouched(self._untouched) * factor >= floor)

    def _most_untouched(self, local: Values) -> Values:
        for end in self._ends.values():
            local = local + self._bound(end)
        return local

    def _bound(self, end: _End) -> float:
        return end.weight * self._grid.value(end.bound)
