"""The cloud's half of a growing tree: tests the nodes that have come (METHODS 3, *a growing tree*).

It scores what hangs below its newest token in one pass, and walks down as long as the winners of its own races are among the
nodes. A `Draft` carries nodes: for each its parent, as 0 for the root of the epoch or the node's number + 1, in the fewest bits
that hold those sent before it, then the id. A `Verdict` carries for each step of the accepted path the place of the node among
the children that were sent of its parent, in a code of few bits for small numbers, then the token, unless the last node ended
the answer.
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.core.rounding import exactly
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide
from antiphon.methods.effects import Send
from antiphon.methods.speculative.options import MAX_TREE_NODES, CoupledTreeOptions
from antiphon.methods.speculative.stream.patience import Lockstep, Pacing
from antiphon.methods.speculative.stream.serving import StreamCloud
from antiphon.methods.speculative.stream.tree_nodes import LiveNodes
from antiphon.methods.speculative.stream.tree_patience import TreeStreaming
from antiphon.methods.verifier import TreeTargets
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer


class GrowingTreeCloud(StreamCloud):
    """Runs the races over the targets, on whatever nodes have come."""

    def __init__(self, side: CloudSide, options: CoupledTreeOptions) -> None:
        super().__init__(side, options, _pacing(side, options))
        self._nodes, self._most = LiveNodes(MAX_TREE_NODES), options.max_drafts
        self._epoch = 0

    @property
    def there(self) -> int:
        """Levels of the tree."""
        return self._nodes.levels

    def take_drafts(self, message: Draft, now: float) -> None:
        """Add nodes to the tree, or begin another one."""
        if not self._epoch <= message.round < len(self._begins):
            raise ProtocolError(f"nodes of epoch {message.round} came in epoch {self._epoch}", "out-of-turn")
        # Nobody has use for more, and while they are read no other device is served.
        if message.count > MAX_TREE_NODES:
            raise ProtocolError(f"at most {MAX_TREE_NODES} nodes may come at once, but {message.count} came", "out-of-range")
        if begins := message.round > self._epoch:
            self._begin(message.round)
        levels, reader, common = self._nodes.levels, Reader(message.payload), self.side.common
        for _ in range(message.count):
            known = self._nodes.sent + 1
            parent = reader.number(bits_for(known), known, "the parent of a node") - 1
            self._nodes.add(parent, reader.number(common.common_bits, common.size, "the id of a node"))
        reader.finish()
        gained = max(1, self._nodes.levels - levels) if message.count else 0
        answers = self._sent_at[message.round - 1] if begins else None
        self._pacing.heard(gained, now, answers, current=message.round == len(self._begins) - 1)

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        self._known = max(self._known, self._begins[epoch])
        self._nodes.begin()
        for number in self.side.transcript.numbers[self._begins[epoch] :]:
            self._nodes.commit(number)

    def answer(self) -> Generator[Any, Any, None]:
        """One pass: commit the winners as far as they are nodes, and the first that is none."""
        transcript, verifier, heard = self.side.transcript, self.side.verifier, self._heard
        there = self._nodes.tree(self._most, transcript.remaining - 1)
        tree, places = self._nodes.tree(self._pacing.take(len(there[1])), transcript.remaining - 1)
        if not self.side.has_room_for(len(places)):
            tree, places = TokenTree(), []  # the winner does not hang on drafts
        node, token = self._walk(tree, (yield from verifier.score_tree(tree, exactly)))
        committed = [*tree.path_numbers(node), *([] if token is None else [token])]
        self._learn(there[0], committed)
        # Before they are committed: it says which of the nodes just read are the committed tokens, so that they are not read
        # again.
        verifier.keep(tree, node)
        verifier.commit(committed)
        for number in committed:
            transcript.commit(number)
            self._nodes.commit(number)
        # The device has the nodes that stand: of them it lacks no token, only the word.
        self._known = min(transcript.position, self._known + len(tree.path(node)))
        # An epoch that knows this verdict begins here.
        self._begins.append(transcript.position)
        yield self._verdict(heard, [places[step] for step in tree.path(node)], token)

    def _learn(self, tree: TokenTree, committed: Sequence[int]) -> None:
        """Also of nodes that were not taken: whether they stand is told by the tokens."""
        stood: list[int] = []
        for number in committed:
            children = tree.children(stood[-1] if stood else ROOT)
            if (child := next((one for one in children if tree.numbers[one] == number), None)) is None:
                break
            stood.append(child)
        fell = len(stood) < len(committed) and bool(tree.children(stood[-1] if stood else ROOT))
        self._pacing.tested(len(stood), fell)
        if isinstance(self._pacing, TreeStreaming):
            self._pacing.ordered(len(tree.numbers), tree.layers, stood)

    def _verdict(self, heard: int, places: list[int], token: int | None) -> Send:
        writer = Writer()
        for place in places:
            writer.small(place)
        if token is not None:
            writer.number(token, self.side.common.target_bits)
        return Send(Verdict(heard, len(places), writer.finish()))

    def _walk(self, tree: TokenTree, targets: TreeTargets) -> tuple[int, int | None]:
        """Down the tree while the winners are nodes: the last one, and the token after it unless it ends the answer."""
        node, depth = ROOT, 0
        while True:
            token = self.winner(targets, node, self.side.transcript.position + depth)
            child = next((child for child in tree.children(node) if tree.numbers[child] == token), None)
            if child is None:
                return node, token
            if self.side.transcript.is_end(token):
                return child, None
            node, depth = child, depth + 1

    def winner(self, targets: TreeTargets, node: int, position: int) -> int:
        """The token after a node."""
        return targets.at(node).winner(self.side.chance.race(position, self.side.common.cloud_ids))


def _pacing(side: CloudSide, options: CoupledTreeOptions) -> Pacing:
    if options.lockstep:
        return Lockstep()
    return TreeStreaming(options.seconds, side.least_patience, options.objective, side.costs, options.max_drafts)
