"""`coupled-tree`: coupled drafting with token trees (METHODS 3). No probabilities on the wire.

The children of a node are the first of the race over the device's distribution: the likeliest winners over the target. The
cloud walks down as long as its own winner is among them. Up: ids. Down: the path and one token. The answer is that of `cloud`
with the seed.

The tree grows best first: it has the nodes with the most probable paths (`core.growth`), and tells the parent of each. With
`expansion` it has a fixed shape instead, as `tslt-tree`'s.
"""

from dataclasses import dataclass

from antiphon.core.chance import Place, Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudHalf, CloudSide, DeviceHalf, DeviceSide, Method
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Receive, Send, ServingHalf, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.options import LOOKUP_HELP, MAX_TREE_NODES, LookingUp, WithTree, require_lookup
from antiphon.methods.speculative.stream.racing import Racing, RacingStream
from antiphon.methods.speculative.stream.tree_cloud import GrowingTreeCloud
from antiphon.methods.speculative.stream.tree_drafts import COOLEST, TreeDrafts
from antiphon.methods.speculative.token_tree import TreeCloud, TreeDevice
from antiphon.methods.verifier import Target
from antiphon.models.needs import Need
from antiphon.options import option, require
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer

GROW = ""
"""What `expansion` is for a tree without a fixed shape."""


@dataclass(frozen=True, slots=True)
class CoupledTreeOptions(WithTree):
    """Options of `coupled-tree`. expansion: of a tree of fixed shape; nodes: of one that grows. Raises UsageError."""

    expansion: str = option(
        GROW, f"grow: best first; or children of each node by depth, at most {MAX_TREE_NODES} nodes in all.", {"grow": GROW}
    )
    nodes: int = option(12, f"Nodes of a tree that grows best first, 1 to {MAX_TREE_NODES}.")
    lookup: LookingUp = option("auto", LOOKUP_HELP)

    def __post_init__(self) -> None:
        require(1 <= self.nodes <= MAX_TREE_NODES, f"a tree has 1 to {MAX_TREE_NODES} nodes, not {self.nodes}")
        require_lookup(self.lookup)
        if self.expansion != GROW:
            self.require_fit()

    @property
    def max_drafts(self) -> int:
        """Nodes of a tree at most."""
        return self.nodes if self.expansion == GROW else self.full


class CoupledTreeDevice:
    """Drafts trees that grow, or of a fixed shape."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        self._half: DeviceHalf = ShapedTreeDevice(side, options) if options.expansion else GrowingTreeDevice(side, options)

    def run(self) -> Half:
        """Write the answer."""
        return self._half.run()


class CoupledTreeCloud:
    """Runs the races over the targets of such trees."""

    def __init__(self, side: CloudSide, options: CoupledTreeOptions) -> None:
        self._half: CloudHalf = ShapedTreeCloud(side, options) if options.expansion else GrowingTreeCloud(side, options)

    def run(self) -> ServingHalf:
        """Serve the answer."""
        return self._half.run()


class GrowingTreeDevice:
    """Grows a tree, sends it, and commits what the verdict says, round after round."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        self.side = side
        self._drafts = TreeDrafts(side, options.nodes, options.lookup)
        self._round = 0

    def run(self) -> Half:
        """Draft and commit, round after round."""
        while (finish := self.side.transcript.finish) is None:
            yield from self._drafts.grow()
            nodes = self._drafts.growth.best()
            yield self._sent(nodes)
            verdict = expect((yield Receive()), Verdict, self._round)
            yield self._committed(verdict, nodes)
            self._round += 1
        return finish

    def _sent(self, nodes: list[int]) -> Send:
        writer, tree = Writer(), self._drafts.growth.tree
        for place, node in enumerate(nodes):
            parent = tree.parents[node]
            writer.number(0 if parent == ROOT else nodes.index(parent) + 1, bits_for(place + 1))
            writer.number(tree.numbers[node], self.side.common.common_bits)
        return Send(Draft(self._round, len(nodes), writer.finish()))

    def _committed(self, verdict: Verdict, nodes: list[int]) -> Emit:
        tree, transcript = self._drafts.growth.tree, self.side.transcript
        path, tested, token = self._read(verdict, nodes)
        node = path[-1] if path else ROOT
        tokens = [Emitted(tree.numbers[step], Kind.ACCEPTED) for step in path]
        if token is not None:
            fell = any(tree.parents[other] == node for other in nodes)
            tested += [sum(tree.parents[other] == node for other in nodes)] if fell else []
            tokens.append(Emitted(token, Kind.CORRECTION if fell else Kind.BONUS))
        for before, emitted in zip([ROOT, *path], tokens, strict=False):
            self._drafts.learn(before, emitted.number)
        for emitted in tokens:
            transcript.commit(emitted.number)
        self._drafts.keep(node)
        self._drafts.commit([emitted.number for emitted in tokens])
        return Emit(tuple(tokens), Exchanged(drafted=len(nodes), trips=1), tested=Outcome(tuple(tested), len(path)))

    def _read(self, verdict: Verdict, nodes: list[int]) -> tuple[list[int], list[int], int | None]:
        """The accepted path, the siblings tested at each step of it, and the token behind, unless the path ends the answer."""
        reader, common, tree = Reader(verdict.payload), self.side.common, self._drafts.growth.tree
        path: list[int] = []
        tested: list[int] = []
        for _ in range(verdict.accepted):
            siblings = [node for node in nodes if tree.parents[node] == (path[-1] if path else ROOT)]
            if not siblings:
                raise ProtocolError(f"{verdict.accepted} drafts were accepted, but the tree ends before", "out-of-range")
            place = reader.small(len(siblings), "the place of an accepted child")
            path.append(siblings[place])
            tested.append(place + 1)
        ended = bool(path) and self.side.transcript.is_end(tree.numbers[path[-1]])
        what = "the token after the accepted ones"
        token = None if ended else reader.number(common.target_bits, common.target_size, what)
        reader.finish()
        return path, tested, token


class ShapedTreeDevice(TreeDevice):
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


class ShapedTreeCloud(TreeCloud):
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
