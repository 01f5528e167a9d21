"""The round that all tree methods share; a method fills in how children are drawn, what crosses the link, and which stand.

A round: the device grows a token tree and sends it; the cloud scores all nodes in one pass, walks down while children stand,
and answers with the path and one token. A `Draft` carries the draws of every node that has children, then what the method
adds. A `Verdict` carries the length of the path, the place of each child on it, then the token, unless the last child ended
the answer.

A round that a lost link cut is done again with the same tree, as those of chains are with the same drafts.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.core.chance import Chance, Place, Stream
from antiphon.core.distributions import Probs
from antiphon.core.rounding import Quantise, exactly
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, DeviceSide
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Emit, Emitted, Exchanged, Half, Kind, Receive, Send, ServingHalf, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.options import WithTree
from antiphon.methods.verifier import Target, TreeTargets
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Verdict
from antiphon.wire.packing import Reader, Writer


@dataclass(frozen=True, slots=True)
class Begun:
    """A round whose tree is drawn, and what is to be told of it."""

    tree: TokenTree
    exchanged: Exchanged


class TreeDevice:
    """The device's half: drafts a tree a round."""

    def __init__(self, side: DeviceSide, options: WithTree) -> None:
        if side.drafter is None:
            raise ValueError("this method drafts, so it needs a model on the device")
        self.side = side
        self.drafter: Drafter = side.drafter
        self.draft_chance: Chance = side.chance
        self.quantise: Quantise = exactly
        self._widths = options.widths
        self._round = 0

    def draw(self, stream: Stream, distribution: Probs, width: int) -> list[int]:
        """Draw `width` children from a distribution."""
        raise NotImplementedError

    def pack(self, writer: Writer, tree: TokenTree) -> None:
        """Write what the method sends with the draws of `tree`."""

    def tell(self, exchanged: Exchanged, tree: TokenTree) -> None:
        """Add what was sent with `tree` to the figures of the round."""

    def run(self) -> Half:
        """Draft and commit, round after round."""
        while (finish := self.side.transcript.finish) is None:
            yield from self._one_round()
        return finish

    def _one_round(self) -> Generator[Any, Any, None]:
        begun: Begun = self.side.memory.round or (yield from self._begun())
        self.side.memory.round = begun
        yield self._sent(begun.tree)
        verdict = expect((yield Receive()), Verdict, self._round)
        yield self._committed(verdict, begun)
        self._round += 1

    def _begun(self) -> Generator[Any, Any, Begun]:
        transcript = self.side.transcript
        widths = self._widths[: transcript.remaining - 1]
        tree = yield from self.drafter.draft_tree(
            widths, transcript.position, self.draft_chance, self.quantise, transcript.is_end, self.draw
        )
        if tree.layers < len(widths) and self.drafter.exhausted:
            self.drafter.tell()
        exchanged = Exchanged(drafted=len(tree.numbers), trips=1)
        self.tell(exchanged, tree)
        return Begun(tree, exchanged)

    def _sent(self, tree: TokenTree) -> Send:
        writer, common = Writer(), self.side.common
        # In the order of expansion, layer by layer: the cloud expands in the same order as it reads, so no parent has to be
        # named.
        for node, children in tree.draws.items():
            writer.number(len(children) - 1, bits_for(self._widths[tree.depth(node)]))
            for child in children:
                writer.number(tree.numbers[child], common.common_bits)
        self.pack(writer, tree)
        return Send(Draft(self._round, tree.layers, writer.finish()))

    def _committed(self, verdict: Verdict, begun: Begun) -> Emit:
        reader, common, transcript = Reader(verdict.payload), self.side.common, self.side.transcript
        tree = begun.tree
        node = _path_end(reader, tree, verdict.accepted)
        tokens = [Emitted(number, Kind.ACCEPTED) for number in tree.path_numbers(node)]
        if not (tokens and transcript.is_end(tokens[-1].number)):
            number = reader.number(common.target_bits, common.target_size, "the token after the accepted ones")
            tokens.append(Emitted(number, Kind.CORRECTION if tree.draws.get(node) else Kind.BONUS))
        reader.finish()
        self.side.memory.round = None
        for token in tokens:
            transcript.commit(token.number)
        self.drafter.keep(tree, node)
        self.drafter.commit([token.number for token in tokens])
        return Emit(tuple(tokens), begun.exchanged, tested=_tested(tree, node, tokens))


