"""Token trees on the toys and on a tiny llama.cpp model: the same as reading every path alone, whatever came before."""

import numpy as np
import pytest

from antiphon.models.base import Context, Model
from antiphon.models.llamacpp.sequences import ROWS
from antiphon.models.toy import ToyModel
from models.llamacpp.growing import Walk, path_to, random_parents, read_paths
from models.llamacpp.trees.shapes import BINARY, IDS, ROUNDING, SHAPES, read_after, same
from support.examples import seeds


@pytest.mark.core(16)
@pytest.mark.parametrize("prefix", [0, 1, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_tree_equals_reading_every_path(context: Context, model: Model, shape: str, prefix: int) -> None:
    parents = SHAPES[shape]
    tokens = IDS[: len(parents)]
    context.extend(IDS[:prefix], 0)
    wanted = read_paths(context, tokens, parents)
    found = context.grow(tokens, parents)
    assert found.shape == (len(tokens), len(model.vocabulary))
    assert found.dtype == np.float32
    assert context.length == prefix
    same(found, wanted, 0 if isinstance(model, ToyModel) else ROUNDING)


def test_a_chain_equals_a_plain_pass_to_the_last_bit(context: Context) -> None:
    context.extend(IDS[:20])
    wanted = context.extend(IDS[20:40], 20)
    context.rewind(20)
    np.testing.assert_array_equal(context.grow(IDS[20:40], range(-1, 19)), wanted)


@pytest.mark.core(15)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_growing_in_several_calls_equals_one_call(context: Context, shape: str, cut: int) -> None:
    parents = SHAPES[shape]
    tokens = IDS[: len(parents)]
    context.extend(IDS[:20])
    wanted = context.grow(tokens, parents)
    context.settle()
    starts = range(0, len(tokens), cut)
    parts = [context.grow(tokens[start : start + cut], parents[start : start + cut]) for start in starts]
    same(np.concatenate(parts), wanted)


def test_a_later_call_may_branch_off_anywhere(context: Context) -> None:
    """A second child of an inner node, one of a leaf that goes on already, and another beside the root."""
    context.extend(IDS[:12])
    parents = [-1, 0, 1, 2, 1, 3, 3, 0, -1, 4, 8]
    wanted = read_paths(context, IDS[: len(parents)], parents)
    parts = [context.grow(IDS[start:end], parents[start:end]) for start, end in ((0, 4), (4, 8), (8, 11))]
    same(np.concatenate(parts), wanted)


def test_equal_siblings_are_two_nodes(context: Context) -> None:
    context.extend(IDS[:5])
    found = context.grow([9, 9, 8, 7], [-1, -1, 0, 1])
    same(found[0], found[1])
    context.settle(3)
    assert context.length == 7
    wanted = read_paths(context, [5], [-1])
    context.rewind(5)
    context.extend([9, 7])
    same(context.extend([5]), wanted)


def test_ids_and_parents_may_stand_in_any_sequence(context: Context) -> None:
    context.extend(IDS[:5])
    wanted = context.grow(IDS[:4], BINARY[:4])
    for kind in (tuple, np.asarray):
        context.settle()
        same(context.grow(kind(IDS[:4]), kind(BINARY[:4])), wanted)
    same(context.grow(np.asarray(IDS[:1]), np.asarray([np.int32(3)])), context.grow(IDS[:1], [3]))


def test_the_logits_are_the_callers_own(context: Context) -> None:
    found = context.grow(IDS[:4], BINARY[:4])
    kept = found.copy()
    context.grow(IDS[4:8], BINARY[4:8])
    np.testing.assert_array_equal(found, kept)
    found[:] = np.nan
    context.settle()
    same(context.grow(IDS[:4], BINARY[:4]), kept)


@pytest.mark.core(3)
@pytest.mark.parametrize("count", [ROWS, ROWS + 1, 2 * ROWS + 30])
def test_a_tree_wider_than_one_pass(context: Context, count: int) -> None:
    """A pass of 64 tokens is read in half precision, in places."""
    random = np.random.Generator(np.random.PCG64(count))
    parents = random_parents(random, count)
    tokens = (IDS * 5)[:count]
    context.extend(IDS[:10])
    wanted = read_paths(context, tokens, parents)
    same(context.grow(tokens, parents), wanted, 0.05)
    context.settle(count - 1)
    found = context.extend(IDS[:2], 2)
    context.rewind(10)
    context.extend([tokens[step] for step in path_to(parents, count - 1)])
    same(context.extend(IDS[:2], 2), found, 0.05)


@pytest.mark.core(2)
@pytest.mark.parametrize("seed", seeds(12))
def test_any_history_equals_plain_reading(model: Model, seed: int) -> None:
    """Two contexts take turns with trees, and each is compared with one that reads its tokens alone."""
    random = np.random.Generator(np.random.PCG64(seed))
    rounding = 0 if isinstance(model, ToyModel) else ROUNDING
    walks = [Walk(model, random, 9, rounding) for _ in range(2)]
    for _ in range(15):
        for walk in walks:
            walk.step()
    for walk in walks:
        walk.close()


def test_trees_pending_side_by_side_do_not_meet(model: Model) -> None:
    one, other = model.open(), model.open()
    one.extend(IDS[:10])
    other.extend(IDS[3:8])
    wanted = [read_paths(context, IDS[:15], BINARY) for context in (one, other)]
    parts: list[list[np.ndarray]] = [[], []]
    for start in range(0, 15, 3):
        for context, rows in zip((one, other), parts, strict=True):
            rows.append(context.grow(IDS[start : start + 3], BINARY[start : start + 3]))
    for rows, expected in zip(parts, wanted, strict=True):
        same(np.concatenate(rows), expected)
    one.settle(14)
    same(other.grow([5], [13]), read_after(model, [*IDS[3:8], *(IDS[step] for step in path_to(BINARY, 13)), 5]))
    one.close()
    other.settle(14)
    same(other.extend([5]), read_after(model, [*IDS[3:8], *(IDS[step] for step in path_to(BINARY, 14)), 5]))
    other.close()
