"""The nodes of a growing tree that a device has sent, and how both ends name them (docs/protocol.md, a tree that grows)."""

from collections.abc import Mapping, Sequence

from antiphon.core.growth import Growth
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import ProtocolError
from antiphon.methods.base import Transcript
from antiphon.vocabulary import CommonVocabulary, bits_for
from antiphon.wire.messages import Verdict
from antiphon.wire.packing import Reader, Writer


class SentNodes:
    """Those of one epoch, by the numbers that they have on the device."""

    def __init__(self, common: CommonVocabulary) -> None:
        self._common = common
        self.begin(ROOT)

    def begin(self, root: int) -> None:
        """Another epoch, behind this node."""
        self._numbers = {root: ROOT}
        self._children: dict[int, list[int]] = {}
        self._messages: dict[int, int] = {}
        self._count = 0

    def __contains__(self, node: int) -> bool:
        return node in self._messages

    def __len__(self) -> int:
        return self._count

    def message(self, node: int) -> int:
        """The number of the message in which a node was sent."""
        return self._messages[node]

    def children(self, node: int) -> Sequence[int]:
        """Those that were sent of a node, in their order."""
        return self._children.get(node, [])

    def pack(self, tree: TokenTree, nodes: Sequence[int], message: int) -> bytes:
        """The payload of a `Draft` with these nodes, a parent before its children, which is this message."""
        writer = Writer()
        for node in nodes:
            parent = tree.parents[node]
            writer.number(self._numbers[parent] + 1, bits_for(self._count + 1))
            writer.number(tree.numbers[node], self._common.common_bits)
            self._numbers[node], self._messages[node] = self._count, message
            self._children.setdefault(parent, []).append(node)
            self._count += 1
        return writer.finish()

    def read_verdict(self, verdict: Verdict, growth: Growth, transcript: Transcript) -> tuple[list[int], list[int]]:
        """The accepted path of a verdict, and the tokens that it commits: those, and one behind them unless they end it."""
        reader, common = Reader(verdict.payload), self._common
        path = self._read_path(reader, growth.root, verdict)
        numbers = [growth.tree.numbers[node] for node in path]
        if not (numbers and transcript.is_end(numbers[-1])):
            numbers.append(reader.number(common.target_bits, common.target_size, "the token after the accepted ones"))
        reader.finish()
        return path, numbers

    def tested(self, growth: Growth, numbers: Sequence[int]) -> tuple[list[int], list[int]]:
        """By level: how many nodes these tokens tell of; and the nodes that stand, one a level."""
        tree, node = growth.tree, growth.root
        tested: list[int] = []
        stood: list[int] = []
        for number in numbers:
            siblings = self.children(node)
            place = next((place for place, child in enumerate(siblings) if tree.numbers[child] == number), None)
            if siblings:
                tested.append(len(siblings) if place is None else place + 1)
            if place is None:
                break
            node = siblings[place]
            stood.append(node)
        return tested, stood

    def _read_path(self, reader: Reader, root: int, verdict: Verdict) -> list[int]:
        path: list[int] = []
        for _ in range(verdict.accepted):
            siblings = [node for node in self.children(path[-1] if path else root) if self._messages[node] <= verdict.round]
            if not siblings:
                raise ProtocolError(f"{verdict.accepted} drafts were accepted, but the tree ends before", "out-of-range")
            path.append(siblings[reader.small(len(siblings), "the place of an accepted child")])
        return path

    def move(self, moved: Mapping[int, int]) -> None:
        """Nodes have other numbers on the device; those that are not named are of no use any more."""
        self._numbers = {moved[node]: number for node, number in self._numbers.items() if node in moved}
        self._messages = {moved[node]: message for node, message in self._messages.items() if node in moved}
        kept = {moved[node]: children for node, children in self._children.items() if node in moved}
        self._children = {node: [moved[child] for child in children if child in moved] for node, children in kept.items()}
