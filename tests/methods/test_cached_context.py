"""What is read: after any rounds the logits are those of the tokens that stand, and nothing is read twice without need."""

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits, Probs, process
from antiphon.core.rounding import exactly
from antiphon.core.tree import ROOT, TokenTree, draw_children
from antiphon.methods.cached_context import CachedContext
from antiphon.methods.drafter import Drafted, Drafter
from antiphon.methods.effects import Step
from antiphon.methods.verifier import Verifier
from antiphon.models.base import Context, Stop, spell
from antiphon.models.toy import ToyModel
from antiphon.vocabulary import CommonVocabulary, common_vocabulary
from support.examples import examples

DEVICE = [b"b", b"", b"a", b"c"]
CLOUD = [b"ab", b"a", b"", b"c", b"b", b"cab"]
SAMPLING = SamplingParams(temperature=1.0, repetition_penalty=1.3)
SEEDS = st.integers(0, 100_000)


class Remembering(ToyModel):
    """A toy whose scores hang on every token before: one wrong token anywhere in a context is seen for ever."""

    def logits(self, tokens: Sequence[int]) -> Logits:
        digest = hashlib.sha256(bytes([self._seed % 256, *tokens])).digest()
        random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return random.standard_normal(len(self.vocabulary)).astype(np.float32)


@dataclass
class Counting:
    """A context that writes down what it holds, and how many tokens each pass reads."""

    inner: Context
    held: list[int] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    nodes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.inner.length

    def extend(self, tokens: Sequence[int], rows: int = 1) -> Logits:
        logits = self.inner.extend(tokens, rows)
        self.held += tokens
        self.passes.append(len(tokens))
        return logits

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        logits = self.inner.grow(tokens, parents)
        self.nodes += zip(tokens, parents, strict=True)
        self.passes.append(len(tokens))
        return logits

    def settle(self, node: int = -1) -> None:
        self.inner.settle(node)
        self.held += self.path(node)
        self.nodes = []

    def rewind(self, length: int) -> None:
        self.inner.rewind(length)
        self.nodes = []
        del self.held[length:]

    def path(self, node: int) -> list[int]:
        """The tokens on the path to a node of the pending tree."""
        found: list[int] = []
        while node >= 0:
            token, node = self.nodes[node]
            found.append(token)
        return found[::-1]

    def fork(self) -> Context:
        raise NotImplementedError

    def close(self) -> None:
        self.inner.close()


