"""Growing trees in a stream: whatever comes when, the text is that of `cloud`, and every node is used where it was made for."""

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.core.tree import TokenTree
from antiphon.methods.base import CloudSide
from antiphon.methods.effects import Emit, Finish, Half, Receive, Send
from antiphon.methods.speculative.coupled_tree import COUPLED_TREE, CoupledTreeCloud, CoupledTreeDevice
from antiphon.methods.speculative.options import CoupledTreeOptions
from antiphon.methods.speculative.stream.tree_cloud import GrowingTreeCloud
from antiphon.methods.speculative.stream.tree_device import StreamTreeDevice
from antiphon.methods.speculative.stream.tree_drafts import LEAVES
from antiphon.methods.speculative.stream.tree_nodes import LiveNodes
from antiphon.models.toy import ToyContext, ToyModel, named_toy
from antiphon.testing import assert_exact
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from antiphon.vocabulary import common_vocabulary
from antiphon.wire.messages import Message
from methods.speculative.ahead import PLAIN, Running, alike, reference
from support.examples import examples


@pytest.mark.core(1)
@pytest.mark.parametrize("patience", [AUTO, 0.0])
@pytest.mark.parametrize("nodes", [1, 3])
def test_it_is_exact(nodes: int, patience: float) -> None:
    assert_exact(COUPLED_TREE, CoupledTreeOptions(nodes=nodes, patience=patience), cuts=1)


@pytest.mark.medium
@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)], ids=["shared", "different"])
@pytest.mark.parametrize("patience", [AUTO, 0.0])
def test_it_is_exact_over_three_tokens(patience: float, pieces: tuple) -> None:
    pair, sampling = Pair(*pieces, seed=5), SamplingParams(temperature=1.0, top_k=2)
    options = CoupledTreeOptions(nodes=4, patience=patience)
    found = method_distribution(pair, COUPLED_TREE, options, sampling, 3)
    assert distance(found, target_distribution(pair, sampling, 3)) < 1e-12


def interleaved(halves: Sequence[Running], source: random.Random, lateness: float, steps: int = 10**9, pace: int = 1) -> None:
    """Run both to their end, at random who and when, or for so many steps and until the link can be lost to the device.

    pace: how much more often it is the device's turn.
    """
    while not all(half.over for half in halves):
        if steps <= 0 and isinstance(halves[0]._effect, Send | Receive):
            return
        able = [half for half in halves if half.able]
        assert able, "the halves wait for each other"
        source.choices(able, [pace if half is halves[0] else 1 for half in able])[0].go_on(source.random() < lateness)
        steps -= 1


def running(device: Half, cloud: Half) -> list[Running]:
    up: deque[Message] = deque()
    down: deque[Message] = deque()
    return [Running(device, down, up), Running(cloud, up, down)]


def lively() -> Pair:
    """Two models of many tokens which agree in part: lines of verdicts whose tokens are nodes, and falls."""
    pair = Pair(SHARED, SHARED)
    pair.device, pair.cloud = named_toy("toy-device"), named_toy("toy-cloud")
    pair.common = common_vocabulary(pair.device.vocabulary, pair.cloud.vocabulary)
    return pair


PAIRS = {"shared": lambda: Pair(SHARED, SHARED), "different": lambda: Pair(SMALL, LARGE), "alike": alike, "lively": lively}


@examples(120)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 6, 12, 40]),
    st.sampled_from([AUTO, 0.0, 3000.0, LOCKSTEP]),
    st.integers(1, 24),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from(sorted(PAIRS)),
)
def test_any_order_of_events_gives_the_same_answer(
    seed: int, nodes: int, patience: float, tokens: int, lateness: float, which: str
) -> None:
    pair, chance, options = PAIRS[which](), PhiloxChance(seed), CoupledTreeOptions(nodes=nodes, patience=patience)
    device, cloud = pair.sides(tokens, PLAIN, chance)
    halves = running(CoupledTreeDevice(device, options).run(), CoupledTreeCloud(cloud, options).run())
    interleaved(halves, random.Random(seed), lateness)
    assert device.transcript.numbers == cloud.transcript.numbers == reference(pair, PLAIN, chance, tokens)


@examples(60)
@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 12, 40]),
    st.sampled_from([AUTO, 0.0, LOCKSTEP]),
    st.lists(st.integers(1, 120), max_size=4),
    st.sampled_from(["alike", "lively"]),
)
def test_links_that_are_lost_at_any_time(seed: int, nodes: int, patience: float, cuts: list[int], which: str) -> None:
    """Both halves are made anew; the device keeps its tree, and goes on from it."""
    pair, chance, options = PAIRS[which](), PhiloxChance(seed), CoupledTreeOptions(nodes=nodes, patience=patience)
    device, cloud = pair.sides(24, PLAIN, chance)
    for steps in [*cuts, 10**9]:
        if device.transcript.finish is not None:
            break
        halves = running(CoupledTreeDevice(device, options).run(), CoupledTreeCloud(cloud, options).run())
        interleaved(halves, random.Random(seed), 0.5, steps)
        cloud = pair.cloud_side(24, PLAIN, chance, device.transcript.numbers)
    assert device.transcript.numbers == reference(pair, PLAIN, chance, 24)


