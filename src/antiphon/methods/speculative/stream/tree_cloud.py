"""The cloud's half of a growing tree: tests the nodes that have come (METHODS 3, *a growing tree*).

It scores what hangs below its newest token in one pass, and walks down as long as the winners of its own races are among the
nodes. A `Draft` carries nodes: for each its parent, as 0 for the root of the epoch or the node's number + 1, in the fewest bits
that hold those sent before it, then the id. A `Verdict` carries for each step of the accepted path the place of the node among
the children that were sent of its parent, in a code of few bits for small numbers, then the token, unless the last node ended
the answer.
"""

from collections.abc import Generator
from typing import Any

from antiphon.core.rounding import exactly
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide
from antiphon.methods.effects import Receive, Send, ServingHalf, expect
from antiphon.methods.speculative.options import MAX_TREE_NODES, WithTree
from antiphon.methods.speculative.stream.tree_nodes import LiveNodes
from antiphon.methods.verifier import TreeTargets
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer


class GrowingTreeCloud:
    """Runs the races over the targets, on whatever nodes have come."""

    def __init__(self, side: CloudSide, options: WithTree) -> None:
        self.side = side
        self._most = options.max_drafts
        self._nodes = LiveNodes(MAX_TREE_NODES)
        self._begins = [side.transcript.position]  # where an epoch begins that knows so many verdicts
        self._epoch = 0
        self._asked = False

    def run(self) -> ServingHalf:
        """Test what has come, and answer."""
        yield from self.side.verifier.prefill()
        while (finish := self.side.transcript.finish) is None:
            # Everything that has come, before the pass: more nodes make the same pass bring more.
            while (message := (yield Receive(0.0 if self._asked else None))) is not None:
                self._take(expect(message, Draft))
            yield from self._answer()
        return finish

    def _take(self, message: Draft) -> None:
        """Add nodes to the tree, or begin another one."""
        if not self._epoch <= message.round < len(self._begins):
            raise ProtocolError(f"nodes of epoch {message.round} came in epoch {self._epoch}", "out-of-turn")
        if message.round > self._epoch:
            self._begin(message.round)
        # Else it was sent before the last verdict came, which has the token that was wanted.
        self._asked = message.round == len(self._begins) - 1
        reader, common = Reader(message.payload), self.side.common
        for _ in range(message.count):
            known = self._nodes.sent + 1
            parent = reader.number(bits_for(known), known, "the parent of a node") - 1
            self._nodes.add(parent, reader.number(common.common_bits, common.size, "the id of a node"))
        reader.finish()

    def _begin(self, epoch: int) -> None:
        self._epoch = epoch
        self._nodes.begin()
        for number in self.side.transcript.numbers[self._begins[epoch] :]:
            self._nodes.commit(number)

    def _answer(self) -> Generator[Any, Any, None]:
        """One pass: commit the winners as far as they are nodes, and the first that is none."""
        transcript, verifier = self.side.transcript, self.side.verifier
        tree, places = self._nodes.tree(self._most, transcript.remaining - 1)
        if not self.side.has_room_for(len(places)):
            tree, places = TokenTree(), []  # the winner does not hang on drafts
        node, token = self._walk(tree, (yield from verifier.score_tree(tree, exactly)))
        committed = [*tree.path_numbers(node), *([] if token is None else [token])]
        # Before they are committed: it says which of the nodes just read are the committed tokens, so that they are not read
        # again.
        verifier.keep(tree, node)
        verifier.commit(committed)
        for number in committed:
            transcript.commit(number)
            self._nodes.commit(number)
        self._asked = False
        # An epoch that knows this verdict begins here.
        self._begins.append(transcript.position)
        yield self._verdict([places[step] for step in tree.path(node)], token)

    def _verdict(self, places: list[int], token: int | None) -> Send:
        writer = Writer()
        for place in places:
            writer.small(place)
        if token is not None:
            writer.number(token, self.side.common.target_bits)
        return Send(Verdict(len(self._begins) - 2, len(places), writer.finish()))

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
