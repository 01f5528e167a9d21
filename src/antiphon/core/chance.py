"""Chance as an argument: two verbs, `bernoulli` and `categorical` (METHODS 0).

Production draws from counter-based streams keyed by (answer, role, place), so a draw never depends on how many draws
came before it elsewhere. Tests pass `antiphon.testing.enumeration.EnumeratingChance`, which follows every branch.

A place is the position of a round's first token and an index in the round. Rounds begin at different positions, so what was
drawn beyond the tokens that a round brought is never used again; and a round that is done again draws the same again.
"""

import hashlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from antiphon.core.distributions import Ids, Probs
from antiphon.core.noise import Noise


class Role(IntEnum):
    """What a draw is for. Streams of different roles are independent, also between the two ends."""

    # The numbers are part of what a seed means (docs/protocol.md, the seed): a new role gets a new one, and none is used again.
    DRAFT = 1
    ACCEPT = 2
    RESAMPLE = 3
    TARGET = 4
    CANDIDATE = 5
    UNCERTAINTY = 6


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an answer a draw is made.

    first: the position of the round's first token (the index of a token in the answer). index: tokens from there, levels of a
    tree.
    """

    first: int
    index: int = 0

    @property
    def position(self) -> int:
        """The position of the token that is drawn, or drawn about."""
        return self.first + self.index


class Stream(Protocol):
    """Successive draws for one role at one place."""

    def bernoulli(self, probability: float) -> bool:
        """True with this probability: a uniform number in [0, 1) is strictly below it."""
        ...

    def categorical(self, probs: Probs) -> int:
        """An index drawn from `probs`, shape (tokens,); one of probability 0 is never drawn."""
        ...


class Race(Protocol):
    """The draws of one position that both ends make alike (METHODS 3): whoever asks, however often, and of whichever tokens."""

    def winner(self, probs: Probs) -> int:
        """A token drawn from `probs`, shape (tokens,)."""
        ...

    def first(self, probs: Probs, count: int) -> list[int]:
        """The winner, then who would win without it, and so on: `count` tokens, fewer if fewer are above 0."""
        ...

    def first_with_times(self, probs: Probs, count: int) -> tuple[list[int], Probs]:
        """As `first`, and the time E / p of each: float64, shape (tokens,). What is drawn must not hang on times."""
        ...

    def times(self) -> Probs:
        """The E of all tokens: float64, shape (tokens,), above 0."""
        ...


def answer_key(seed: int, prompt: str, *, chat: bool, choice: int = 0) -> int:
    """The key of all chance of an answer: 128 bits of what was asked, so one seed given to two prompts shares nothing.

    SHA-256 of the seed (8 bytes), the choice (4 bytes, the number of the answer where several are written), whether the prompt
    goes through the chat template (1 byte), all little-endian, and the prompt in UTF-8: the first 16 bytes, little-endian.
    """
    head = seed.to_bytes(8, "little") + choice.to_bytes(4, "little") + chat.to_bytes(1, "little")
    return int.from_bytes(hashlib.sha256(head + prompt.encode()).digest()[:16], "little")


class Chance(Protocol):
    """A source of streams and races."""

    def at(self, place: Place, role: Role) -> Stream:
        """The stream of `role` at a place, from its first draw; asked for again it gives the same draws again."""
        ...

    def race(self, position: int, ids: Ids) -> Race:
        """The race at a target position, the same on both ends. ids: the cloud's own of the tokens, int32, shape (tokens,)."""
        ...


class PhiloxChance:
    """Counter-based streams on numpy's Philox4x64-10, whose raw output is stable across numpy versions.

    key: below 2^128, the `answer_key` of what was asked, so that no two answers share a stream. Philox has it, the role added
    to its upper half by xor, for a key, and (number of the draw, place.index, place.first, 0) for a counter: any draw can be
    made again, in any order.
    """

    def __init__(self, key: int) -> None:
        self._key, self._sources = key, dict[Role, _Source]()
        self._noise = Noise(key)

    def at(self, place: Place, role: Role) -> "PhiloxStream":
        """The stream of `role` at `place`; the same arguments give the same stream again."""
        if role not in self._sources:
            self._sources[role] = _Source(self._key, role)
        return PhiloxStream(self._sources[role], place)

    def race(self, position: int, ids: Ids) -> Race:
        """The race at `position` of the tokens with these ids of the cloud."""
        return self._noise.race(position, ids)


class _Source:
    """The raw numbers of one key, by counter."""

    def __init__(self, key: int, role: Role) -> None:
        # One generator a role, set to a counter before each draw: making a new one for each would take ten times as long.
        halves = np.array([key & (2**64 - 1), key >> 64 ^ role], dtype=np.uint64)
        self._generator = np.random.Philox(key=halves)
        self._state = self._generator.state
        self._state["buffer_pos"] = 4  # nothing buffered: the next number comes from the counter

    def uniform(self, place: Place, number: int) -> float:
        """53 bits, in [0, 1)."""
        # numpy counts up before it draws: the block is that of number + 1, as the protocol has it.
        self._state["state"]["counter"][:] = (number, place.index, place.first, 0)
        self._generator.state = self._state
        # The upper 53 bits are all that a float64 holds: with one more some u would be rounded up to 1.
        return (int(self._generator.random_raw()) >> 11) * 2.0**-53


class PhiloxStream:
    """Successive uniform numbers of 53 bits, each from a counter of its own."""

    def __init__(self, source: _Source, place: Place) -> None:
        self._source, self._place, self._drawn = source, place, 0

    def bernoulli(self, probability: float) -> bool:
        """True iff u < probability, u uniform in [0, 1)."""
        return self._uniform() < probability

    def categorical(self, probs: Probs) -> int:
        """The first index whose cumulated probability exceeds a uniform number."""
        cumulated = np.cumsum(probs)
        threshold = self._uniform() * cumulated[-1]  # below the whole sum, also when rounded: u is at most 1 - 2^-53
        return int(np.searchsorted(cumulated, threshold, side="right"))

    def _uniform(self) -> float:
        self._drawn += 1
        return self._source.uniform(self._place, self._drawn - 1)
