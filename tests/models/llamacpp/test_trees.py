"""Token trees on the toys and on a tiny llama.cpp model: the same as reading every path alone, whatever came before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Context, Model
from antiphon.models.llamacpp import model as llamacpp
from antiphon.models.llamacpp.model import CONTEXTS, SEQUENCES
from antiphon.models.llamacpp.sequences import ROWS
from antiphon.models.toy import ToyModel, toy_pieces
from models.llamacpp.growing import Walk, path_to, random_parents, read_paths
from support.tinymodel import load_tiny

CELLS = 1024
IDS = [3 + 7 * i % 250 for i in range(40)]
BINARY = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
"""A root, then two children of every node, three times."""
SHAPES = {
    "one": [-1],
    "chain": [-1, 0, 1, 2, 3],
    "siblings": [-1] * 6,
    "binary": BINARY,
    "depth first": [-1, 0, 1, 1, 0, 4, -1, 6, 6],
    "two roots": [-1, -1, 0, 1, 0, 1, 2, 3],
    "comb": [-1, 0, 0, 2, 2, 4, 4, 6, 6],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture
def tiny(folder: Path) -> Iterator[Model]:
    """Its own for every test, so that one that fails with open contexts fails alone."""
    model = load_tiny(folder, context=CELLS)
    yield model
    model.close()


@pytest.fixture(params=["toy", "llamacpp"])
def model(request: pytest.FixtureRequest, tiny: Model) -> Model:
    return tiny if request.param == "llamacpp" else ToyModel(toy_pieces(), context_length=CELLS)


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    opened = model.open()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def nothing_leaks(tiny: Any) -> Iterator[None]:
    """Whatever a test did: when its contexts are closed, all sequences and all cells are free again."""
    yield
    assert tiny._pool.free == SEQUENCES
    context = tiny.open()
    context.extend([5] * tiny.context_length)
    context.close()


ROUNDING = 0.02
"""The tiny model rounds its cache to half precision: passes of other widths differ by up to 0.005. A wrong token makes 0.4."""


def same(found: np.ndarray, wanted: np.ndarray, rounding: float = ROUNDING) -> None:
    np.testing.assert_allclose(found, wanted, atol=rounding)


# --- grow


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


# --- settle


def test_cells_that_do_not_come_back_are_an_error_and_never_a_guess(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    context = tiny.open()
    context.extend(IDS[:10])
    context.grow(IDS[:4], [-1, 0, 0, 1])
    monkeypatch.setattr(llamacpp.lib, "llama_state_seq_set_data", lambda *_: 0)
    with pytest.raises(ModelError, match="lost tokens that it needs again"):
        context.settle(3)
    monkeypatch.undo()
    assert context.length == 10
    context.rewind(10)
    same(context.extend([5]), read_after(tiny, [*IDS[:10], 5]))
    context.close()


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


# --- many rounds


@pytest.mark.parametrize("seed", range(12))
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


def read_after(model: Model, ids: list[int]) -> np.ndarray:
    plain = model.open()
    row = plain.extend(ids)
    plain.close()
    return row


def test_hundreds_of_rounds_leave_nothing_behind(model: Model, context: Context) -> None:
    context.extend(IDS[:8])
    for turn in range(400):
        context.grow(IDS[:15], BINARY)
        context.settle(turn % 16 - 1)
        context.rewind(8)
    wanted = read_after(model, [*IDS[:8], 5])
    same(context.extend([5]), wanted)


def test_closing_with_a_pending_tree_frees_it(model: Model) -> None:
    for _ in range(100):
        opened = model.open()
        opened.extend(IDS[:8])
        opened.grow(IDS[:15], BINARY)
        opened.close()
        opened.close()


# --- capacity


def test_a_tree_for_which_cells_do_not_suffice_reads_nothing(context: Context) -> None:
    context.extend((IDS * 30)[: CELLS - 8], 0)
    wanted = context.extend(IDS[:1])
    context.rewind(CELLS - 8)
    context.grow(IDS[:4], [-1, 0, 0, 1])
    for count in (5, 100):
        with pytest.raises(CapacityError, match=f"full at {CELLS} tokens"):
            context.grow((IDS * 3)[:count], [3] * count)
    assert context.length == CELLS - 8
    context.grow(IDS[:4], [3, 4, 5, 6])  # the last four fit
    with pytest.raises(CapacityError):
        context.grow(IDS[:1], [7])
    context.settle(7)
    assert context.length == CELLS - 1
    context.rewind(CELLS - 8)
    same(context.extend(IDS[:1]), wanted)


def test_cells_that_others_hold_are_missed_late_and_taken_back(tiny: Model) -> None:
    """The second pass of a tree does not fit: its first one goes, the nodes of earlier calls stay."""
    context, other = tiny.open(), tiny.open()
    other.extend([5] * (CELLS - 100), 0)
    context.extend(IDS[:10])
    parents = [-1, 0, 0, 1]
    wanted = read_paths(context, [*IDS[:4], 7, 8], [*parents, 3, 1])
    context.grow(IDS[:4], parents)
    for above in ([3] * 90, list(range(3, 93))):  # many leaves, or a long chain from an earlier leaf
        with pytest.raises(CapacityError, match="full"):
            context.grow((IDS * 3)[:90], above)
        assert tiny._pool.free == SEQUENCES - 4 - 2
    same(context.grow([7, 8], [3, 1]), wanted[4:])
    context.settle(4)
    other.rewind(100)
    same(context.extend([5]), read_after(tiny, [*IDS[:10], IDS[0], IDS[1], IDS[3], 7, 5]))
    for opened in (context, other):
        opened.close()


def test_leaves_for_which_sequences_do_not_suffice_read_nothing(tiny: Model) -> None:
    context, other = tiny.open(), tiny.open()
    context.extend(IDS[:10])
    spare = SEQUENCES - 4
    wanted = read_paths(context, [1, 7], [-1, 0])
    context.grow([1], [-1])
    other.grow([5] * (spare - 10), [-1] * (spare - 10))
    with pytest.raises(CapacityError, match="no room for 10 more branches"):
        context.grow([5] * 11, [0] * 11)  # ten beside the one that goes on
    assert context.length == 10
    same(context.grow([7], [0]), wanted[1:])
    context.grow([5] * 9, [0] * 9)
    with pytest.raises(CapacityError, match="branches"):
        context.grow([5], [-1])
    with pytest.raises(CapacityError, match="in use"):
        tiny.open()
    context.grow([5], [1])  # a leaf that goes on needs no other
    other.settle()
    context.settle(1)
    same(context.extend([5]), read_after(tiny, [*IDS[:10], 1, 7, 5]))
    for opened in (context, other):
        opened.close()


def test_eight_contexts_with_trees_of_sixteen_leaves_fit(tiny: Model) -> None:
    parents = [*BINARY, *(node for node in range(7, 15) for _ in range(2))]
    opened = [tiny.open() for _ in range(8)]
    for context in opened:
        context.extend(IDS[:10])
    wanted = read_paths(opened[0], IDS[:31], parents)
    for context in opened:
        same(context.grow(IDS[:31], parents), wanted)
    for context in opened:
        context.settle(30)
        context.close()


def test_full_of_contexts_there_are_leaves_left(tiny: Model) -> None:
    opened = [tiny.open() for _ in range(CONTEXTS)]
    opened[-1].grow([5] * 60, [-1] * 60)
    for context in opened:
        context.close()


@pytest.mark.parametrize("code", [-3, -1, 1, 2])
def test_a_pass_that_llama_cpp_gives_up_is_taken_back(tiny: Model, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    context = tiny.open()
    context.extend(IDS[:10])
    parents = [-1, 0, 0, 1, 3, 2, 2, 4]
    wanted = context.grow(IDS[:8], parents)
    context.settle()
    context.grow(IDS[:4], parents[:4])
    decode = llamacpp.lib.llama_decode
    monkeypatch.setattr(llamacpp.lib, "llama_decode", lambda *arguments: decode(*arguments) or code)
    with pytest.raises((ModelError, CapacityError)):
        context.grow([9] * 4, parents[4:])
    monkeypatch.undo()
    assert tiny._pool.free == SEQUENCES - 2 - 2
    same(context.grow(IDS[4:8], parents[4:]), wanted[4:])
    context.close()


def test_a_tree_over_lost_cells_is_an_error_and_never_a_guess(tiny: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    context = tiny.open()
    context.extend(IDS[:10])
    context.grow(IDS[:4], [-1, 0, 0, 1])
    monkeypatch.setattr(llamacpp.lib, "llama_memory_seq_pos_min", lambda *_: 1)
    with pytest.raises(ModelError, match="lost tokens that it needs again"):
        context.grow([5], [1])
    with pytest.raises(ModelError, match="lost tokens that it needs again"):
        context.settle(3)
    monkeypatch.undo()
    assert context.length == 10
    same(context.extend([5]), read_after(tiny, [*IDS[:10], 5]))
    context.close()


# --- errors


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
