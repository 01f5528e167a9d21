"""What coupled methods look up, of one answer, and how it joins what the model says (METHODS 3, Lookup)."""

from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter
from antiphon.methods.lookup import Found, Lookup
from antiphon.methods.speculative.options import LookingUp

SURE = 0.9
"""In a tree a token that was looked up with this chance is the only child: that saves the pass that would find its siblings."""


def lookup_of(side: DeviceSide, drafter: Drafter, wanted: LookingUp) -> Lookup:
    """That of the answer so far, if its link was lost, else a new one."""
    if side.memory.lookup is None:
        side.memory.lookup = Lookup(drafter.prompt_numbers, side.common.size, wanted)
    return side.memory.lookup


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
