"""What follows an answer for now: tokens that a device wrote alone, until a cloud settles them (METHODS 3, offline)."""

from collections.abc import Sequence


class Unsettled:
    """Tokens behind those that stand, by wire number; how many were written, and how many of those were revised."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.written = self.revised = 0

    def show(self, numbers: Sequence[int]) -> None:
        """Let these follow what stands. Those that did so before, at the same place, are not written again."""
        same = same_beginning(self.numbers, numbers)
        self.written += len(numbers) - same
        self.revised += len(self.numbers) - same
        self.numbers = list(numbers)

    def settle(self, number: int) -> None:
        """A token stands now: the next one of them, or they are another text's from there on."""
        if self.numbers[:1] == [number]:
            del self.numbers[0]
        else:
            self.show([])


def same_beginning(first: Sequence[object], second: Sequence[object]) -> int:
    """How many tokens, or characters, both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))
