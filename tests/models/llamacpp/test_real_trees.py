"""Token trees on the two real models, to the last bit.

Passes of 2 to 7 tokens give the same logits at any width (one token alone is read otherwise by several threads when
the cache holds 256 cells or more), and wider ones are read in such parts on a CPU: so trees must equal reading every path.
A settled path moves to the lowest free cells, so whatever trees were read before, a context alone equals `Twin`, which reads
plainly. Beside others it need not: a sum runs over the cells in their order, and what others give back lies before ours.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest

from antiphon.errors import ModelError
from antiphon.models.base import Context, Model, spell
from models.llamacpp.growing import path_to, random_parents
from support.examples import seeds

pytestmark = [pytest.mark.model, pytest.mark.slow]

TEXT = "The two choirs stood on either side of the nave, and each sang what the other had left unsaid. "
WINDOW = 512
"""Positions that Gemma 3's sliding layers look back."""
SMALL = ([-1, 0, 1, 2], [-1] * 7, [-1, 0, 0, 1, 1, 2, 2], [-1, -1, 0, 1, 2, 2, 3], [-1, 0, 0, 2, 2, 4, 4])
FILLER = 5


@pytest.fixture(params=["smollm2", "gemma3"])
def model(request: pytest.FixtureRequest) -> Model:
    found: Model = request.getfixturevalue(request.param)
    return found


def read_token(context: Context, token: int) -> np.ndarray:
    """The logits after one token, of a pass of two."""
    row: np.ndarray = context.extend([token, FILLER], 2)[0]
    context.rewind(context.length - 1)
    return row


