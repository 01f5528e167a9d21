"""The passes of a connection's last answers, kept for a device that checks one of them."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from antiphon.methods.base import Method
from antiphon.methods.effects import Step

RECORDED = 2**16
"""Tokens of passes that a connection keeps; the oldest answers go first, and a longer one is not kept."""


@dataclass(slots=True)
class Record:
    """The passes of an answer under way; none once they are too many."""

    passes: list[Step] = field(default_factory=list)
    size: int = 0

    def add(self, step: Step) -> None:
        """Another pass."""
        self.size += len(step.tokens)
        if self.size <= RECORDED:
            self.passes.append(step)
        else:
            self.passes.clear()


class Records:
    """Passes by session."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Record] = OrderedDict()

    @property
    def by_session(self) -> Mapping[int, Sequence[Step]]:
        """What is kept."""
        return {session: record.passes for session, record in self._kept.items()}

    def keep(self, session: int, record: Record) -> None:
        """Keep the passes of a session that is over."""
        if record.passes:
            self._kept[session] = record
        while sum(one.size for one in self._kept.values()) > RECORDED:
            self._kept.popitem(last=False)


def is_recorded(method: Method) -> bool:
    """Whether a device may check its answers by their passes: it must write the text of `cloud`, and not be that."""
    return method.exact and method.drafts and not method.mixes
