"""After settling one path, a rewind or a fork, a context is as if it had read that path alone."""

import pytest

from antiphon.models.base import Context, Model
from models.llamacpp.growing import path_to
from models.llamacpp.trees.shapes import BINARY, IDS, SHAPES, same


@pytest.mark.parametrize("shape", SHAPES)
def test_settling_keeps_exactly_one_path(model: Model, context: Context, shape: str) -> None:
    parents = SHAPES[shape]
    tokens = IDS[5 : 5 + len(parents)]
    plain = model.open()
    for node in range(-1, len(parents)):
        context.extend(IDS[:20])
        context.grow(tokens, parents)
        context.settle(node)
        kept = [tokens[step] for step in path_to(parents, node)]
        assert context.length == 20 + len(kept)
        plain.extend(IDS[:20] + kept)
        same(context.extend(IDS[20:24], 4), plain.extend(IDS[20:24], 4))
        for opened in (context, plain):
            opened.rewind(19)
        same(context.extend(IDS[20:24], 4), plain.extend(IDS[20:24], 4))
        for opened in (context, plain):
            opened.rewind(0)
    plain.close()


def test_a_rewind_into_a_settled_path_keeps_its_first_part(context: Context) -> None:
    context.extend(IDS[:10])
    context.grow(IDS[10:16], [-1, 0, 1, 1, 2, 4])
    context.settle(5)
    context.rewind(12)
    found = context.extend(IDS[30:32], 2)
    context.rewind(10)
    context.extend(IDS[10:12])
    same(context.extend(IDS[30:32], 2), found)


def test_settling_without_a_tree_does_nothing(context: Context) -> None:
    context.settle()
    context.extend(IDS[:4])
    wanted = context.extend([5])
    context.rewind(4)
    context.settle(-1)
    assert context.length == 4
    same(context.extend([5]), wanted)


def test_numbers_start_again_after_settling(context: Context) -> None:
    context.grow(IDS[:3], [-1, 0, 1])
    context.settle(0)
    with pytest.raises(ValueError, match="node 0 cannot follow node 2"):
        context.grow(IDS[:1], [2])
    context.grow(IDS[:2], [-1, 0])
    context.settle(1)
    assert context.length == 3


def test_a_rewind_drops_the_tree_first(context: Context) -> None:
    context.extend(IDS[:10])
    wanted = context.extend(IDS[20:23], 3)
    for length in (10, 4):
        context.rewind(10)
        context.grow(IDS[:15], BINARY)
        context.rewind(length)
        context.extend(IDS[length:10], 0)
        same(context.extend(IDS[20:23], 3), wanted)


def test_a_fork_after_settling_shares_the_path(context: Context) -> None:
    context.extend(IDS[:10])
    context.grow(IDS[10:14], [-1, 0, 1, 1])
    context.settle(3)
    fork = context.fork()
    wanted = context.grow(IDS[20:24], BINARY[:4])
    same(fork.grow(IDS[20:24], BINARY[:4]), wanted)
    context.settle(3)
    fork.rewind(12)
    context.rewind(12)
    same(fork.extend([5]), context.extend([5]))
    fork.close()
