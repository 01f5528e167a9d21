"""`tslt-tree`: truncated sparse logits transmission, multi-candidate (METHODS 2, token tree; TSLT 4).

Up: a token tree and the truncated distribution of every node that has children. Down: the accepted path and one token. The
children of a node are drawn one after the other, with or without replacement, and tested in that order against what is left of
the target.
"""

from dataclasses import dataclass

from antiphon.core.acceptance import accept_child
from antiphon.core.chance import Place, Role, Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import TokenTree, draw_children
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Exchanged
from antiphon.methods.speculative.options import WithTree, expansion_option
from antiphon.methods.speculative.token_tree import TreeCloud, TreeDevice
from antiphon.methods.speculative.tslt import SparseOptions, Sparsifier, sparse_codec
from antiphon.methods.verifier import Target
from antiphon.models.needs import Need
from antiphon.options import option
from antiphon.wire.packing import Reader, Writer


@dataclass(frozen=True, slots=True)
class TsltTreeOptions(SparseOptions, WithTree):
    """Options of `tslt-tree`."""

    expansion: str = expansion_option()
    replacement: bool = option(False, "Draw children with replacement.")

    def __post_init__(self) -> None:
        SparseOptions.__post_init__(self)
        self.require_fit()


class TsltTreeDevice(TreeDevice):
    """Sends truncated distributions."""

    def __init__(self, side: DeviceSide, options: TsltTreeOptions) -> None:
        super().__init__(side, options)
        self._replacement = options.replacement
        self._sparsifier = Sparsifier(options)
        self.quantise = self._sparsifier
        self._codec = sparse_codec(side.common, options)

    def draw(self, stream: Stream, distribution: Probs, width: int) -> list[int]:
        """One after the other."""
        return draw_children(stream, distribution, width, replacement=self._replacement)

    def pack(self, writer: Writer, tree: TokenTree) -> None:
        """One distribution for each node that has children."""
        self._codec.write(writer, list(tree.distributions.values()))

    def tell(self, exchanged: Exchanged, tree: TokenTree) -> None:
        """What was kept and cut of the distributions."""
        self._sparsifier.tell(exchanged, len(tree.distributions))


class TsltTreeCloud(TreeCloud):
    """Tests children against what is left of the target."""

    def __init__(self, side: CloudSide, options: TsltTreeOptions) -> None:
        super().__init__(side, options)
        self.repeats = self._replacement = options.replacement
        self._codec = sparse_codec(side.common, options)

    def unpack(self, reader: Reader, tree: TokenTree) -> None:
        """One distribution for each node that has children."""
        tree.distributions = dict(zip(tree.draws, self._codec.read(reader, len(tree.draws)), strict=True))
        for node, children in tree.draws.items():
            if any(tree.distributions[node][tree.numbers[child]] == 0 for child in children):
                raise ProtocolError("a child has probability 0, so it cannot have been drawn", "bad-probability")

    def choose(self, tree: TokenTree, node: int, target: Target, place: Place) -> tuple[int, None] | tuple[None, int]:
        """Test the children in the order in which they were drawn; if none stands, draw from what is left."""
        children, chance = tree.draws[node], self.side.chance
        drawn, stream = [tree.numbers[child] for child in children], chance.at(place, Role.ACCEPT)
        first, rest = accept_child(stream, target.probs, tree.distributions[node], drawn, replacement=self._replacement)
        if first is not None:
            return children[first], None
        return None, chance.at(place, Role.RESAMPLE).categorical(rest)

    def bonus(self, target: Target, place: Place) -> int:
        """A draw from the target."""
        return self.side.chance.at(place, Role.TARGET).categorical(target.probs)


_SUMMARY = "a token tree and truncated draft distributions up, the accepted path and one token down; the cloud resamples"
TSLT_TREE = Method(
    "tslt-tree",
    _SUMMARY,
    True,
    TsltTreeDevice,
    TsltTreeCloud,
    options=TsltTreeOptions,
    bits=accounting.sparse_drafts,
    needs=frozenset({Need.DISTRIBUTIONS, Need.TREE}),
)
