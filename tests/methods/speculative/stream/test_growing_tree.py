"""`coupled-tree` with trees that grow: the target's distribution, the text of `cloud`, and peers that break the protocol."""

from collections import deque
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.growth import Likeness, Scores
from antiphon.core.stream import LOCKSTEP
from antiphon.core.tree import ROOT
from antiphon.errors import ProtocolError, UsageError
from antiphon.methods.effects import Came, Effect, Emit, Finish, Half, Now, Receive, Send, Step
from antiphon.methods.speculative.coupled_tree import COUPLED_TREE, CoupledTreeCloud, CoupledTreeDevice
from antiphon.methods.speculative.options import MAX_TREE_NODES, CoupledTreeOptions
from antiphon.methods.speculative.stream.tree_cloud import GrowingTreeCloud
from antiphon.methods.verifier import TreeTargets
from antiphon.testing import assert_exact
from antiphon.testing.distributions import (
    LARGE,
    SHARED,
    SMALL,
    Pair,
    distance,
    method_distribution,
    target_distribution,
    written,
)
from antiphon.testing.lockstep import run_pair
from antiphon.vocabulary import bits_for
from antiphon.wire.messages import Draft, Message, Verdict
from antiphon.wire.packing import Writer
from methods.speculative.ahead import PLAIN, alike, reference
from support.examples import examples


@pytest.mark.core(1)
@pytest.mark.parametrize("nodes", [1, 2])
def test_it_is_exact(nodes: int) -> None:
    assert_exact(COUPLED_TREE, CoupledTreeOptions(nodes=nodes, patience=LOCKSTEP), cuts=1)


@pytest.mark.medium
@pytest.mark.parametrize("nodes", [2, 3, 5])
@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)], ids=["shared", "different"])
def test_it_is_exact_over_three_tokens(nodes: int, pieces: tuple) -> None:
    """So that a tree has two levels, and a second one grows behind what was accepted of the first."""
    pair, sampling = Pair(*pieces, seed=5), SamplingParams(temperature=1.0, top_k=2)
    found = method_distribution(pair, COUPLED_TREE, CoupledTreeOptions(nodes=nodes, patience=LOCKSTEP), sampling, 3)
    assert sum(found.values()) == pytest.approx(1, abs=1e-12)
    assert distance(found, target_distribution(pair, sampling, 3)) < 1e-12


def wrong_winner(self: GrowingTreeCloud, targets: TreeTargets, node: int, position: int) -> int:
    """The likeliest token instead of the winner of the race."""
    return targets.at(node).likeliest()


def row_of_the_parent(self: GrowingTreeCloud, targets: TreeTargets, node: int, position: int) -> int:
    """The winner by the scores of the node before."""
    return targets.at(max(ROOT, node - 1)).winner(self.side.chance.race(position, self.side.common.cloud_ids))


@pytest.mark.parametrize("wrong", [wrong_winner, row_of_the_parent])
def test_a_planted_bug_is_seen(wrong: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GrowingTreeCloud, "winner", wrong)
    with pytest.raises(AssertionError, match="coupled-tree is not"):
        assert_exact(
            COUPLED_TREE,
            CoupledTreeOptions(nodes=3, patience=LOCKSTEP),
            cuts=0,
            tokens=3,
            samplings={"narrow": SamplingParams(top_k=2)},
        )


SAMPLINGS = [
    PLAIN,
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.4, repetition_penalty=1.4, presence_penalty=0.3),
    SamplingParams(temperature=2.0, top_p=0.8),
]


@examples(60)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1, 2, 5, 12, 63]),
    st.integers(1, 16),
    st.sampled_from(SAMPLINGS),
    st.sampled_from(["shared", "different", "alike"]),
)
def test_the_tokens_are_those_of_cloud(seed: int, nodes: int, tokens: int, sampling: SamplingParams, which: str) -> None:
    pair = {"shared": Pair(SHARED, SHARED), "different": Pair(SMALL, LARGE), "alike": alike()}[which]
    chance = PhiloxChance(seed)
    emitted = written(pair, COUPLED_TREE, CoupledTreeOptions(nodes=nodes, patience=LOCKSTEP), sampling, tokens, chance)
    assert [token.number for token in emitted] == reference(pair, sampling, chance, tokens)


