"""Text that repeats: what followed the longest suffix of a text where it stood before (METHODS 3, Lookup).

A suffix automaton over token numbers, built as the text grows (Blumer et al. 1985). A state stands for all suffixes that end
at the same places; its `link` leads to the longest suffix that ends at more of them. So from the state of the whole text one
link leads to the longest suffix that stood before, and a transition leads from there to what followed it. Each token costs
O(1) on average, and a text of n tokens has less than 2n states.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

MOST_TOKENS = 2**15
"""Tokens that are remembered at most; of a longer text the newest, half as many at least. Some 15 MB."""

NOTED = 32
"""Suffixes of the text that a new token is noted for at most, of those that end at other places than the next shorter one; the
longest first. Only a text that says one thing over and over has more; there the shorter ones are noted a little late."""

LENGTHS = (1, 2, 3, 5, 8, 12, 20)
"""Lengths of a match up to which what followed is taken to be alike."""

RANKS = 2
"""Tokens that followed a match, the newest first, of which it is learned how often they do again."""

BELIEVED = ((0.2, 0.35, 0.5, 0.65, 0.75, 0.85, 0.9, 0.95), (0.1,) * 8)
"""How often they do, by rank and by length, before anything is learned; about what GSM8K's questions show at temperature 0."""

BELIEF = 4.0
"""What that counts, in tokens."""

KEEP = 0.98
"""What a token still counts after the next one like it."""

ROOT = 0


@dataclass(frozen=True, slots=True)
class Match:
    """The longest suffix of a text that stood before and was followed by something; length: its tokens, 0 where there is none.

    It is good until the automaton takes in more.
    """

    state: int
    length: int


class SuffixAutomaton:
    """What stood in a text. Text may be looked up that goes on otherwise than what is remembered: nothing changes by it."""

    def __init__(self, most_tokens: int = MOST_TOKENS) -> None:
        self._most = most_tokens
        self._forget()

    def extend(self, numbers: Iterable[int]) -> None:
        """Take in tokens behind the text."""
        for number in numbers:
            if len(self._text) == self._most:
                newest = self._text[-(self._most // 2) :]
                self._forget()
                self.extend(newest)
            self._text.append(number)
            self._append(number)

    @property
    def states(self) -> int:
        """How many there are, that of the empty suffix too: what memory it takes."""
        return len(self._next)

    @property
    def match(self) -> Match:
        """That of the whole text."""
        return self._followed(self._last, len(self._text))

    def after(self, match: Match, number: int) -> Match:
        """The match of the text of `match` with another token behind it."""
        state, length = match.state, match.length
        while state != ROOT and number not in self._next[state]:
            state = self._link[state]
            length = self._length[state]
        if number not in self._next[state]:
            return Match(ROOT, 0)
        return self._followed(self._next[state][number], length + 1)

    def continuations(self, match: Match) -> list[int]:
        """The tokens that followed the match, the one that did so last first; none where nothing matches."""
        following = self._next[match.state] if match.length else {}
        return sorted(following, key=lambda number: self._newest[following[number]], reverse=True)

    def _forget(self) -> None:
        self._text: list[int] = []
        self._next: list[dict[int, int]] = [{}]  # by state: the state after each token that followed
        self._link, self._length = [ROOT], [0]
        self._newest = [0]  # the last place where it ended
        self._last = ROOT  # the state of the whole text

    def _followed(self, state: int, length: int) -> Match:
        # The end of the text is followed by nothing, if its suffixes of that length stand nowhere else.
        if state != ROOT and not self._next[state]:
            state = self._link[state]
            length = self._length[state]
        return Match(state, length)

    def _append(self, number: int) -> None:
        before, self._last = self._last, self._state(self._length[self._last] + 1)
        link = self._link_of(before, number)
        self._link[self._last] = link
        self._note()

    def _link_of(self, state: int, number: int) -> int:
        """Lead from all suffixes that nothing like `number` followed to the new state; where its link leads."""
        while number not in self._next[state]:
            self._next[state][number] = self._last
            if state == ROOT:
                return ROOT
            state = self._link[state]
        target = self._next[state][number]
        return target if self._length[target] == self._length[state] + 1 else self._split(state, number, target)

    def _split(self, state: int, number: int, target: int) -> int:
        """A state of their own for the suffixes of `target` that end at the new place too: no longer than `state` and one."""
        split = self._state(self._length[state] + 1)
        self._next[split] = dict(self._next[target])
        self._link[split], self._link[target] = self._link[target], split
        while self._next[state].get(number) == target:
            self._next[state][number] = split
            if state == ROOT:
                break
            state = self._link[state]
        return split

    def _state(self, length: int) -> int:
        self._next.append({})
        self._link.append(ROOT)
        self._length.append(length)
        self._newest.append(0)
        return len(self._next) - 1

    def _note(self) -> None:
        state = self._last
        for _ in range(NOTED):
            self._newest[state] = len(self._text)
            if (state := self._link[state]) == ROOT:
                break


class Repeats:
    """How likely what followed a match follows again, by the length of the match and by how many followed it since."""

    def __init__(self) -> None:
        self._stood = [[0.0] * (len(LENGTHS) + 1) for _ in range(RANKS)]
        self._seen = [[0.0] * (len(LENGTHS) + 1) for _ in range(RANKS)]

    def chance(self, length: int, rank: int) -> float:
        """That of the token so many places behind the newest one, below RANKS, of a match of this length, at least 1."""
        place = bisect_left(LENGTHS, length)
        believed = BELIEF * BELIEVED[rank][place]
        return (self._stood[rank][place] + believed) / (self._seen[rank][place] + BELIEF)

    def observe(self, length: int, rank: int, stood: bool) -> None:
        """Learn from what came."""
        place = bisect_left(LENGTHS, length)
        self._seen[rank][place] = KEEP * self._seen[rank][place] + 1.0
        self._stood[rank][place] = KEEP * self._stood[rank][place] + stood
