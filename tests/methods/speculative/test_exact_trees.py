"""The joint probs of `tslt` and `tslt-tree`, for any models, samplings and trees; and bugs that it must see (METHODS 2)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core import acceptance
from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import ROOT, TokenTree
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudSide, Method
from antiphon.methods.drafter import Drafter
from antiphon.methods.speculative.tslt_tree import TSLT_TREE, TsltTreeCloud, TsltTreeDevice
from antiphon.methods.verifier import TreeTargets, Verifier
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, method_distribution, target_distribution
from support.examples import examples

BOTH = pytest.mark.parametrize("replacement", [False, True], ids=["without", "with"])
PLAIN = SamplingParams(temperature=1.0)
PENALTIES = SamplingParams(temperature=1.0, repetition_penalty=1.8, presence_penalty=0.5, frequency_penalty=0.7)
TREE = {"expansion": "2,2", "truncate": "k=2", "draft_precision": 8}


def error(pair: Pair, method: Method = TSLT_TREE, sampling: SamplingParams = PLAIN, tokens: int = 2, **given: object) -> float:
    """The largest difference between a probability of the method's joint distribution and the target's."""
    distribution = method_distribution(pair, method, method.options_from({**TREE, **given}), sampling, tokens)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    return distance(distribution, target_distribution(pair, sampling, tokens))


def any_pair(seed: int, sharpness: float, different: bool) -> Pair:
    return Pair(*((SMALL, LARGE) if different else (SHARED, SHARED)), seed=3 * seed, sharpness=sharpness)


SAMPLINGS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.4, 1.0, 2.0]),
    top_k=st.sampled_from([0, 0, 1, 2]),
    top_p=st.sampled_from([1.0, 1.0, 0.8]),
    min_p=st.sampled_from([0.0, 0.0, 0.2]),
    repetition_penalty=st.sampled_from([1.0, 1.8]),
    presence_penalty=st.sampled_from([0.0, 0.5]),
    frequency_penalty=st.sampled_from([0.0, 0.7]),
    logit_bias=st.sampled_from([(), ((0, 1.5), (2, -0.5))]),
)
SPARSE = {
    "truncate": st.sampled_from(["k=1", "k=2", "p=0.6", "off"]),
    "draft_precision": st.sampled_from([8, 16, 32]),
    "wire": st.sampled_from(["delta", "plain", "tight"]),
}


@examples(15)
@given(
    seed=st.integers(0, 10_000),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    different=st.booleans(),
    sampling=SAMPLINGS,
    expansion=st.sampled_from(["1", "2", "3", "1,1", "2,1", "1,2", "2,2", "1,1,1", "2,1,1"]),
    replacement=st.booleans(),
    sparse=st.fixed_dictionaries(SPARSE),
)
def test_any_tree(
    seed: int, sharpness: float, different: bool, sampling: SamplingParams, expansion: str, replacement: bool, sparse: dict
) -> None:
    """One token more than there are layers, so the first round has all of them; later ones have what is left."""
    if sparse["wire"] == "tight" and sparse["draft_precision"] == 32:
        sparse = {**sparse, "wire": "plain"}
    pair = any_pair(seed, sharpness, different)
    tokens = min(3, expansion.count(",") + 2)
    assert error(pair, sampling=sampling, tokens=tokens, expansion=expansion, replacement=replacement, **sparse) < 1e-12


@examples(20)
@given(
    seed=st.integers(0, 10_000),
    different=st.booleans(),
    sampling=SAMPLINGS,
    draft_length=st.integers(1, 3),
    sparse=st.fixed_dictionaries(SPARSE),
)
def test_any_chain(seed: int, different: bool, sampling: SamplingParams, draft_length: int, sparse: dict) -> None:
    if sparse["wire"] == "tight" and sparse["draft_precision"] == 32:
        sparse = {**sparse, "wire": "plain"}
    pair = any_pair(seed, 1.0, different)
    assert error(pair, WITHOUT_DOCUMENTS["tslt"], sampling, draft_length=draft_length, **sparse) < 1e-12


@pytest.mark.core(1)
@BOTH
@pytest.mark.parametrize("different", [False, True], ids=["shared", "different"])
def test_penalties_see_the_path_to_a_node(different: bool, replacement: bool) -> None:
    """Not its siblings: three tokens, so a node of the second layer has another node's path beside it."""
    pair = any_pair(5, 1.0, different)
    assert error(pair, sampling=PENALTIES, tokens=3, expansion="2,1", replacement=replacement) < 1e-12