@examples(20)
@given(st.integers(0, 10_000), st.integers(3, 9), st.integers(1, 12))
def test_a_device_whose_context_fills_up_within_a_tree(seed: int, context_length: int, nodes: int) -> None:
    """It sends the nodes that it has, and then none."""
    pair, chance = Pair(SHARED, SHARED), PhiloxChance(seed)
    pair.device.context_length = context_length
    emitted = written(pair, COUPLED_TREE, CoupledTreeOptions(nodes=nodes, patience=LOCKSTEP), PLAIN, 8, chance)
    assert [token.number for token in emitted] == reference(pair, PLAIN, chance, 8)


def noting(half: Half, effects: list[Effect]) -> Generator[Any, Any, Finish]:
    """A half whose effects are written down."""
    answer: Any = None
    while True:
        try:
            effects.append(half.send(answer))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        answer = yield effects[-1]


def told(pair: Pair, nodes: int, tokens: int, seed: int) -> tuple[list[Draft], list[Emit]]:
    """The drafts and emissions of an answer."""
    effects: list[Effect] = []
    device, cloud = pair.sides(tokens, PLAIN, PhiloxChance(seed))
    options = CoupledTreeOptions(nodes=nodes, patience=LOCKSTEP)
    run_pair(noting(CoupledTreeDevice(device, options).run(), effects), CoupledTreeCloud(cloud, options).run())
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return [one for one in sent if isinstance(one, Draft)], [effect for effect in effects if isinstance(effect, Emit)]


def test_a_drafter_that_is_the_target_writes_as_deep_as_its_tree() -> None:
    """It learns that the models are one, and then a tree is a chain that stands whole."""
    pair = alike()
    pair.device = pair.cloud
    drafts, emits = told(pair, 6, 60, 33)
    tokens = sum(len(emit.tokens) for emit in emits)
    assert tokens > 4 * len(emits) > 0
    assert max(len(emit.tokens) for emit in emits) == 7
    assert all(draft.count <= 6 for draft in drafts)


def test_what_was_tested_is_counted_by_level() -> None:
    _, emits = told(alike(), 5, 40, 3)
    assert len(emits) > 3
    for emit in emits:
        assert emit.tested.stood in (len(emit.tokens), len(emit.tokens) - 1)
        assert all(1 <= count <= 3 for count in emit.tested.drafts)
        assert len(emit.tested.drafts) - emit.tested.stood in (0, 1)


# Wrong peers.


def nodes(*listed: tuple[int, int], epoch: int = 0, count: int | None = None) -> Draft:
    """Nodes as a device packs them, whatever they are: of each its parent and its number; ids of the toys have 2 bits."""
    writer = Writer()
    for known, (parent, number) in enumerate(listed):
        writer.number(parent + 1, bits_for(known + 1))
        writer.number(number, 2)
    return Draft(epoch, len(listed) if count is None else count, writer.finish())


def answered(*drafts: Draft, tokens: int = 8) -> list[Verdict]:
    """What a cloud says to them."""
    cloud = alike().cloud_side(tokens, PLAIN, PhiloxChance(3))
    half: Any = CoupledTreeCloud(cloud, CoupledTreeOptions(nodes=3, patience=LOCKSTEP)).run()
    verdicts: list[Verdict] = []
    inbox = deque(drafts)
    answer: Any = None
    while True:
        effect = half.send(answer)
        answer = effect.run() if isinstance(effect, Step) else 0.0 if isinstance(effect, Now | Came) else None
        verdicts += [effect.message] if isinstance(effect, Send) else []
        if isinstance(effect, Receive):
            if not inbox and effect.within is None:
                return verdicts
            answer = inbox.popleft() if inbox and effect.within is None else None


def test_what_is_no_tree_for_the_cloud_is_dropped_in_silence() -> None:
    """Too many, or deeper than the answer can be: it answers all the same, as it would without."""
    first = reference(alike(), PLAIN, PhiloxChance(3), 1)[0]
    assert first == 0
    deep, late, wrong = nodes(*((place - 1, 0) for place in range(MAX_TREE_NODES))), nodes((ROOT, 0), epoch=1), nodes((ROOT, 1))
    assert [verdict.round for verdict in answered(deep, late)][:2] == [1, 1]  # as it has nodes, it does not wait
    assert answered(wrong) == answered(nodes())
    assert (answered(wrong)[0].accepted, answered(nodes((ROOT, 1), (ROOT, 0)))[0].accepted) == (0, 1)


