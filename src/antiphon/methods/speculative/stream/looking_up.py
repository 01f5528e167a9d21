"""What coupled methods look up, of one answer."""

from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Drafter
from antiphon.methods.lookup import Lookup
from antiphon.methods.speculative.options import LookingUp


def lookup_of(side: DeviceSide, drafter: Drafter, wanted: LookingUp) -> Lookup:
    """That of the answer so far, if its link was lost, else a new one."""
    if side.memory.lookup is None:
        side.memory.lookup = Lookup(drafter.prompt_numbers, side.common.size, wanted)
    return side.memory.lookup