def read_paths(context: Context, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
    """The logits after every node, each of whose paths is read behind the context's tokens."""
    length, rows = context.length, []
    for node in range(len(tokens)):
        rows.append([read_token(context, tokens[step]) for step in path_to(parents, node)][-1])
        context.rewind(length)
    return np.stack(rows)


def cuts(count: int) -> list[slice]:
    """A call of two nodes after the other, the last of two or three."""
    starts = range(0, count - 1, 2)
    return [slice(start, count if start == starts[-1] else start + 2) for start in starts]


def ids_of(model: Model, count: int) -> list[int]:
    return list(islice([*model.begin, *spell(model, (TEXT * (count // 15 + 1)).encode())], count))


@pytest.mark.parametrize("prefix", [1, 40, WINDOW + 108])
def test_small_trees_equal_every_path(model: Model, prefix: int) -> None:
    ids = ids_of(model, prefix + 7)
    context = model.open()
    context.extend(ids[:prefix])
    for parents in SMALL:
        tokens = ids[prefix : prefix + len(parents)]
        wanted = read_paths(context, tokens, parents)
        np.testing.assert_array_equal(context.grow(tokens, parents), wanted)
        context.settle()
        rows = [context.grow(tokens[part], parents[part]) for part in cuts(len(tokens))]
        np.testing.assert_array_equal(np.concatenate(rows), wanted)
        context.rewind(prefix)
    context.close()


WIDE = (
    [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6],
    list(range(-1, 7)),
    [-1] * 9 + [3] * 6 + [12] * 7,
)
"""A tree that is the default's with its root, a chain of 8, and 22 nodes."""


@pytest.mark.parametrize("parents", WIDE, ids=len)
def test_a_wide_tree_equals_every_path(model: Model, parents: list[int]) -> None:
    ids = ids_of(model, 40 + len(parents))
    context = model.open()
    context.extend(ids[:40])
    wanted = read_paths(context, ids[40:], parents)
    np.testing.assert_array_equal(context.grow(ids[40:], parents), wanted)
    context.close()


@pytest.mark.parametrize("width", [8, 9, 15, 40])
def test_a_wide_pass_equals_narrow_ones(model: Model, width: int) -> None:
    ids = ids_of(model, 60 + width)
    context = model.open()
    context.extend(ids[:60])
    wanted = np.stack([read_token(context, token) for token in ids[60:]])
    context.rewind(60)
    np.testing.assert_array_equal(context.extend(ids[60:], width), wanted)
    context.close()


@pytest.mark.parametrize("prefix", [40, WINDOW + 108])
def test_two_trees_that_grow_in_turns(model: Model, prefix: int) -> None:
    parents = SMALL[2]
    ids = ids_of(model, prefix + 7)
    one, other = model.open(), model.open()
    rows: dict[Context, list[np.ndarray]] = {one: [], other: []}
    wanted = {}
    for context in rows:
        context.extend(ids[:prefix])
        wanted[context] = read_paths(context, ids[prefix:], parents)
    for part in cuts(7):
        for context, found in rows.items():
            found.append(context.grow(ids[prefix:][part], parents[part]))
    for context, found in rows.items():
        np.testing.assert_array_equal(np.concatenate(found), wanted[context])
        context.close()


class Grower:
    """Reads trees as trees; gives the rows of the path that is kept."""

    def __init__(self, model: Model, ids: list[int]) -> None:
        self.context = model.open()
        self.context.extend(ids)

    def grow(self, tokens: Sequence[int], parents: Sequence[int], first: int, kept: set[int]) -> list[np.ndarray]:
        rows = self.context.grow(tokens, parents)
        return [row for node, row in enumerate(rows, first) if node in kept]

    def settle(self, node: int) -> None:
        self.context.settle(node)

    def close(self) -> None:
        self.context.close()


class Twin(Grower):
    """Reads the kept path alone, plainly."""

    def grow(self, tokens: Sequence[int], parents: Sequence[int], first: int, kept: set[int]) -> list[np.ndarray]:
        return [read_token(self.context, token) for node, token in enumerate(tokens, first) if node in kept]

    def settle(self, node: int) -> None:
        """There is no other node."""


def history(model: Model, kind: type[Grower], prefix: int, seed: int, *, beside: bool) -> np.ndarray:
    """The rows of many rounds: trees of two calls, settled at random, plain passes, rollbacks; another's tree between."""
    random = np.random.Generator(np.random.PCG64(seed))
    ids = ids_of(model, 1000)
    grower, neighbour = kind(model, ids[:prefix]), model.open()
    found = []
    for _ in range(7):
        count, second = (int(random.integers(2, 12)) for _ in range(2))
        parents = random_parents(random, count + second)
        start = int(random.integers(900))
        tokens = ids[start : start + count + second]
        node = int(random.integers(-1, len(parents)))
        kept = set(path_to(parents, node))
        found += grower.grow(tokens[:count], parents[:count], 0, kept)
        if beside:
            neighbour.grow(tokens[:3], [-1, 0, 0])
        found += grower.grow(tokens[count:], parents[count:], count, kept)
        grower.settle(node)
        neighbour.settle(1 if beside else -1)
        found += list(grower.context.extend(ids[start + 20 : start + 23], 3))
        if random.random() < 0.4:
            grower.context.rewind(int(random.integers(prefix, grower.context.length + 1)))
    for opened in (grower, neighbour):
        opened.close()
    assert len(found) > 20
    return np.stack(found)


@pytest.mark.parametrize("prefix", [20, WINDOW + 108])
@pytest.mark.parametrize("seed", seeds(3))
def test_many_rounds_equal_plain_reading(model: Model, prefix: int, seed: int) -> None:
    grown, plain = (history(model, kind, prefix, seed, beside=False) for kind in (Grower, Twin))
    np.testing.assert_array_equal(grown, plain)


@pytest.mark.parametrize("prefix", [20, WINDOW + 108])
def test_many_rounds_beside_another_are_near_plain_reading(model: Model, prefix: int) -> None:
    """What the other one gives back lies before our cells. A wrong path is off by 6 in the mean."""
    grown = history(model, Grower, prefix, 0, beside=True)
    plain = history(model, Twin, prefix, 0, beside=False)
    assert np.abs(grown - plain).mean(axis=1).max() < 1


def test_settled_cells_stay_ours_behind_the_sliding_window(gemma3: Model) -> None:
    """Held by one sequence only, the third context would get them, and the rollback would miss them."""
    ids, rows = ids_of(gemma3, WINDOW + 100), []
    for stealing in (False, True):
        first, second = gemma3.open(), gemma3.open()
        first.extend(ids[:50])
        second.extend(ids[:40])
        second.grow(ids[40:47], SMALL[4])
        second.settle(6)
        second.extend(ids[44 : WINDOW + 64])
        first.close()
        third = gemma3.open()
        third.extend(ids[: 100 if stealing else 50])  # what the first gave back, and what it can get
        second.rewind(50)
        rows.append(second.extend(ids[50:55], 5))
        for context in (second, third):
            context.close()
    np.testing.assert_array_equal(*rows)


def test_the_prefix_of_a_pending_tree_stays_ours_behind_the_sliding_window(gemma3: Model) -> None:
    ids, rows = ids_of(gemma3, WINDOW + 200), []
    for stealing in (False, True):
        first, second = gemma3.open(), gemma3.open()
        first.extend(ids[:50])
        second.extend(ids[: WINDOW + 108])
        second.grow(ids[40:44], [-1, 0, 0, 1])
        first.close()
        third = gemma3.open()
        third.extend(ids[: 100 if stealing else 50])  # what the first gave back, and what it can get
        rows.append(second.grow(ids[44:47], [1, 3, -1]))
        second.rewind(50)
        rows.append(second.extend(ids[50:53], 3))
        for context in (second, third):
            context.close()
    np.testing.assert_array_equal(np.concatenate(rows[:2]), np.concatenate(rows[2:]))


def test_every_cell_comes_back(model: Model) -> None:
    ids = ids_of(model, model.context_length)
    for turn in range(10):
        context = model.open()
        context.extend(ids[:3])
        context.grow(ids[3:10], SMALL[2])
        context.settle(turn % 8 - 1)
        context.grow(ids[3:10], SMALL[3])
        context.close()
    context = model.open()
    context.extend(ids, 0)
    context.close()


def test_a_tree_deeper_than_the_sliding_window_is_refused_once_cells_are_lost(gemma3: Model) -> None:
    """Its nodes have one holder, so the third context gets those behind the window: an error, and never a guess."""
    ids = ids_of(gemma3, WINDOW + 100)
    first, second = gemma3.open(), gemma3.open()
    first.extend(ids[:50])
    second.extend(ids[:20])
    for start in range(0, WINDOW + 60, 60):
        second.grow(ids[start : start + 60], range(start - 1, start + 59))
    first.close()
    third = gemma3.open()
    third.extend(ids[:70])
    with pytest.raises(ModelError, match="lost tokens"):
        second.grow(ids[:2], [40, 41])
    with pytest.raises(ModelError, match="lost tokens"):
        second.settle(WINDOW)
    assert second.length == 20
    found = second.extend(ids[20:23], 3)
    second.rewind(0)
    second.extend(ids[:20])
    np.testing.assert_allclose(found, second.extend(ids[20:23], 3), atol=6)
    for context in (second, third):
        context.close()
