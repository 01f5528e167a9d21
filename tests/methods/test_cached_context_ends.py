"""What the two ends read through it: the verifier and the drafter see what was committed, in as few passes as it takes."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits, Probs, process
from antiphon.core.rounding import exactly
from antiphon.core.tree import ROOT, TokenTree, draw_children
from antiphon.methods.drafter import Drafted, Drafter
from antiphon.methods.effects import Step
from antiphon.methods.verifier import Verifier
from antiphon.models.base import spell
from antiphon.models.toy import ToyModel
from antiphon.vocabulary import CommonVocabulary, common_vocabulary
from methods.remembering import CLOUD, SAMPLING, SEEDS, Counting, Remembering, needed, wanted
from support.examples import examples

DEVICE = [b"b", b"", b"a", b"c"]


def finished(half: Generator[Step, Logits, Any]) -> Any:
    """Run passes until the end; its result."""
    try:
        step = next(half)
        while True:
            step = half.send(step.run())
    except StopIteration as stop:
        return stop.value


def common() -> CommonVocabulary:
    return common_vocabulary(ToyModel(DEVICE).vocabulary, ToyModel(CLOUD).vocabulary)


def random_tree(random: np.random.Generator, size: int) -> TokenTree:
    """Up to three layers of up to three children, repeats among them; some nodes have none."""
    tree, layer = TokenTree(), [ROOT]
    for _ in range(random.integers(0, 4)):
        expanded = [node for node in layer if node == ROOT or random.random() < 0.7]
        layer = [
            new for node in expanded for new in tree.expand(node, random.integers(0, size, random.integers(1, 4)).tolist())
        ]
    return tree


@examples(60)
@given(SEEDS)
def test_the_verifier_sees_what_was_committed(seed: int) -> None:
    random, numbers = np.random.default_rng(seed), common()
    model = Remembering(CLOUD, seed=5)
    context, tokens = Counting(model.open()), [1, 4]
    verifier = Verifier(context, tokens, numbers, SAMPLING)
    finished(verifier.prefill())
    kept, tree = tokens[:-1], TokenTree()
    for _ in range(8):
        case, path = int(random.integers(3)), []
        if case == 0:
            drafts = random.integers(0, numbers.size, random.integers(0, 4)).tolist()
            ids = numbers.cloud_ids[drafts].tolist()
            targets = finished(verifier.score(drafts, exactly))
            assert context.passes[-1] == needed(kept, [*tokens, *ids], len(drafts) + 1)
            for index in range(len(drafts) + 1):
                np.testing.assert_array_equal(targets.probs(index), wanted(model, [*tokens, *ids[:index]], numbers))
            kept, path = [*tokens, *ids], drafts[: random.integers(0, len(drafts) + 1)]
        elif case == 1:
            tree = random_tree(random, numbers.size)
            targets = finished(verifier.score_tree(tree, exactly))
            assert context.passes[-1] == needed(kept, tokens, 1) + len(tree.numbers)
            for node in range(ROOT, len(tree.numbers)):
                ids = numbers.cloud_ids[tree.path_numbers(node)].tolist()
                np.testing.assert_array_equal(targets.probs(node), wanted(model, [*tokens, *ids], numbers))
            node = int(random.integers(ROOT, len(tree.numbers)))
            verifier.keep(tree, node)
            path = tree.path_numbers(node)
            kept = [*tokens, *numbers.cloud_ids[path].tolist()]
        else:
            count = int(random.integers(0, len(tokens)))
            back = verifier.take_back(count)
            assert numbers.cloud_ids[back].tolist() == tokens[len(tokens) - count :]
            tokens = tokens[: len(tokens) - count]
        committed = [*path, int(random.integers(0, numbers.target_size))]
        verifier.commit(committed)
        tokens = [*tokens, *numbers.cloud_ids[committed].tolist()]
        assert verifier.tokens == tokens


def test_a_tree_costs_one_pass_of_what_is_new() -> None:
    """In numbers: a prompt of 5, two layers of 2 and 4, a path of 2 kept, a correction."""
    numbers, model = common(), Remembering(CLOUD, seed=5)
    context = Counting(model.open())
    verifier = Verifier(context, [1, 4, 3, 1, 4], numbers, SAMPLING)
    finished(verifier.prefill())
    tree = TokenTree()
    for node in tree.expand(ROOT, [0, 1]):
        tree.expand(node, [0, 1])
    finished(verifier.score_tree(tree, exactly))
    verifier.keep(tree, 3)
    verifier.commit([*tree.path_numbers(3), 2])
    finished(verifier.score_tree(tree, exactly))
    verifier.keep(tree, ROOT)
    verifier.commit([2])
    finished(verifier.score_tree(TokenTree(), exactly))
    assert context.passes == [4, 1 + 6, 1 + 6, 1]


def draw(stream: Any, distribution: Probs, width: int) -> list[int]:
    return draw_children(stream, distribution, width, replacement=True)


def first_pass(tree: TokenTree, widths: Sequence[int]) -> list[int]:
    """What every layer's pass reads, but the first: the nodes that have children."""
    depths = [tree.depth(node) for node in tree.draws if node != ROOT]
    return [depths.count(depth) for depth in range(1, len(widths)) if depths.count(depth)]


