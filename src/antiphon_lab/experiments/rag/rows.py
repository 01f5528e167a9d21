"""The rows of `antiphon-lab bench rag`: a method, and options of it that are not the usual ones.

They are written as `dragon`, `dragon+packing=topp`, `concord+gate=off+bound=global`; any option of a mixture can be given
(`antiphon.methods.mixture.options`), and a name in front: `fast: concord+gate=0.5`.
"""

from dataclasses import asdict, dataclass, fields

from antiphon.methods import WITH_DOCUMENTS, find
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.options import read_options

BASELINE = "dragon"
"""The method that the others' speed is compared with."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row. name: its own, or as it is written; options: all of them, the task's form and the passages kept too."""

    name: str
    method: str
    options: MixtureOptions

    @property
    def key(self) -> str:
        """Method and options, so that equal keys are equal answers."""
        values = (getattr(self.options, field.name) for field in fields(self.options))
        return " ".join(map(str, (self.method, *values)))


def parse_row(text: str, usual: MixtureOptions) -> Row:
    """The row that a text names; what it does not say is as in `usual`. Raises UsageError."""
    label, _, named = text.rpartition(":")
    name, *changes = (part.strip() for part in named.split("+"))
    method = find(name, WITH_DOCUMENTS)
    values = asdict(usual) | read_options(method.options, changes, name)
    return Row(label.strip() or text.strip(), name, method.options(**values))
