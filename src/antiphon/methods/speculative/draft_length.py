"""How many drafts a round of a chain has: a fixed number, or as many as pay (METHODS 5)."""

from collections.abc import Sequence
from typing import Protocol

from antiphon.core.draft_length import Known, Pace, Round
from antiphon.methods.drafter import Drafted, Guess
from antiphon.methods.speculative.options import AUTO_DRAFT_LENGTH


class Lengths(Protocol):
    """Says when to stop drafting, and may learn from how rounds went."""

    def more(self, drafts: Sequence[Drafted | Guess], next: Guess | None = None) -> bool:
        """Whether another draft should follow these before they are sent; `next`, if that was looked up."""
        ...

    def tested(self, stood: Sequence[Drafted | Guess], next: Drafted | Guess | None, follows: bool) -> None:
        """Learn from a verdict: these drafts stood, and `next`, if it was tested, did if it `follows`."""
        ...

    def learn(self, round: Round) -> None:
        """Learn from how a round went."""
        ...


class Fixed:
    """The same number always."""

    def __init__(self, length: int) -> None:
        self._length = length

    def more(self, drafts: Sequence[Drafted | Guess], next: Guess | None = None) -> bool:
        """Until the number is reached."""
        return len(drafts) < self._length

    def tested(self, stood: Sequence[Drafted | Guess], next: Drafted | Guess | None, follows: bool) -> None:
        """Nothing to learn."""

    def learn(self, round: Round) -> None:
        """Nothing to learn."""


class Auto:
    """As many as pay, from none to AUTO_DRAFT_LENGTH."""

    def __init__(self) -> None:
        self.pace = Pace()

    def more(self, drafts: Sequence[Drafted | Guess], next: Guess | None = None) -> bool:
        """While another one pays."""
        known = None if next is None else Known(self.pace.acceptance.of(next.entropy))
        return len(drafts) < AUTO_DRAFT_LENGTH and self.pace.pays([draft.entropy for draft in drafts], known)

    def tested(self, stood: Sequence[Drafted | Guess], next: Drafted | Guess | None, follows: bool) -> None:
        """Learn which drafts stand."""
        for draft in stood:
            self.pace.acceptance.observe(draft.entropy, stood=True)
        if next is not None:
            self.pace.acceptance.observe(next.entropy, stood=follows)

    def learn(self, round: Round) -> None:
        """Learn how long it takes."""
        self.pace.observe(round)


def lengths(draft_length: int) -> Lengths:
    """From the option: 0 is auto."""
    return Fixed(draft_length) if draft_length else Auto()
