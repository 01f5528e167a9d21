"""Coupled drafting: the answer is that of `cloud` with the same seed, whatever the drafter, the drafts and the tree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.stream.cloud import CoupledCloud
from antiphon.methods.speculative.stream.tree_cloud import GrowingTreeCloud
from antiphon.methods.verifier import Targets, TreeTargets
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.testing.lockstep import run_pair
from antiphon.vocabulary import CommonVocabulary
from support.broken_links import Network, broken
from support.links import linked, request

SHAPES = [("coupled", {"draft_length": length}) for length in range(1, 7)]
SHAPES += [("coupled-tree", {"expansion": shape}) for shape in ("2", "2,2", "4,2,1", "1,1,1", "3,1")]
SHAPES += [("coupled-tree", {"nodes": nodes}) for nodes in (1, 2, 7, 12, 40)]
SAMPLINGS = [
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.3),
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=1.0, top_p=0.8, repetition_penalty=1.3, presence_penalty=0.2),
]


@pytest.mark.core(1)
@pytest.mark.parametrize(("method", "given"), SHAPES)
def test_the_text_is_that_of_cloud(method: str, given: dict) -> None:
    async def test(device: Device, connection: Connection) -> None:
        for seed, sampling in enumerate(SAMPLINGS):
            asked = replace(
                request(method, tokens=40, seed=seed), options=WITHOUT_DOCUMENTS[method].options_from(given), sampling=sampling
            )
            alone = replace(asked, method="cloud", options=None)
            ours, theirs = await device.generate(asked, connection), await device.generate(alone, connection)
            assert ours.token_ids == theirs.token_ids
            assert ours.finish_reason == theirs.finish_reason

    linked(test)


@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)])
def test_any_drafter_gives_the_same_answer(pieces: tuple) -> None:
    """Pairs of another seed have another drafter; the cloud's model is the same."""
    answers = set()
    for drafter in range(6):
        pair = Pair(*pieces, seed=0)
        pair.device = Pair(*pieces, seed=17 * drafter).device
        for name, given in SHAPES:
            method, chance = WITHOUT_DOCUMENTS[name], PhiloxChance(5)
            device, cloud = pair.sides(12, SamplingParams(temperature=1.0), chance)
            options = method.options_from(given)
            assert method.cloud is not None
            emitted = run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())
            answers.add(tuple(token.number for token in emitted))
    assert len(answers) == 1


def test_a_seed_is_fresh_unless_given() -> None:
    """So no position's noise is ever used for two answers."""

    async def test(device: Device, connection: Connection) -> None:
        seeds = {(await device.generate(request("coupled", tokens=4, seed=None), connection)).seed for _ in range(20)}
        assert len(seeds) == 20

    linked(test)


@pytest.mark.parametrize("patience", [AUTO, LOCKSTEP])
def test_nothing_but_ids_crosses(patience: float) -> None:
    """In virtual time, as how many frames a round has hangs on how fast its ends are: each frame is filled to whole bytes."""

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result, CommonVocabulary]:
        return await device.generate(request("coupled", tokens=60, patience=patience), connection), connection.common

    result, common = broken(test)
    assert len(result.answer.emissions) > 10
    up = result.answer.exchanged.drafted * common.common_bits
    down = sum(result.answer.kinds[kind] for kind in ("correction", "bonus", "streamed")) * common.target_bits
    assert (result.closed_form.up, result.closed_form.down) == (up, down)
    for sent, traffic in ((up, result.traffic.up), (down, result.traffic.down)):
        assert sent <= traffic.payload_bits <= sent + 7 * traffic.frames


def trusting(self: CoupledCloud, targets: Targets, drafts: Sequence[int]) -> list[int]:
    """All drafts, and one token more unless they end the answer."""
    if drafts and self.side.transcript.is_end(drafts[-1]):
        return [*drafts]
    race = self.side.chance.race(self.side.transcript.position + len(drafts), self.side.common.cloud_ids)
    return [*drafts, race.winner(targets.probs(len(drafts)))]


def first_child(self: GrowingTreeCloud, targets: TreeTargets, node: int, position: int) -> int:
    """What the device holds for likeliest."""
    children = targets._tree.children(node)
    if children:
        return targets._tree.numbers[children[0]]
    return targets.at(node).winner(self.side.chance.race(position, self.side.common.cloud_ids))


@pytest.mark.parametrize(
    ("method", "options", "place", "wrong"),
    [
        ("coupled", None, "coupled.CoupledCloud._winners", trusting),
        (
            "coupled-tree",
            "2,2",
            "coupled_tree.ShapedTreeCloud.choose",
            lambda _, tree, node, *rest: (tree.children(node)[0], None),
        ),
        ("coupled-tree", None, "stream.tree_cloud.GrowingTreeCloud.winner", first_child),
    ],
)
def test_a_planted_bug_is_seen(
    method: str, options: str | None, place: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloud that takes the device's word, as a ratio test with shared noise would more often than it may."""
    monkeypatch.setattr(f"antiphon.methods.speculative.{place}", wrong)

    async def test(device: Device, connection: Connection) -> None:
        # In lockstep, so that drafts are tested however busy the machine is.
        chosen = {"patience": LOCKSTEP} if options is None else {"expansion": options}
        given = WITHOUT_DOCUMENTS[method].options_from(chosen)
        asked = replace(request(method, tokens=40), options=given)
        alone = replace(asked, method="cloud", options=None)
        ours, theirs = await device.generate(asked, connection), await device.generate(alone, connection)
        assert ours.token_ids != theirs.token_ids

    linked(test)