class Telling(StreamTreeDevice):
    """Writes down for which text each node was made."""

    made: dict[tuple[int, int], list[int]]

    def _send(self, nodes: Sequence[int], now: float) -> Send:
        sent = super()._send(nodes, now)
        tree, base = self._drafts.growth.tree, self._drafts._base
        for node in nodes:
            self.made[self._epoch, self._sent._numbers[node]] = [
                *self.side.transcript.numbers[:base],
                *tree.path_numbers(node),
            ]
        return sent


class Judging(GrowingTreeCloud):
    """Looks up for what each node of a pass was made."""

    made: dict[tuple[int, int], list[int]]
    judged = late = 0

    def _walk(self, tree: TokenTree, targets: Any) -> tuple[int, int | None]:
        committed, alive = self.side.transcript.numbers, list(self._nodes.alive)
        for at in range(len(tree.numbers)):
            assert self.made[self._epoch, alive[at]] == [*committed, *tree.path_numbers(at)]
            self.judged += 1
            self.late += self._begins[self._epoch] < len(committed)
        return super()._walk(tree, targets)


def judge(seed: int, nodes: int, kind: type[Judging] = Judging) -> tuple[int, int]:
    """Nodes that were tested in an answer, and those of them whose epoch had gone on."""
    made: dict[tuple[int, int], list[int]] = {}
    device, cloud = lively().sides(40, PLAIN, PhiloxChance(seed))
    options = CoupledTreeOptions(nodes=nodes, patience=0.0)
    telling, judging = Telling(device, options), kind(cloud, options)
    telling.made = judging.made = made
    interleaved(running(telling.run(), judging.run()), random.Random(seed), 0.3, pace=8)
    return judging.judged, judging.late


@pytest.mark.medium
@pytest.mark.parametrize("nodes", [4, 12, 40])
def test_a_node_is_used_only_where_it_was_made_for(nodes: int) -> None:
    judged, late = map(sum, zip(*(judge(seed, nodes) for seed in range(12)), strict=True))
    assert judged > 100
    assert late > 20  # epochs go on, and nodes that were on their way count


class Forgetful(LiveNodes):
    """Keeps what hangs below another child."""

    def commit(self, number: int) -> None:
        alive, children = dict(self.alive), dict(self._children)
        super().commit(number)
        if not self.alive and alive:
            self.alive = {node: child for node, child in alive.items() if child.parent == self._path[-1]}
            self._children.update(children)


class Careless(Judging):
    def __init__(self, side: CloudSide, options: CoupledTreeOptions) -> None:
        super().__init__(side, options)
        self._nodes = Forgetful(63)


def test_a_cloud_that_does_not_prune_would_be_seen() -> None:
    found = 0
    for seed in range(12):
        try:
            judge(seed, 12, Careless)
        except (AssertionError, KeyError):
            found += 1
    assert found > 3


class Counting(ToyModel):
    """A model that tells of the trees that its contexts hold."""

    most_nodes = most_leaves = 0

    def open(self) -> ToyContext:
        model = self

        class Context(ToyContext):
            def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Any:
                found = super().grow(tokens, parents)
                paths = {tuple(path) for path in self._paths}
                inner = {path[:-1] for path in paths}
                model.most_nodes = max(model.most_nodes, len(paths))
                model.most_leaves = max(model.most_leaves, len(paths - inner))
                return found

        return Context(self, [])


@pytest.mark.parametrize("nodes", [12, 63])
def test_a_pending_tree_has_few_leaves_however_long_the_line_goes_on(nodes: int) -> None:
    """The drafter is the target: no verdict ever ends an epoch, nothing would tidy up the context, nor tell how far it came."""
    pair = alike()
    pair.device = Counting(SHARED, seed=2, sharpness=1.0)
    pair.cloud = ToyModel(SHARED, seed=2, sharpness=1.0)
    for seed in range(6):
        chance, options = PhiloxChance(seed), CoupledTreeOptions(nodes=nodes, patience=0.0)
        device, cloud = pair.sides(150, SamplingParams(temperature=1.0, logit_bias=((2, -50.0),)), chance)
        halves = running(CoupledTreeDevice(device, options).run(), CoupledTreeCloud(cloud, options).run())
        interleaved(halves, random.Random(seed), 0.2, pace=1 + 7 * (seed % 2))
        assert len(device.transcript.numbers) == 150
    assert pair.device.most_leaves <= LEAVES
    assert pair.device.most_nodes < 120


def test_no_node_falls_where_the_drafter_is_the_target() -> None:
    """Also of trees that were there before the tokens in front of them: each child is drawn from the race of its own place."""
    pair, late = lively(), 0
    pair.device = pair.cloud
    pair.common = common_vocabulary(pair.device.vocabulary, pair.cloud.vocabulary)
    for seed in range(4):
        emits: list[Emit] = []
        device, cloud = pair.sides(40, PLAIN, PhiloxChance(seed))
        options = CoupledTreeOptions(nodes=12, patience=0.0)
        half = noting(CoupledTreeDevice(device, options).run(), emits)
        interleaved(running(half, CoupledTreeCloud(cloud, options).run()), random.Random(seed), 0.3, pace=8)
        assert all(len(emit.tested.drafts) == emit.tested.stood for emit in emits)
        late += sum(emit.tested.stood == len(emit.tokens) for emit in emits)
    assert late > 10


def noting(half: Half, emits: list[Emit]) -> Half:
    """A half whose emissions are written down."""
    answer: Any = None
    while True:
        try:
            effect = half.send(answer)
        except StopIteration as stop:
            finish: Finish = stop.value
            return finish
        emits += [effect] if isinstance(effect, Emit) else []
        answer = yield effect
