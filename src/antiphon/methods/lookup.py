"""A second drafter, which costs no forward pass: what followed where the text stood before (METHODS 3, *Lookup*).

It reads the prompt and the answer, and nothing else. A draft leaves the device, so a document that must not leave it is not
looked up (docs/methods.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.core.lookup import RANKS, Match, Repeats, SuffixAutomaton


@dataclass(frozen=True, slots=True)
class Found:
    """A token that is likely to follow, by its wire number, and how likely."""

    number: int
    chance: float


class Lookup:
    """Of one answer.

    prompt: by wire number, as the cloud spells it. size: of the common vocabulary, without which no token is drafted.
    """

    def __init__(self, prompt: Sequence[int], size: int) -> None:
        self._text, self._repeats, self._size = SuffixAutomaton(), Repeats(), size
        self._text.extend(prompt)

    def after(self, line: Sequence[int]) -> list[Found]:
        """What may follow the committed tokens and `line`, RANKS tokens at most: what followed last comes first."""
        match = self._text.match
        for number in line:
            match = self._text.after(match, number)
        return [Found(number, self._repeats.chance(match.length, rank)) for rank, number in self._draftable(match)]

    def commit(self, numbers: Sequence[int]) -> None:
        """Take in committed tokens. It learns from all of them, whoever drafted them, if anybody did."""
        for number in numbers:
            match = self._text.match
            for rank, found in self._draftable(match):
                self._repeats.observe(match.length, rank, stood=found == number)
            self._text.extend([number])

    def _draftable(self, match: Match) -> list[tuple[int, int]]:
        followed = enumerate(self._text.continuations(match)[:RANKS])
        return [(rank, number) for rank, number in followed if number < self._size]