@pytest.mark.parametrize(
    ("draft", "sentence"),
    [
        (nodes((ROOT, 0), (0, 1), (2, 0)), "the parent of a node is 3, but must be below 3"),
        (nodes((ROOT, 3)), "the id of a node is 3, but must be below 3"),
        (nodes((ROOT, 0), (ROOT, 0)), "a node has the same child twice"),
        (nodes((ROOT, 0), (0, 1), count=5), "the payload is shorter than its message says"),
        (nodes((ROOT, 0), (0, 1), (1, 1), (2, 1), count=1), "the payload is longer than its message says"),
        (nodes(epoch=1), "nodes of epoch 1 came in epoch 0"),
        (Verdict(0, 0, b""), "Verdict came where drafts were due"),
    ],
)
def test_a_tree_that_cannot_be(draft: Message, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        answered(draft)  # type: ignore[arg-type]


def test_nodes_of_an_epoch_that_is_over() -> None:
    with pytest.raises(ProtocolError, match="nodes of epoch 0 came in epoch 1"):
        answered(nodes((ROOT, 0)), nodes((ROOT, 0), epoch=1), nodes((ROOT, 0), epoch=0))


def verdict(accepted: int, *places: int, token: int | None, round: int = 1) -> Verdict:
    writer = Writer()
    for place in places:
        writer.small(place)
    if token is not None:
        writer.number(token, 2)
    return Verdict(round, accepted, writer.finish())


def tell(*verdicts: Message) -> None:
    """Let a device have these, one after the other; its root has the three tokens of the toys as children."""
    device, _ = alike().sides(12, PLAIN, PhiloxChance(3))
    half: Any = CoupledTreeDevice(device, CoupledTreeOptions(nodes=5, patience=LOCKSTEP)).run()
    inbox, answer = deque(verdicts), None
    while True:
        effect = half.send(answer)
        answer = effect.run() if isinstance(effect, Step) else 0.0 if isinstance(effect, Now | Came) else None
        if isinstance(effect, Receive):
            if not inbox:
                return
            answer = inbox.popleft()


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (verdict(0, token=0, round=2), "Verdict of round 2 came in round 1"),
        (verdict(9, 0, 0, 0, 0, 0, 0, 0, 0, 0, token=0), "9 drafts were accepted, but the tree ends before"),
        (verdict(1, 7, token=0), "the place of an accepted child"),
        (verdict(0, token=3), "the token after the accepted ones is 3, but must be below 3"),
        (Verdict(1, 0, b""), "the payload is shorter than its message says"),
        (Verdict(1, 0, bytes(9)), "the payload is longer than its message says"),
        (Draft(0, 0, b""), "Draft came where Verdict was due"),
    ],
)
def test_a_verdict_that_cannot_be(message: Message, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        tell(message)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": -1}, "a tree has 1 to 63 nodes, or 0 .auto., not -1"),
        ({"nodes": 64}, "a tree has 1 to 63 nodes, or 0 .auto., not 64"),
        ({"expansion": "4,2,1", "patience": 5.0}, "4,2,1 is drafted in lockstep: leave patience, objective and lookup out"),
        ({"expansion": "4,2,1", "objective": "data"}, "the shape 4,2,1 is drafted in lockstep"),
        ({"expansion": "4,2,1", "lookup": "on"}, "the shape 4,2,1 is drafted in lockstep"),
        ({"patience": -2.0}, "patience must be 0 to 60000 milliseconds, auto or lockstep"),
        ({"expansion": "64"}, "a tree may have at most 63 nodes, but 64 has 64"),
        ({"expansion": "x"}, "expansion must be numbers from 1 on"),
    ],
)
def test_options_that_cannot_be(given: dict, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        CoupledTreeOptions(**given)


def test_growth_needs_no_likeness_to_be_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is believed of the two models, the text is that of `cloud`; only the tree is another."""
    pair, chance = alike(), PhiloxChance(3)

    def upside_down(self: Likeness, scores: Scores) -> Scores:
        return 0.9 * (scores == scores.min())

    monkeypatch.setattr(Likeness, "chances", upside_down)
    emitted = written(pair, COUPLED_TREE, CoupledTreeOptions(nodes=4, patience=LOCKSTEP), PLAIN, 12, chance)
    assert [token.number for token in emitted] == reference(pair, PLAIN, chance, 12)