@pytest.mark.core(2)
@BOTH
@pytest.mark.parametrize(("expansion", "tokens"), [("1,1,1", 4), ("2,1", 4), ("1,2", 3)])
def test_several_rounds(expansion: str, tokens: int, replacement: bool) -> None:
    """A round after one of every outcome: what a context kept of it must be what was committed.

    Expansion 2,1 with four tokens: rounds of three, of two and of one, in all of their orders.
    """
    assert error(any_pair(2, 1.0, False), tokens=tokens, expansion=expansion, replacement=replacement, truncate="k=2") < 1e-12


@pytest.mark.medium
@examples(6)
@given(seed=st.integers(0, 10_000), context_length=st.integers(3, 7), replacement=st.booleans())
@example(seed=0, context_length=3, replacement=False)
def test_a_device_whose_context_fills_up_within_a_tree(seed: int, context_length: int, replacement: bool) -> None:
    """It sends the layers that it has, and then none: acceptance suffers, not the distribution."""
    pair = any_pair(seed, 1.0, False)
    pair.device.context_length = context_length
    assert error(pair, tokens=3, expansion="2,1", replacement=replacement) < 1e-12


# Bugs that must be seen.


def seen(monkeypatch: pytest.MonkeyPatch, place: str, wrong: object, **given: object) -> None:
    """The distribution is right without this patch, and clearly wrong with it."""
    pair = any_pair(2, 1.0, False)
    assert error(pair, **given) < 1e-12
    monkeypatch.setattr(place, wrong)
    assert error(pair, **given) > 1e-4


def keeps_all(distribution: Probs, number: int) -> Probs:
    """A `without` that removes nothing."""
    return distribution


def test_a_child_that_stays_in_the_distribution_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the cloud alone: the device draws without replacement, the test knows nothing of it."""
    seen(monkeypatch, "antiphon.core.acceptance.without", keeps_all, truncate="off")


def stale(
    stream: Stream, target_probs: Probs, distribution: Probs, drawn: Sequence[int], *, replacement: bool
) -> tuple[int | None, Probs]:
    """Tests every sibling against the first one's residual."""
    rest, left = target_probs, distribution
    after = acceptance.residual(target_probs, distribution)
    for place, number in enumerate(drawn):
        if acceptance.accepts(stream, float(rest[number]), float(left[number])):
            return place, rest
        rest = after
        if not replacement and place + 1 < len(drawn):
            left = acceptance._without(left, number)
    return None, rest