def _tested(tree: TokenTree, node: int, tokens: Sequence[Emitted]) -> Outcome:
    """On the way to the last node of the accepted path: its siblings up to it at each level, then all children that fell."""
    path = tree.path(node)
    drafts = [tree.children(tree.parents[step]).index(step) + 1 for step in path]
    fell = len(tree.children(node)) if len(tokens) > len(path) else 0  # none is tested behind an end
    return Outcome((*drafts, fell) if fell else tuple(drafts), len(path))


def _path_end(reader: Reader, tree: TokenTree, accepted: int) -> int:
    """The last node of the accepted path: for each step the place of the child among the different ones."""
    node = ROOT
    for _ in range(accepted):
        children = tree.children(node)
        if not children:
            raise ProtocolError(f"{accepted} drafts were accepted, but the tree ends before", "out-of-range")
        node = children[reader.number(bits_for(len(children)), len(children), "the place of an accepted child")]
    return node


class TreeCloud:
    """The cloud's half: tests a tree a round, in one pass."""

    repeats = False
    """Whether a child may have been drawn twice."""

    def __init__(self, side: CloudSide, options: WithTree) -> None:
        self.side = side
        self._widths = options.widths
        self._round = 0

    def unpack(self, reader: Reader, tree: TokenTree) -> None:
        """Read what the method sends with the draws, and check it."""

    def choose(self, tree: TokenTree, node: int, target: Target, place: Place) -> tuple[int, None] | tuple[None, int]:
        """The child of `node` that stands, or the token if none does."""
        raise NotImplementedError

    def bonus(self, target: Target, place: Place) -> int:
        """The token after a path that came to a leaf."""
        raise NotImplementedError

    def taken(self, tree: TokenTree) -> TokenTree:
        """What is tested of a tree that came."""
        return tree

    def run(self) -> ServingHalf:
        """Test and answer, round after round."""
        side = self.side
        yield from side.verifier.prefill()
        while (finish := side.transcript.finish) is None:
            tree = self.taken(self._tree(expect((yield Receive()), Draft, self._round)))
            targets = yield from side.verifier.score_tree(tree, exactly)
            yield self._verdict(tree, targets)
            self._round += 1
        return finish

    def _tree(self, message: Draft) -> TokenTree:
        reader, tree, layer = Reader(message.payload), TokenTree(), [ROOT]
        room = min(len(self._widths), self.side.transcript.remaining - 1)
        if message.count > room:
            raise ProtocolError(f"at most {room} layers fit here, but {message.count} came", "out-of-range")
        for width in self._widths[: message.count]:
            new = [child for node in layer for child in tree.expand(node, self._siblings(reader, width))]
            layer = [node for node in new if not self.side.transcript.is_end(tree.numbers[node])]
        self.unpack(reader, tree)
        reader.finish()
        return tree

    def _siblings(self, reader: Reader, width: int) -> list[int]:
        common = self.side.common
        count = reader.number(bits_for(width), width, "the count of children") + 1
        drawn = [reader.number(common.common_bits, common.size, "the id of a child") for _ in range(count)]
        # Without replacement a child that was drawn has nothing left in the distribution that the next one is tested by: its
        # ratio would divide by 0.
        if not self.repeats and len(set(drawn)) < count:
            raise ProtocolError("a child was drawn twice without replacement", "out-of-range")
        return drawn

    def _verdict(self, tree: TokenTree, targets: TreeTargets) -> Send:
        transcript, writer = self.side.transcript, Writer()
        node, token = self._walk(tree, targets, writer)
        numbers = tree.path_numbers(node)
        if token is not None:
            writer.number(token, self.side.common.target_bits)
        committed = numbers if token is None else [*numbers, token]
        # Before they are committed: it says which of the nodes just read are the committed tokens, so that they are not read
        # again.
        self.side.verifier.keep(tree, node)
        self.side.verifier.commit(committed)
        for number in committed:
            transcript.commit(number)
        return Send(Verdict(self._round, len(numbers), writer.finish()))

    def _walk(self, tree: TokenTree, targets: TreeTargets, writer: Writer) -> tuple[int, int | None]:
        """Down the tree while children stand: the last node, and the token after it unless it ends the answer."""
        node, depth, place = ROOT, 0, self.side.transcript.place
        while tree.draws.get(node):
            child, token = self.choose(tree, node, targets.at(node), place(depth))
            if child is None:
                return node, token
            siblings = tree.children(node)
            writer.number(siblings.index(child), bits_for(len(siblings)))
            if self.side.transcript.is_end(tree.numbers[child]):
                return child, None
            node, depth = child, depth + 1
        return node, self.bonus(targets.at(node), place(depth))
