"""The passes of an answer made again: what decided a token is found, and its logits come again."""

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.core.distributions import Logits
from antiphon.core.tree import ROOT, TokenTree
from antiphon.methods.cached_context import CachedContext
from antiphon.methods.effects import Now, Step
from antiphon.methods.replay import Deciding, deciding, replayed
from antiphon.models.toy import ToyReader, toy_pieces
from models.llamacpp.growing import path_to, random_parents

MODEL = ToyReader(toy_pieces())


def made_again(passes: list[Step], found: Deciding) -> Logits:
    """The row, and that others get the model between two passes."""
    run: Generator[Step | Now, Logits | None, Logits] = replayed(passes, found, MODEL.open())
    answer, asked = None, []
    while True:
        try:
            effect = run.send(answer)
        except StopIteration as stop:
            assert [type(one) for one in asked] == [Step, Now] * found.before + [Step]
            row: Logits = stop.value
            return row
        asked.append(effect)
        answer = effect.run() if isinstance(effect, Step) else None


def written(seed: int, *, trees: bool) -> tuple[list[int], list[Step]]:
    """Rounds of drafts or trees behind a prompt, of which a random part stands: all tokens, and the passes."""
    random = np.random.Generator(np.random.PCG64(seed))
    reading, passes = CachedContext(MODEL.open()), []

    def made(step: Step) -> None:
        step.run()
        passes.append(step)

    tokens = [int(token) for token in random.integers(0, 250, 6)]
    made(reading.prefill(tokens[:5]))
    for _ in range(5):
        count = int(random.integers(1, 8))
        drafts = [int(token) for token in random.integers(0, 250, count)]
        if trees:
            parents = random_parents(random, count)
            node = int(random.integers(ROOT, count))
            made(reading.tree(tokens, drafts, parents))
            tokens = [*tokens, *(drafts[step] for step in path_to(parents, node))]
            reading.keep(tokens, node)
        else:
            made(reading.extend([*tokens, *drafts], count + 1))
            reading.altered(len(tokens))
            tokens = [*tokens, *drafts[: int(random.integers(0, count + 1))]]
        tokens = [*tokens, int(random.integers(0, 250))]
    return tokens, passes


@given(seed=st.integers(0, 2**32), trees=st.booleans())
def test_every_token_of_an_answer_was_decided_by_a_pass_that_comes_again(seed: int, trees: bool) -> None:
    tokens, passes = written(seed, trees=trees)
    for length in range(6, len(tokens)):
        found = deciding(passes, tokens[:length])
        assert found is not None
        np.testing.assert_array_equal(made_again(passes, found), MODEL.logits(tokens[:length]))
    assert deciding(passes, tokens[:5]) is None, "the prompt is read without logits"
    assert deciding(passes, tokens) is None, "nothing was scored behind the last token"


@pytest.mark.parametrize("trees", [False, True])
def test_passes_that_read_other_tokens_decided_nothing(trees: bool) -> None:
    """One token less was taken back, or another one read: the tokens behind it were scored after something else."""
    tokens, passes = written(1, trees=trees)
    wrong = [*passes[:2], replace(passes[2], keep=passes[2].keep - 1), *passes[3:]]
    assert deciding(passes, tokens[:-1]) is not None
    assert deciding(wrong, tokens[:-1]) is None


def test_a_tree_that_grows_in_layers() -> None:
    """As a device reads one: the later layers go on with the numbers of the earlier ones."""
    tree = TokenTree([5, 6, 7, 8], [ROOT, ROOT, 0, 2])
    context, reading = MODEL.open(), CachedContext(MODEL.open())
    passes = [
        reading.prefill([1, 2]),
        reading.extend([1, 2, 3], 1),
        reading.grow([5, 6], [-1, -1]),
        reading.grow([7, 8], [0, 2]),
    ]
    for node in range(4):
        found = deciding(passes, [1, 2, 3, *tree.path_numbers(node)])
        assert found == Deciding(2 + node // 2, node % 2)
        np.testing.assert_array_equal(made_again(passes, found), MODEL.logits([1, 2, 3, *tree.path_numbers(node)]))
    context.close()