@BOTH
def test_a_residual_that_is_not_renewed_is_seen(replacement: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three siblings the third is tested against what the first left. (Of two, the last residual is missing.)"""
    given = {"expansion": "3", "truncate": "off", "replacement": replacement}
    seen(monkeypatch, "antiphon.methods.speculative.tslt_tree.accept_child", stale, **given)


def unchanged(
    stream: Stream, target_probs: Probs, distribution: Probs, drawn: Sequence[int], *, replacement: bool
) -> tuple[int | None, Probs]:
    """Gives the target where the residual was due."""
    place, _ = acceptance.accept_child(stream, target_probs, distribution, drawn, replacement=replacement)
    return place, target_probs


@BOTH
def test_a_token_from_the_target_instead_of_the_rest_is_seen(replacement: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, "antiphon.methods.speculative.tslt_tree.accept_child", unchanged, replacement=replacement)


class OtherFlag(TsltTreeCloud):
    """Tests as if children had been drawn the other way."""

    def __init__(self, side: CloudSide, options: Any) -> None:
        super().__init__(side, options)
        self._replacement = not self._replacement

    def _siblings(self, reader: Any, width: int) -> list[int]:
        self._replacement, kept = True, self._replacement  # lets repeats pass, or this would be refused
        try:
            return super()._siblings(reader, width)
        finally:
            self._replacement = kept


def test_ends_that_differ_about_replacement_are_seen() -> None:
    """The device draws without, the cloud tests as if with. (The other way round a repeat is a ValueError, or refused.)"""
    wrong = Method("tslt-tree", "", True, TsltTreeDevice, OtherFlag, options=TSLT_TREE.options)
    pair = any_pair(2, 1.0, False)
    assert error(pair, truncate="off") < 1e-12
    assert error(pair, wrong, truncate="off") > 1e-4


class SiblingsDistributions(TsltTreeCloud):
    """Takes a node's distribution from the node before it in its layer."""

    def _tree(self, message: Any) -> TokenTree:
        tree = super()._tree(message)
        nodes = [node for node in tree.draws if node != ROOT]
        distributions = {node: tree.distributions[other] for node, other in zip(nodes, [*nodes[1:], *nodes[:1]], strict=True)}
        for node, distribution in distributions.items():
            if all(distribution[tree.numbers[child]] > 0 for child in tree.draws[node]):
                tree.distributions[node] = distribution
        return tree


@pytest.mark.core(1)
@BOTH
def test_a_distribution_of_a_sibling_is_seen(replacement: bool) -> None:
    wrong = Method("tslt-tree", "", True, TsltTreeDevice, SiblingsDistributions, options=TSLT_TREE.options)
    pair = any_pair(2, 1.0, False)
    assert error(pair, tokens=3, truncate="off", expansion="2,1", replacement=replacement) < 1e-12
    assert error(pair, wrong, tokens=3, truncate="off", expansion="2,1", replacement=replacement) > 1e-4


def keeping(place: Callable[[TokenTree, int], int]) -> Callable[[Verifier, TokenTree, int], None]:
    """A `Verifier.keep` that keeps another node, and takes it for the right one."""

    def keep(verifier: Verifier, tree: TokenTree, node: int) -> None:
        path = verifier._common.cloud_ids[tree.path_numbers(node)].tolist()
        verifier._reading.keep([*verifier._tokens, *path], place(tree, node))

    return keep


def sibling(tree: TokenTree, node: int) -> int:
    """Another child of the same parent."""
    others = [other for other, parent in enumerate(tree.parents) if node != ROOT and parent == tree.parents[node]]
    return others[(others.index(node) + 1) % len(others)] if others else node


def test_a_context_that_keeps_a_sibling_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It then holds another token than was committed, as deep in the text, and nothing fails: only the probs is wrong."""
    seen(monkeypatch, "antiphon.methods.verifier.Verifier.keep", keeping(sibling), tokens=3, expansion="2", truncate="off")


def test_a_drafter_that_keeps_a_sibling_costs_acceptance_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent is what was sampled, whatever the drafter believes to have read."""

    def keep(drafter: Drafter, tree: TokenTree, node: int) -> None:
        if not tree.draws:
            return
        while node not in drafter._places:
            node = tree.parents[node]
        path = drafter._device_ids[tree.path_numbers(node)].tolist()
        other = sibling(tree, node)
        drafter._reading.keep([*drafter._tokens, *path], drafter._places.get(other, drafter._places[node]))

    monkeypatch.setattr("antiphon.methods.drafter.Drafter.keep", keep)
    assert error(any_pair(2, 1.0, False), tokens=4, expansion="2,1") < 1e-12


class TargetsOfTheParent(TreeTargets):
    """The rows of a pass, off by one: node i has the logits of the one before it."""

    def probs(self, node: int) -> Probs:
        rows = self._logits
        self._logits = np.concatenate([rows[:1], rows[:-1]])
        try:
            return super().probs(node)
        finally:
            self._logits = rows


def test_rows_that_are_off_by_one_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, "antiphon.methods.verifier.TreeTargets", TargetsOfTheParent, truncate="off")


def test_a_history_without_the_path_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Penalties that see the committed tokens only."""

    class Blind(TreeTargets):
        def probs(self, node: int) -> Probs:
            rows, self._logits = self._logits, self._logits[node + 1 :]
            try:
                return super().probs(ROOT)
            finally:
                self._logits = rows

    seen(monkeypatch, "antiphon.methods.verifier.TreeTargets", Blind, sampling=PENALTIES)
