"""A second drafter, which costs no forward pass: what followed where the text stood before (METHODS 3, Lookup).

It reads the prompt and the answer, and nothing else. A draft leaves the device, so a document that must not leave it is not
looked up (docs/methods.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.core.draft_length import Known
from antiphon.core.lookup import RANKS, Match, Repeats, SuffixAutomaton
from antiphon.methods.drafter import Drafted, Guess
from antiphon.methods.speculative.options import LookingUp

SURE = 0.9
"""In a tree a token that was looked up with this chance is the only child: that saves the pass that would find its siblings."""

LIKELIER = 0.7
"""How likely what was looked up falls, at most, over how likely the model's own draft does, for it to be drafted instead. Less
than 1, as it is looked up most where the model would be right more often than usual."""

KEEP = 0.98
"""What a draft of the model still counts after the next one."""


@dataclass(frozen=True, slots=True)
class Found:
    """A token that is likely to follow, by its wire number, and how likely."""

    number: int
    chance: float


class Lookup:
    """Of one answer. prompt: makes it, by wire number, as the cloud spells it, when it is to be read.

    size: of the common vocabulary; no other token can be drafted. wanted: auto to draft what was found where it is likelier to
    stand than what the model would draft, on wherever something was found, off nowhere.
    """

    def __init__(self, prompt: Callable[[], Sequence[int]], size: int, wanted: LookingUp) -> None:
        self._text, self._repeats, self._size, self._wanted = SuffixAutomaton(), Repeats(), size, wanted
        self._prompt: Callable[[], Sequence[int]] | None = None if wanted == "off" else prompt
        self._unread: list[int] = []  # committed before the prompt was read
        self._fell, self._tested = 1.0, 3.0  # of the model's drafts

    def read(self) -> None:
        """Read the prompt, if it was not: it takes a while, so best where models compute. Before, nothing is found."""
        if self._prompt is None:
            return
        self._text.extend(self._prompt())
        self._prompt = None
        self.commit(self._unread)

    def after(self, line: Sequence[int]) -> list[Found]:
        """What may follow the committed tokens and `line`, RANKS tokens at most: what followed last comes first."""
        match = self._text.match
        for number in line:
            match = self._text.after(match, number)
        return [Found(number, self._repeats.chance(match.length, rank)) for rank, number in self._draftable(match)]

    def guess(self, line: Sequence[Drafted | Guess]) -> Guess | None:
        """What to draft behind the committed tokens and `line` without asking the model; None where the model should say."""
        found = self.after([draft.number for draft in line])
        if not found or (self._wanted == "auto" and 1.0 - found[0].chance > LIKELIER * self._fell / self._tested):
            return None
        return Guess(found[0].number, Known(found[0].chance))

    def learn(self, stood: bool) -> None:
        """Learn whether the model's likeliest draft stood."""
        self._tested = KEEP * self._tested + 1.0
        self._fell = KEEP * self._fell + (not stood)

    def tested(self, stood: Sequence[Drafted | Guess], fell: Drafted | Guess | None) -> None:
        """Learn how often the model's drafts fall: these stood, and this one did not."""
        for draft in (*stood, *([] if fell is None else [fell])):
            if not isinstance(draft.entropy, Known):
                self.learn(draft is not fell)

    def commit(self, numbers: Sequence[int]) -> None:
        """Take in committed tokens. It learns from all of them, whoever drafted them, if anybody did."""
        if self._wanted == "off":
            return
        if self._prompt is not None:
            self._unread += numbers
            return
        for number in numbers:
            match = self._text.match
            for rank, found in self._draftable(match):
                self._repeats.observe(match.length, rank, stood=found == number)
            self._text.extend([number])

    def _draftable(self, match: Match) -> list[tuple[int, int]]:
        followed = enumerate(self._text.continuations(match)[:RANKS])
        return [(rank, number) for rank, number in followed if number < self._size]


def join(numbers: list[int], chances: list[float], found: Found) -> None:
    """Add what was looked up to the children that the model has, the likeliest first, and to their chances.

    If both say the same, it is right if either is; if the model says something else, it is right where the model is not. The
    rest is for the others, in proportion.
    """
    if found.number not in numbers:
        numbers.append(found.number)
        chances.append(0.0)
    place, rest = numbers.index(found.number), 1.0 - chances[0]
    own = chances[place]
    both = own + (1.0 - own) * found.chance * (1.0 if place == 0 else rest)
    chances[:] = [chance * (1.0 - both) / (1.0 - own) if own < 1.0 else 0.0 for chance in chances]
    chances[place] = both
