"""The device's half of a growing tree in a stream: it grows all the time below the newest token (METHODS 3, *a growing tree*).

Nodes are sent as they are made, those that are likely enough to be among the best; the tree is pruned at every verdict. An
epoch goes on as long as the verdicts' tokens are nodes that were sent, also those that came too late for a pass.
"""

from collections.abc import Generator, Sequence
from typing import Any

from antiphon.core.tree import ROOT
from antiphon.errors import ProtocolError
from antiphon.methods.base import DeviceSide
from antiphon.methods.drafter import Portions
from antiphon.methods.effects import Came, Emit, Emitted, Exchanged, Half, Kind, Now, Receive, Send, expect
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.options import CoupledTreeOptions
from antiphon.methods.speculative.stream.device import TOLD_EVERY
from antiphon.methods.speculative.stream.tree_drafts import TreeDrafts
from antiphon.methods.speculative.stream.tree_pace import TreePace
from antiphon.methods.speculative.stream.tree_sent import SentNodes
from antiphon.wire.messages import Draft, Message, Progress, Verdict


class StreamTreeDevice:
    """Grows a tree, sends it node by node, and commits what the verdicts say."""

    def __init__(self, side: DeviceSide, options: CoupledTreeOptions) -> None:
        self.side = side
        # What is drafted and not tested outlives a session, and so does the context that holds it.
        self._drafts: TreeDrafts = side.memory.round or TreeDrafts(side, options.max_drafts, options.lookup)
        side.memory.round = self._drafts
        self.pace: TreePace = side.memory.learned or TreePace(options)
        side.memory.learned = self.pace
        self.pace.resume()
        self._sent = SentNodes(side.common)
        self._portions = Portions()
        self._epoch = self._verdicts = 0
        self._told = side.transcript.position  # what the cloud knows that is known here
        self._drafted = 0  # nodes sent since the last verdict
        self._said_idle = False

    def run(self) -> Half:
        """Draft, and commit what the verdicts say."""
        if self._drafts.drafter.exhausted:
            self._drafts.drafter.tell()
        while (finish := self.side.transcript.finish) is None:
            self.pace.trip.timed = self.side.round_trip
            nodes = self._next((yield Now()))
            if not nodes:
                yield from self._rest()
            message = yield Receive(0.0 if nodes else None)
            if isinstance(message, Progress):
                self.pace.use.unwanted()
            elif message is not None:
                yield self._settle(message, (yield Came()))
                yield from self._tell()
            elif nodes:
                yield from self._read(nodes)
        return finish

    def _next(self, now: float) -> list[int]:
        """The nodes to read next."""
        growth = self._drafts.growth
        nodes = self._drafts.next()
        chances = [growth.chance(node) for node in nodes]
        if not nodes or not self.pace.pays(chances[0], growth.depth(nodes[0]), now):
            return []
        return nodes[: self.pace.width(chances)]

    def _read(self, nodes: Sequence[int]) -> Generator[Any, Any, None]:
        if nodes[0] == ROOT and (yield from self._portions.read(self._drafts.drafter)):
            return
        started = yield Now()
        yield from self._drafts.read(nodes)
        now = yield Now()
        self.pace.read(len(nodes), now - started)
        new, growth = self._unsent(), self._drafts.growth
        if new and self.pace.must_leave(max(map(growth.depth, new)), now):
            yield self._send(new, now)

    def _unsent(self) -> list[int]:
        """The nodes that are worth sending."""
        growth, bar = self._drafts.growth, max(self._drafts.rule.bar, self.pace.least)
        room = growth.most - sum(node in self._sent for node in growth.alive)
        return [node for node in growth.best() if node not in self._sent and growth.chance(node) >= bar][: max(0, room)]

    def _rest(self) -> Generator[Any, Any, None]:
        """Before it waits: send what is left, or say that nothing comes."""
        now, new = (yield Now()), self._unsent()
        if new or not (self._said_idle or self._lives):
            yield self._send(new, now)

    def _tell(self) -> Generator[Any, Any, None]:
        """Tell how far the answer is known, where no new tree has done so for long: one may stand for ever."""
        transcript = self.side.transcript
        if transcript.finish is None and transcript.position - self._told >= TOLD_EVERY:
            self._told = transcript.position
            self.pace.trip.leave((yield Now()))
            yield Send(Progress(self._told))

    @property
    def _lives(self) -> bool:
        """Whether a node is on its way, or with the cloud, that may stand."""
        return any(node in self._sent for node in self._drafts.growth.alive)

    def _send(self, nodes: Sequence[int], now: float) -> Send:
        if not self._lives:
            # With nothing on its way a tree can be sent under a new epoch at no cost, and the cloud forgets the old one.
            self._epoch, self._told = self._verdicts, self.side.transcript.position
            self._sent.begin(self._drafts.growth.root)
        self._drafted += len(nodes)
        self._said_idle = not nodes
        self.pace.trip.leave(now)
        payload = self._sent.pack(self._drafts.growth.tree, nodes, self.pace.trip.sent)
        return Send(Draft(self._epoch, len(nodes), payload))

    def _settle(self, message: Message, now: float) -> Emit:
        """Commit a verdict's tokens, and keep what stands of the tree."""
        verdict, growth = expect(message, Verdict), self._drafts.growth
        self._require_turn(verdict)
        path, numbers = self._sent.read_verdict(verdict, growth, self.side.transcript)
        self.pace.trip.arrive(verdict.round, now)
        self._drafts.rule.grown(growth)
        tested, stood = self._sent.tested(growth, numbers)
        fell = len(tested) > len(stood)
        late = self._sent.message(stood[-1]) if len(stood) > len(path) else None
        self.pace.tested(len(stood), fell=fell)
        # One that stands, and was there before the pass, was left out of it.
        self.pace.use.came(len(path), int(late is not None and late <= verdict.round))
        own = Kind.CORRECTION if fell else Kind.BONUS if path else Kind.STREAMED
        kinds = [Kind.ACCEPTED] * len(path) + [own] * (len(numbers) - len(path))
        for number in numbers:
            self.side.transcript.commit(number)
        self._sent.move(self._drafts.commit(numbers))
        self._verdicts += 1
        exchanged, self._drafted = Exchanged(drafted=self._drafted), 0
        tokens = tuple(Emitted(number, kind) for number, kind in zip(numbers, kinds, strict=True))
        return Emit(tokens, exchanged, tested=Outcome(tuple(tested), len(stood)))

    def _require_turn(self, verdict: Verdict) -> None:
        trip = self.pace.trip
        if not trip.heard <= verdict.round <= trip.sent:
            sentence = f"a verdict on {verdict.round} messages came behind one on {trip.heard}"
            raise ProtocolError(f"{sentence}, and {trip.sent} were sent", "out-of-turn")
