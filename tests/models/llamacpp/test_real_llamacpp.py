"""The two real models, to the last bit: the width of a pass, a rollback and a fork change nothing that is read."""

import threading
from itertools import islice

import numpy as np
import pytest

from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Context, Model, Preempted, Stop, spell
from antiphon.models.llamacpp.model import CONTEXTS
from antiphon.models.llamacpp.sequences import BATCH, ROWS

pytestmark = pytest.mark.model

TEXT = "The two choirs stood on either side of the nave, and each sang what the other had left unsaid. "
WINDOW = 512
"""Positions that Gemma 3's sliding layers look back."""


@pytest.fixture(params=["smollm2", "gemma3"])
def model(request: pytest.FixtureRequest) -> Model:
    found: Model = request.getfixturevalue(request.param)
    return found


def ids_of(model: Model, count: int) -> list[int]:
    return list(islice([*model.begin, *spell(model, (TEXT * (count // 15 + 1)).encode())], count))


def rows_one_by_one(context: Context, tokens: list[int]) -> np.ndarray:
    return np.concatenate([context.extend([token]) for token in tokens])


@pytest.mark.parametrize("prefix", [1, 40, 130])
def test_passes_of_one_to_seven_tokens_equal_token_by_token(model: Model, prefix: int) -> None:
    ids = ids_of(model, prefix + 7)
    context = model.open()
    context.extend(ids[:prefix])
    alone = rows_one_by_one(context, ids[prefix:])
    for width in range(1, 8):
        context.rewind(prefix)
        np.testing.assert_array_equal(context.extend(ids[prefix : prefix + width], width), alone[:width])
    context.close()


def test_any_cut_of_seven_tokens_into_passes_gives_the_same_rows(model: Model) -> None:
    ids = ids_of(model, 47)
    context = model.open()
    context.extend(ids[:40])
    whole = context.extend(ids[40:], 7)
    for cut in range(1, 7):
        context.rewind(40)
        parts = context.extend(ids[40 : 40 + cut], cut), context.extend(ids[40 + cut :], 7 - cut)
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    context.close()


def assert_rollback_is_exact(model: Model, prefix: int, detour: int) -> None:
    ids, other = ids_of(model, prefix + 5), ids_of(model, detour + 1)[1:]
    straight, back = model.open(), model.open()
    straight.extend(ids[:prefix])
    wanted = straight.extend(ids[prefix:], 5)
    straight.close()
    back.extend(ids[:prefix])
    back.extend(other)
    back.rewind(prefix)
    np.testing.assert_array_equal(back.extend(ids[prefix:], 5), wanted)
    back.close()


@pytest.mark.parametrize(("prefix", "detour"), [(1, 1), (40, 5), (40, 90)])
def test_a_rollback_equals_never_having_gone_there(model: Model, prefix: int, detour: int) -> None:
    assert_rollback_is_exact(model, prefix, detour)


def test_a_rollback_past_the_sliding_window_is_exact_too(gemma3: Model) -> None:
    assert_rollback_is_exact(gemma3, WINDOW + 108, 100)


def test_a_second_rollback_below_the_sliding_window(gemma3: Model) -> None:
    """Back to where the window of the tokens in between has already moved on."""
    ids = ids_of(gemma3, WINDOW + 200)
    context = gemma3.open()
    context.extend(ids[:100])
    wanted = context.extend(ids[100:105], 5)
    context.extend(ids[105:])
    context.rewind(WINDOW + 100)
    context.rewind(100)
    np.testing.assert_array_equal(context.extend(ids[100:105], 5), wanted)
    context.close()


@pytest.mark.parametrize("back", [5, 300])
def test_other_contexts_never_take_cells_that_a_rollback_needs(gemma3: Model, back: int) -> None:
    """Behind the sliding window llama.cpp gives cells away that one sequence alone holds: then this is off by 5."""
    ids = ids_of(gemma3, WINDOW + 200)
    length = WINDOW + 88
    first, second, third = (gemma3.open() for _ in range(3))
    for context in (first, second, third):
        context.extend(ids[:length])
    third.rewind(length - back)
    wanted = third.extend(ids[length - back : length], 5)
    second.close()
    late = gemma3.open()
    late.extend(ids[20 : 60 + length])  # all cells that the second gave back, and 40 more
    third.rewind(length - back)
    np.testing.assert_array_equal(third.extend(ids[length - back : length], 5), wanted)
    for context in (first, third, late):
        context.close()


@pytest.mark.parametrize("prefix", [30, WINDOW + 108])
def test_a_fork_shares_the_past_and_is_independent(model: Model, prefix: int) -> None:
    ids = ids_of(model, prefix + 6)
    trunk = model.open()
    trunk.extend(ids[:prefix])
    wanted = trunk.extend(ids[prefix : prefix + 3], 3)
    trunk.rewind(prefix)
    branch = trunk.fork()
    assert branch.length == prefix
    branch.extend(ids[prefix + 2 :])
    np.testing.assert_array_equal(trunk.extend(ids[prefix : prefix + 3], 3), wanted)
    trunk.close()
    branch.rewind(prefix)
    np.testing.assert_array_equal(branch.extend(ids[prefix : prefix + 3], 3), wanted)
    branch.close()


def test_another_context_in_the_same_cache_changes_nothing(model: Model) -> None:
    ids = ids_of(model, 47)
    one, other = model.open(), model.open()
    one.extend(ids[:40])
    wanted = rows_one_by_one(one, ids[40:])
    one.rewind(40)
    other.extend(ids[:20])
    mixed = []
    for token in ids[40:]:
        mixed.append(one.extend([token]))
        other.extend(ids[20:23])
    np.testing.assert_array_equal(np.concatenate(mixed), wanted)
    for context in (one, other):
        context.close()


def test_every_row_of_a_long_pass_is_right(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer than BATCH and than ROWS, all rows wanted: as good as passes by hand that are as wide."""
    count = BATCH + ROWS + 24
    ids = ids_of(smollm2, count)
    context = smollm2.open()
    logits = context.extend(ids, count)
    assert logits.shape == (count, len(smollm2.vocabulary))
    assert np.isfinite(logits).all()
    context.rewind(0)
    monkeypatch.setattr(smollm2, "narrow", ROWS)
    for start in range(0, count, ROWS):
        part = ids[start : start + ROWS]
        np.testing.assert_array_equal(context.extend(part, len(part)), logits[start : start + ROWS])
    context.close()


def test_more_rows_than_one_pass_gives_on_gemma(gemma3: Model) -> None:
    context = gemma3.open()
    logits = context.extend(ids_of(gemma3, BATCH + 10), ROWS + 6)
    assert logits.shape == (ROWS + 6, 262_144)
    assert np.isfinite(logits).all()
    context.close()


def test_a_full_context_reads_nothing_and_still_works(model: Model) -> None:
    ids = ids_of(model, model.context_length)
    context = model.open()
    context.extend(ids[:20])
    wanted = context.extend(ids[20:22], 2)
    context.rewind(20)
    with pytest.raises(CapacityError, match=f"full at {model.context_length} tokens"):
        context.extend(ids)  # three passes of it fit, and are taken back
    assert context.length == 20
    np.testing.assert_array_equal(context.extend(ids[20:22], 2), wanted)
    context.close()


def test_bad_ids_are_refused_before_llama_cpp_sees_them(model: Model) -> None:
    context = model.open()
    for bad in (-1, len(model.vocabulary), 2**31, -(2**31) - 1):
        with pytest.raises(ModelError, match="no token"):
            context.extend([1, bad])
    assert context.length == 0
    context.close()


def test_closing_gives_sequences_and_cells_back(model: Model) -> None:
    for _ in range(CONTEXTS + 1):
        context = model.open()
        context.extend(ids_of(model, 3))
        fork = context.fork()
        context.close()
        fork.close()
    context = model.open()
    with pytest.raises(CapacityError):
        context.extend([1] * (model.context_length + 1))
    context.close()


@pytest.mark.parametrize("prefix", [30, WINDOW + 108])
def test_a_pass_that_is_given_up_was_never_begun(model: Model, prefix: int) -> None:
    """In another thread, at any time: nothing of it is read, another context is intact, and the next pass is exact."""
    tokens, more = ids_of(model, prefix), ids_of(model, BATCH + 300)
    context, other, given_up = model.open(), model.open(), 0
    context.extend(tokens[:-1])
    other.extend(tokens[:19])
    expected = context.extend(tokens[-1:]), other.extend(tokens[19:20])
    for milliseconds in (0.0, 1.0, 5.0, 20.0, 60.0):
        stop, seconds = Stop(), milliseconds / 1000
        timer = threading.Timer(seconds, stop.set)
        timer.start()
        try:
            context.extend(more, 1, stop)
        except Preempted:
            given_up += 1
            assert context.length == prefix
        timer.join()
        context.rewind(prefix - 1)
        np.testing.assert_array_equal(context.extend(tokens[-1:]), expected[0])
        other.rewind(19)
        np.testing.assert_array_equal(other.extend(tokens[19:20]), expected[1])
    assert given_up >= 3, "a pass of 800 tokens takes longer than a millisecond"
    context.close()
    other.close()


def test_a_pass_with_a_stop_that_is_not_set_is_like_any_other(model: Model) -> None:
    tokens, context, plain = ids_of(model, 60), model.open(), model.open()
    np.testing.assert_array_equal(context.extend(tokens, 1, Stop()), plain.extend(tokens, 1))
    context.close()
    plain.close()