def shared(first: Sequence[int], second: Sequence[int]) -> int:
    """How many leading tokens are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def needed(held: Sequence[int], wanted: Sequence[int], rows: int) -> int:
    """Tokens that a pass must read for the logits after the last `rows` of `wanted`."""
    return len(wanted) - min(shared(held, wanted), len(wanted) - rows)


def finished(half: Generator[Step, Logits, Any]) -> Any:
    """Run passes until the end; its result."""
    try:
        step = next(half)
        while True:
            step = half.send(step.run())
    except StopIteration as stop:
        return stop.value


# Reading alone.


@dataclass
class Rounds:
    """Rounds on one context, whose tokens are known from outside."""

    random: np.random.Generator
    tokens: list[int]

    def __post_init__(self) -> None:
        self.model = Remembering(CLOUD, seed=3)
        self.context = Counting(self.model.open())
        self.reading = CachedContext(self.context)
        self.kept: list[int] = []
        """What the context holds as soon as the next pass begins."""

    def ids(self, count: int) -> list[int]:
        return self.random.integers(0, len(CLOUD), count).tolist()

    def extend(self, tokens: list[int], rows: int) -> None:
        must = needed(self.kept, tokens, rows)
        logits = self.reading.extend(list(tokens), rows).run()
        assert logits.shape[0] == rows
        for row, end in zip(logits, range(len(tokens) - rows + 1, len(tokens) + 1), strict=True):
            np.testing.assert_array_equal(row, self.model.logits(tokens[:end]))
        assert self.context.passes[-1] == must
        self.kept = list(tokens)

    def parents(self, count: int, first: int = 0) -> list[int]:
        return [int(self.random.integers(-1, node)) if node else ROOT for node in range(first, first + count)]

    def assert_tree(self, rows: Logits, nodes: list[int], parents: list[int], first: int = 0) -> None:
        for node, row in enumerate(rows, first):
            np.testing.assert_array_equal(row, self.model.logits([*self.tokens, *walked(nodes, parents, node)]))

    def tree(self) -> tuple[list[int], list[int]]:
        """One pass for the tokens and the tree behind them: what the cloud does."""
        nodes = self.ids(int(self.random.integers(0, 7)))
        parents = self.parents(len(nodes))
        must = needed(self.kept, self.tokens, 1)
        rows = self.reading.tree(list(self.tokens), nodes, parents).run()[-len(nodes) - 1 :]
        np.testing.assert_array_equal(rows[0], self.model.logits(self.tokens))
        self.assert_tree(rows[1:], nodes, parents)
        assert self.context.passes[-1] == must + len(nodes)
        self.kept = self.tokens[: len(self.tokens) - must]
        return nodes, parents

    def layers(self) -> tuple[list[int], list[int]]:
        """A pass for the tokens, and one for every layer: what the device does."""
        self.extend(self.tokens, 1)
        nodes: list[int] = []
        parents: list[int] = []
        for _ in range(self.random.integers(1, 4)):
            first, more = len(nodes), self.ids(int(self.random.integers(1, 4)))
            above = self.parents(len(more), first)
            nodes, parents = nodes + more, parents + above
            self.assert_tree(self.reading.grow(more, above).run(), nodes, parents, first)
            assert self.context.passes[-1] == len(more)
        return nodes, parents

    def keep(self, nodes: list[int], parents: list[int]) -> None:
        """Some node, ROOT, or nothing at all: a round that failed is not reported."""
        node = int(self.random.integers(-2, len(nodes)))
        if node >= ROOT:
            self.kept = [*self.tokens, *walked(nodes, parents, node)]
            self.reading.keep(list(self.kept), node)
        path = walked(nodes, parents, node) if self.random.random() < 0.8 else self.ids(2)
        self.commit([*path, *self.ids(1)])

    def commit(self, tokens: list[int]) -> None:
        self.reading.altered(len(self.tokens))
        self.tokens = self.tokens + tokens

    def chain(self) -> None:
        drafts = self.ids(int(self.random.integers(0, 4)))
        self.extend(self.tokens + drafts, int(self.random.integers(1, len(drafts) + 2)))
        accepted = int(self.random.integers(0, len(drafts) + 1))
        self.commit([*drafts[:accepted], *self.ids(int(self.random.integers(1, 3)))])

    def give_up(self) -> None:
        """A pass that is given up before it began, in the midst, or when it was over already."""
        tokens = self.tokens + self.ids(int(self.random.integers(1, 4)))
        held = len(tokens) - needed(self.kept, tokens, 1)
        step = self.reading.extend(list(tokens), 1)
        match int(self.random.integers(3)):
            case 0:
                stop = Stop()
                stop.set()
                assert step.run_unless(stop) is None
            case 1:
                self.context.settle(step.node)
                self.context.rewind(step.keep)
            case 2:
                step.run()
        self.reading.given_up()
        self.kept = tokens[:held]
        self.take_back()

    def take_back(self) -> None:
        """What a lossy method does when the device disagrees."""
        self.tokens = self.tokens[: int(self.random.integers(1, len(self.tokens) + 1))]
        self.reading.altered(len(self.tokens))

    def one(self) -> None:
        match int(self.random.integers(5)):
            case 0:
                self.chain()
            case 1:
                self.keep(*self.tree())
            case 2:
                self.keep(*self.layers())
            case 3:
                self.take_back()
            case 4:
                self.give_up()


def walked(nodes: list[int], parents: list[int], node: int) -> list[int]:
    """The tokens on the path to a node."""
    found: list[int] = []
    while node >= 0:
        found.append(nodes[node])
        node = parents[node]
    return found[::-1]


@examples(100)
@given(SEEDS, st.integers(1, 12), st.booleans())
def test_any_rounds_read_what_is_new_and_nothing_else(seed: int, count: int, prefilled: bool) -> None:
    random = np.random.default_rng(seed)
    rounds = Rounds(random, random.integers(0, len(CLOUD), int(random.integers(1, 6))).tolist())
    if prefilled:
        rounds.kept = rounds.tokens[:-1]
        rounds.reading.prefill(list(rounds.kept)).run()
    for _ in range(count):
        rounds.one()
    rounds.extend(rounds.tokens, 1)
    assert rounds.context.held == rounds.tokens


def test_keeping_nothing_of_a_plain_pass_that_came_after_a_tree() -> None:
    """There is no tree, so ROOT is the context's last token, whatever stood before the nodes of an earlier tree."""
    model = Remembering(CLOUD, seed=3)
    reading = CachedContext(model.open())
    reading.tree([0, 1], [2], [ROOT]).run()
    reading.keep([0, 1, 2], 0)
    reading.extend([0, 1, 2, 3], 1).run()
    reading.keep([0, 1, 2, 3], ROOT)
    logits = reading.extend([0, 1, 2, 3, 4], 1).run()
    np.testing.assert_array_equal(logits[0], model.logits([0, 1, 2, 3, 4]))


# The cloud's model.


def common() -> CommonVocabulary:
    return common_vocabulary(ToyModel(DEVICE).vocabulary, ToyModel(CLOUD).vocabulary)


def wanted(model: ToyModel, tokens: Sequence[int], shared_ones: CommonVocabulary) -> Probs:
    """The target distribution after these tokens, by definition."""
    return process(model.logits(tokens), SAMPLING, tokens)[shared_ones.cloud_ids]


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


# The device's model.


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
