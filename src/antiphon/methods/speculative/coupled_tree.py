"""`coupled-tree`: coupled drafting with token trees (METHODS 3). No probabilities on the wire.

The children of a node are the first of the race over the device's distribution: the likeliest winners over the target. The
cloud walks down as long as its own winner is among them. Up: ids. Down: the path and one token. The answer is that of `cloud`
with the seed.

The tree grows best first: it has the nodes with the most probable paths (`core.growth`), and tells the parent of each. With
`expansion` it has a fixed shape instead, as `tslt-tree`'s.
"""

from antiphon.core.chance import Place, Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import TokenTree
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudHalf, CloudSide, DeviceHalf, DeviceSide, Method
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Receive, Send, ServingHalf, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.options import GROW, CoupledTreeOptions
from antiphon.methods.speculative.stream.racing import Racing, RacingStream
from antiphon.methods.speculative.stream.tree_cloud import GrowingTreeCloud
from antiphon.methods.speculative.stream.tree_device import StreamTreeDevice
from antiphon.methods.speculative.stream.tree_drafts import COOLEST, TreeDrafts
from antiphon.methods.speculative.stream.tree_sent import SentNodes
from antiphon.methods.speculative.token_tree import TreeCloud, TreeDevice
from antiphon.methods.verifier import Target
from antiphon.models.needs import Need
from antiphon.wire.messages import Draft, Verdict


class CoupledTreeDevice:
    """Drafts trees that grow, or of a fixed shape."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        self._half: DeviceHalf = _device(options)(side, options)

    def run(self) -> Half:
        """Write the answer."""
        return self._half.run()


class CoupledTreeCloud:
    """Runs the races over the targets of such trees."""

    def __init__(self, side: CloudSide, options: CoupledTreeOptions) -> None:
        self._half: CloudHalf = ShapedTreeCloud(side, options) if options.expansion != GROW else GrowingTreeCloud(side, options)

    def run(self) -> ServingHalf:
        """Serve the answer."""
        return self._half.run()


class LockstepTreeDevice:
    """Grows a tree, sends it, and commits what the verdict says, round after round."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        self.side = side
        # What is drafted and not tested outlives a session, and so does the context that holds it.
        self._drafts: TreeDrafts = side.memory.round or TreeDrafts(side, options.max_drafts, options.lookup)
        side.memory.round = self._drafts
        self._sent = SentNodes(side.common)
        self._round = 0

    def run(self) -> Half:
        """Draft and commit, round after round."""
        while (finish := self.side.transcript.finish) is None:
            while nodes := self._drafts.next():
                yield from self._drafts.read(nodes)
            yield self._send()
            yield self._committed(expect((yield Receive()), Verdict, self._round + 1))
            self._round += 1
        return finish

    def _send(self) -> Send:
        growth = self._drafts.growth
        self._drafts.rule.grown(growth)
        self._sent.begin(growth.root)
        nodes = growth.best()
        return Send(Draft(self._round, len(nodes), self._sent.pack(growth.tree, nodes, self._round + 1)))

    def _committed(self, verdict: Verdict) -> Emit:
        sent, growth, transcript = self._sent, self._drafts.growth, self.side.transcript
        path, numbers = sent.read_verdict(verdict, growth, transcript)
        tested, _ = sent.tested(growth, numbers)
        kinds = [Kind.ACCEPTED] * len(path) + [Kind.CORRECTION if len(tested) > len(path) else Kind.BONUS]
        for number in numbers:
            transcript.commit(number)
        told = Exchanged(drafted=len(sent), trips=1)
        self._drafts.commit(numbers)
        emitted = tuple(Emitted(number, kind) for number, kind in zip(numbers, kinds, strict=False))
        return Emit(emitted, told, tested=Outcome(tuple(tested), len(path)))


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


def _device(options: CoupledTreeOptions) -> type[DeviceHalf]:
    if options.expansion != GROW:
        return ShapedTreeDevice
    return LockstepTreeDevice if options.lockstep else StreamTreeDevice


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
