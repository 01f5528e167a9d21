"""Trees that cannot be read or settled are refused, with nothing read."""

import pytest

from antiphon.errors import ModelError
from antiphon.models.base import Context
from models.llamacpp.trees.shapes import CELLS, IDS, same
from support.tinymodel import load_tiny


@pytest.mark.parametrize(
    ("tokens", "parents", "sentence"),
    [
        ([], [], "at least one token"),
        ([1], [], "1 tokens need as many parents, not 0"),
        ([1], [-1, 0], "1 tokens need as many parents, not 2"),
        ([1], [2], "node 2 cannot follow node 2"),
        ([1], [-2], "node 2 cannot follow node -2"),
        ([1, 1], [3, -1], "node 2 cannot follow node 3"),
    ],
)
def test_parents_that_do_not_fit_are_refused(context: Context, tokens: list[int], parents: list[int], sentence: str) -> None:
    wanted = context.grow(IDS[:3], [-1, 0, 1])
    context.settle()
    context.grow(IDS[:2], [-1, 0])
    with pytest.raises(ValueError, match=sentence):
        context.grow(tokens, parents)
    same(context.grow(IDS[2:3], [1]), wanted[2:])


@pytest.mark.parametrize("bad", [[-1], [2**70], [3, -1]])
def test_an_id_that_is_no_token_is_refused_with_nothing_read(context: Context, bad: list[int]) -> None:
    wanted = context.grow(IDS[:2], [-1, 0])
    context.settle()
    context.grow(IDS[:1], [-1])
    with pytest.raises(ModelError, match="no token"):
        context.grow(bad, [0] * len(bad))
    same(context.grow(IDS[1:2], [0]), wanted[1:])


def test_a_pending_tree_refuses_what_it_would_be_in_the_way_of(context: Context) -> None:
    context.extend(IDS[:5])
    context.grow(IDS[:3], [-1, 0, 0])
    for use, verb in (
        (lambda: context.extend([5]), "extend"),
        (lambda: context.extend([], 0), "extend"),
        (context.fork, "fork"),
    ):
        with pytest.raises(ValueError, match=f"cannot {verb} while a tree of 3 nodes is pending: call settle first"):
            use()
    with pytest.raises(ValueError, match="cannot rewind"):
        context.rewind(6)
    context.settle(1)
    assert context.length == 7


@pytest.mark.parametrize("node", [-2, 2, 100])
def test_a_node_that_is_not_there_cannot_be_kept(context: Context, node: int) -> None:
    context.grow(IDS[:2], [-1, 0])
    with pytest.raises(ValueError, match=f"no node {node} in a tree of 2"):
        context.settle(node)
    context.settle(1)
    with pytest.raises(ValueError, match="no node 0 in a tree of 0"):
        context.settle(0)
    assert context.length == 2


def test_a_closed_context_and_a_closed_model_refuse_trees(tmp_path_factory: pytest.TempPathFactory) -> None:
    model = load_tiny(tmp_path_factory.mktemp("closed"), context=CELLS)
    closed, pending = model.open(), model.open()
    closed.close()
    pending.grow([5], [-1])
    for use in (lambda: closed.grow([5], [-1]), closed.settle):
        with pytest.raises(ValueError, match="context is closed"):
            use()
    model.close()
    for use in (lambda: pending.grow([5], [0]), lambda: pending.settle(0)):
        with pytest.raises(ValueError, match="is closed"):
            use()
    pending.close()
