"""An answer on a terminal, each token marked by where it came from; elsewhere it is plain text."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from antiphon import shown
from antiphon.cli.screen import write
from antiphon.device.answer import Piece
from antiphon.methods.effects import Kind

STYLES = {Kind.LOCAL: "italic yellow", Kind.CERTAIN: "cyan", Kind.CONFIRMED: "green", Kind.CHANGED: "bold magenta underline"}
"""Without colours the tokens that a cloud changed, and those that no cloud saw, still differ from the rest."""

LEGEND = {
    Kind.LOCAL: "no evidence came in time",
    Kind.CERTAIN: "none could change it",
    Kind.CONFIRMED: "by a cloud",
    Kind.CHANGED: "by a cloud",
}


class Marking:
    """Shows an answer as it comes, and remembers the marks. It is shown once a token: so it is when documents are mixed."""

    def __init__(self, *, plain: bool) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._marked = self._console.is_terminal and not plain
        self._kinds: list[Kind | None] = []

    def explain(self) -> None:
        """One line on stderr says what the marks mean, if there will be any."""
        if self._marked:
            parts = [Text.assemble((kind.value, STYLES[kind]), f" {meaning}") for kind, meaning in LEGEND.items()]
            Console(stderr=True, highlight=False, soft_wrap=True).print(Text(", ").join(parts))

    def show(self, pieces: Sequence[Piece]) -> None:
        """Add the text that a token brought, perhaps none yet."""
        self._kinds.append(pieces[-1].origin if pieces else None)
        for piece in pieces:
            if self._marked:
                self._console.out(shown.block(piece.text), style=STYLES[piece.origin], end="", highlight=False)
            else:
                write(piece.text)

    def kinds(self, counted: Counter[Kind]) -> list[Kind | None]:
        """The mark of each token, from how many there are of each; None where a token brought no text and that leaves it open.

        An end, or a part of a character, brings none.
        """
        kinds = self._kinds[: counted.total()]
        left = list((counted - Counter(kind for kind in kinds if kind is not None)).keys())
        only = left[0] if len(left) == 1 else None
        return [only if kind is None else kind for kind in kinds]
