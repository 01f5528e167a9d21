"""`coupled-tree`: coupled drafting with token trees (METHODS 3). No probabilities on the wire.

The children of a node are the first of the race over the device's distribution: the likeliest winners over the target. The
cloud walks down as long as its own winner is among them. Up: ids. Down: the path and one token. The answer is that of `cloud`
with the seed.
"""

from dataclasses import dataclass

from antiphon.core.chance import Place, Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import TokenTree
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.speculative.options import WithTree, expansion_option
from antiphon.methods.speculative.stream.racing import Racing, RacingStream
from antiphon.methods.speculative.token_tree import TreeCloud, TreeDevice
from antiphon.methods.verifier import Target
from antiphon.models.needs import Need

COOLEST = 0.05
"""The lowest temperature to draft at: at 0 there is one token, but the runners-up are wanted too. Any probs will do here."""


@dataclass(frozen=True, slots=True)
class CoupledTreeOptions(WithTree):
    """Options of `coupled-tree`."""

    expansion: str = expansion_option()

    def __post_init__(self) -> None:
        self.require_fit()


class CoupledTreeDevice(TreeDevice):
    """Drafts the first of the races."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        super().__init__(side, options)
        self.draft_chance = Racing(side.chance, side.common)
        self.drafter.warm(COOLEST)

    def draw(self, stream: Stream, distribution: Probs, width: int) -> list[int]:
        """The first `width` of the race."""
        if not isinstance(stream, RacingStream):
            raise TypeError("a coupled tree is drawn from races")
        return stream.first(distribution, width)


class CoupledTreeCloud(TreeCloud):
    """Runs the races over the targets."""

    def taken(self, tree: TokenTree) -> TokenTree:
        """All of it, or nothing where the context has no room for it: the winner does not hang on drafts."""
        return tree if self.side.has_room_for(len(tree.numbers)) else TokenTree()

    def choose(self, tree: TokenTree, node: int, target: Target, place: Place) -> tuple[int, None] | tuple[None, int]:
        """The child that is the winner, or the winner itself."""
        token = self.bonus(target, place)
        child = next((child for child in tree.children(node) if tree.numbers[child] == token), None)
        return (None, token) if child is None else (child, None)

    def bonus(self, target: Target, place: Place) -> int:
        """The winner."""
        return target.winner(self.side.chance.race(place.position, self.side.common.cloud_ids))


_SUMMARY = "a token tree up, ids only, the accepted path and one token down: both ends run the same races"
COUPLED_TREE = Method(
    "coupled-tree",
    _SUMMARY,
    True,
    CoupledTreeDevice,
    CoupledTreeCloud,
    options=CoupledTreeOptions,
    bits=accounting.ids_only,
    coupled=True,
    needs=frozenset({Need.WINNERS, Need.TREE}),
)
