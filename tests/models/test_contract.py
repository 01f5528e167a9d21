"""What `models/base.py` promises, kept by the toys as by llama.cpp: the methods are tested on the ones and run on the other."""

from collections.abc import Iterator

import numpy as np
import pytest

from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Context, Model
from antiphon.models.toy import ToyModel, toy_pieces
from support.tinymodel import load_tiny

BACKENDS = ("toy", "llamacpp")
CELLS = 512
IDS = [3 + 7 * i % 250 for i in range(40)]


@pytest.fixture(scope="module", params=BACKENDS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    if request.param == "toy":
        made: Model = ToyModel(toy_pieces(), context_length=CELLS)
    else:
        made = load_tiny(tmp_path_factory.mktemp("tiny"), context=CELLS)
    yield made
    made.close()
    made.close()


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    opened = model.open()
    yield opened
    opened.close()


def same(found: np.ndarray, wanted: np.ndarray, rounding: float = 1e-4) -> None:
    """Equal, to the rounding of sums that are made in another order."""
    np.testing.assert_allclose(found, wanted, atol=rounding)


def test_a_new_context_is_empty(model: Model, context: Context) -> None:
    assert context.length == 0
    assert model.context_length == CELLS


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (1, 0), (1, 1), (5, 2), (5, 5), (64, 1), (65, 65), (200, 0), (512, 500)])
def test_extend_gives_a_row_for_each_of_the_last_tokens(model: Model, context: Context, count: int, rows: int) -> None:
    logits = context.extend((IDS * 13)[:count], rows)
    assert logits.shape == (rows, len(model.vocabulary))
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    assert context.length == count


def test_one_row_is_the_default(context: Context) -> None:
    assert len(context.extend(IDS)) == 1


def test_ids_may_stand_in_any_sequence(context: Context) -> None:
    wanted = context.extend(IDS[:4], 4)
    for ids in (tuple(IDS[:4]), np.asarray(IDS[:4]), np.asarray(IDS[:4], dtype=np.int32)):
        context.rewind(0)
        same(context.extend(ids, 4), wanted)


def test_the_logits_are_the_callers_own(context: Context) -> None:
    logits = context.extend(IDS[:2], 2)
    kept = logits.copy()
    context.extend(IDS[2:5], 3)
    np.testing.assert_array_equal(logits, kept)
    logits[:] = np.nan
    context.rewind(0)
    same(context.extend(IDS[:2], 2), kept)


@pytest.mark.parametrize("count", [3, 40, 130])
def test_rows_of_one_pass_are_those_of_token_after_token(context: Context, count: int) -> None:
    ids = (IDS * 4)[:count]
    one_by_one = np.concatenate([context.extend([token]) for token in ids])
    rounding = 0.05 if count >= 64 else 1e-4  # llama.cpp reads passes from 64 tokens on in half precision
    context.rewind(0)
    same(context.extend(ids, count), one_by_one, rounding)
    context.rewind(1)
    same(context.extend(ids[1:], count - 2), one_by_one[2:], rounding)


@pytest.mark.parametrize("bad", [[-1], [2**70], [3, -1, 4]])
def test_an_id_that_is_no_token_is_refused_with_nothing_read(context: Context, bad: list[int]) -> None:
    context.extend(IDS[:2])
    with pytest.raises(ModelError, match="no token"):
        context.extend(bad)
    assert context.length == 2


def test_the_id_after_the_last_is_no_token(model: Model, context: Context) -> None:
    context.extend([len(model.vocabulary) - 1])
    with pytest.raises(ModelError, match="no token"):
        context.extend([len(model.vocabulary)])


@pytest.mark.parametrize("too_many", [1, 3, 100, 700])
def test_a_full_context_reads_nothing_and_still_works(context: Context, too_many: int) -> None:
    ids = (IDS * 13)[: CELLS - 2]
    context.extend(ids[:-1])
    wanted = context.extend(ids[-1:])
    with pytest.raises(CapacityError, match="full at 512 tokens"):
        context.extend([5] * (2 + too_many))
    assert context.length == CELLS - 2
    context.rewind(CELLS - 3)
    same(context.extend(ids[-1:]), wanted)
    context.extend([5, 6])  # the last two fit


@pytest.mark.parametrize("length", [-1, 3])
def test_rewinding_past_either_end_is_refused(context: Context, length: int) -> None:
    context.extend(IDS[:2])
    with pytest.raises(ValueError, match="cannot rewind a context of 2 tokens"):
        context.rewind(length)
    assert context.length == 2


@pytest.mark.parametrize("length", [0, 1, 19, 20])
def test_after_a_rewind_it_is_as_if_nothing_had_been_read(context: Context, length: int) -> None:
    context.extend(IDS[:length], 0)
    wanted = context.extend(IDS[20:25], 5)
    context.rewind(length)
    context.extend([9] * 8)
    context.rewind(length)
    assert context.length == length
    same(context.extend(IDS[20:25], 5), wanted)


def test_a_fork_shares_the_past_and_nothing_else(context: Context) -> None:
    context.extend(IDS[:10])
    wanted = context.extend(IDS[20:25], 5)
    context.rewind(10)
    fork = context.fork()
    assert fork.length == 10
    fork.extend([9] * 6)
    assert (context.length, fork.length) == (10, 16)
    same(context.extend(IDS[20:25], 5), wanted)
    fork.rewind(10)
    same(fork.extend(IDS[20:25], 5), wanted)
    fork.close()


def test_a_fork_outlives_its_parent(model: Model) -> None:
    parent = model.open()
    parent.extend(IDS[:10])
    fork = parent.fork()
    wanted = parent.extend(IDS[10:12], 2)
    parent.close()
    other = model.open()  # on what the parent gave back
    other.extend([9] * 30)
    same(fork.extend(IDS[10:12], 2), wanted)
    fork.rewind(2)
    same(fork.extend(IDS[2:12], 2), wanted)
    for opened in (fork, other):
        opened.close()


def test_an_empty_fork_works(context: Context) -> None:
    fork = context.fork()
    same(fork.extend(IDS[:3]), context.extend(IDS[:3]))
    fork.close()


def test_closing_twice_is_harmless(model: Model) -> None:
    closed = model.open()
    closed.extend(IDS)
    closed.close()
    owner = model.open()
    owner.extend(IDS)
    wanted = owner.extend([5])
    owner.rewind(len(IDS))
    closed.close()
    assert owner.length == len(IDS)
    same(owner.extend([5]), wanted)
    owner.close()


def test_open_and_close_without_end(model: Model) -> None:
    for _ in range(300):
        opened = model.open()
        opened.extend(IDS[:3])
        fork = opened.fork()
        fork.extend(IDS[:1])
        opened.close()
        fork.close()
