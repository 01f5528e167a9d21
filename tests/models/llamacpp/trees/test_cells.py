"""Token trees when cells and sequences run out: what was taken comes back, and nothing is guessed."""

import pytest

from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Context, Model
from antiphon.models.llamacpp import model as llamacpp
from antiphon.models.llamacpp.model import CONTEXTS, SEQUENCES
from models.llamacpp.growing import read_paths
from models.llamacpp.trees.shapes import BINARY, CELLS, IDS, read_after, same


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


@pytest.mark.core(1)
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