def chain(drafter: Drafter, most: int, position: int, chance: PhiloxChance, numbers: CommonVocabulary) -> list[Drafted]:
    """Up to `most` drafts, none after an end."""
    drafts: list[Drafted] = []
    while len(drafts) < most and not (drafts and drafts[-1].number in numbers.ends):
        drafts.append(finished(drafter.draft(drafts, position, chance, exactly)))
    return drafts


@examples(60)
@given(SEEDS)
def test_the_drafter_sees_what_was_committed(seed: int) -> None:
    """Committed tokens of the cloud alone are spelled in several of the device's."""
    random, numbers = np.random.default_rng(seed), common()
    model, chance = Remembering(DEVICE, seed=7), PhiloxChance(seed)
    device_ids = numbers.device_ids
    assert device_ids is not None
    context, tokens, history, position = Counting(model.open()), [2, 0], [2, 0], 0
    drafter = Drafter(model, context, tokens, numbers, SAMPLING)
    history = [device_ids.tolist().index(token) for token in tokens]
    kept: list[int] = []

    def distribution(path: Sequence[int]) -> Probs:
        logits = model.logits([*tokens, *device_ids[list(path)].tolist()])[device_ids]
        return process(logits, SAMPLING, [*history, *path])

    for _ in range(8):
        before = len(context.passes)
        if random.random() < 0.3:
            drafts = chain(drafter, int(random.integers(1, 4)), position, chance, numbers)
            path = [draft.number for draft in drafts]
            for index, draft in enumerate(drafts):
                np.testing.assert_array_equal(draft.probs, distribution(path[:index]))
            assert context.passes[before:] == [needed(kept, tokens, 1)] + [1] * (len(drafts) - 1)
            kept = [*tokens, *device_ids[path[:-1]].tolist()]
            path = path[: random.integers(0, len(path) + 1)]
        else:
            widths = random.integers(1, 4, random.integers(1, 4)).tolist()
            tree = finished(drafter.draft_tree(widths, position, chance, exactly, numbers.ends.__contains__, draw))
            for node in tree.draws:
                np.testing.assert_array_equal(tree.distributions[node], distribution(tree.path_numbers(node)))
            assert context.passes[before:] == [needed(kept, tokens, 1), *first_pass(tree, widths)]
            node = int(random.integers(ROOT, len(tree.numbers)))
            drafter.keep(tree, node)
            path = tree.path_numbers(node)
            read = [step for step in tree.path(node) if step in tree.draws]  # leaves are not
            kept = [*tokens, *device_ids[[tree.numbers[step] for step in read]].tolist()]
        committed = [*path, int(random.integers(0, numbers.target_size))]
        drafter.commit(committed)
        for number in committed:
            tokens = tokens + ([int(device_ids[number])] if number < numbers.size else spell(model, numbers.pieces[number]))
        history = history + [number for number in committed if number < numbers.size]
        position += len(committed)


def test_a_round_without_a_draft_leaves_the_context_as_it_was() -> None:
    """No layers are a legal choice (METHODS 5: N = 0), also in the midst of an answer: nothing was read, so nothing is kept."""
    numbers, model, chance = common(), Remembering(DEVICE, seed=7), PhiloxChance(1)
    assert numbers.device_ids is not None
    drafter, tokens = Drafter(model, model.open(), [2, 0], numbers, SamplingParams(temperature=1.0)), [2, 0]
    for widths in ([1], [], [1], [], [], [2, 1]):
        tree = finished(drafter.draft_tree(widths, 0, chance, exactly, numbers.ends.__contains__, draw))
        if widths:
            logits = model.logits(tokens)[numbers.device_ids]
            np.testing.assert_array_equal(tree.distributions[ROOT], process(logits, SamplingParams(temperature=1.0)))
        drafter.keep(tree, ROOT)
        drafter.commit([1])
        tokens = [*tokens, int(numbers.device_ids[1])]


@pytest.mark.parametrize("outside", [b"ab", b"cab"])
def test_there_are_tokens_that_the_device_spells(outside: bytes) -> None:
    numbers = common()
    assert outside in numbers.pieces[numbers.size :]
    assert len(spell(ToyModel(DEVICE), outside)) == len(outside)
