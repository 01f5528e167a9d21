"""A model that is shared by all answers says what the model itself says, and reads nothing twice."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import ModelError
from antiphon.models.base import Context
from antiphon.models.toy import ToyModel, toy_pieces
from antiphon_lab.ends.shared_model import READERS, SharedModel

TOKENS = st.lists(st.integers(0, 6), min_size=1, max_size=4)
VERBS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), TOKENS, st.integers(0, 3)),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("grow"), TOKENS, st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0, 1)),
        st.tuples(st.just("fork")),
    ),
    max_size=12,
)


def toy() -> ToyModel:
    return ToyModel(toy_pieces(order=1), seed=3)


def say(context: Context, verb: tuple) -> np.ndarray:
    match verb:
        case ("extend", tokens, rows):
            return context.extend(tokens, min(rows, len(tokens)))
        case ("rewind", share):
            context.rewind(round(share * context.length))
            return np.zeros(0)
        case ("grow", tokens, places, kept):
            parents = [round(place * node) - 1 for node, place in zip(range(len(tokens)), places, strict=False)]
            logits = context.grow(tokens, parents)
            context.settle(round(kept * len(tokens)) - 1)
            return logits
        case _:
            return np.zeros(0)


@settings(max_examples=60, deadline=None)
@given(VERBS)
def test_it_says_what_the_model_says(verbs: Sequence[tuple]) -> None:
    model, shared = toy(), SharedModel(toy())
    ours, theirs = [shared.open()], [model.open()]
    for number, verb in enumerate(verbs):
        place = number % len(ours)
        if verb[0] == "fork":
            ours.append(ours[place].fork())
            theirs.append(theirs[place].fork())
            continue
        np.testing.assert_array_equal(say(ours[place], verb), say(theirs[place], verb))
        assert [one.length for one in ours] == [one.length for one in theirs]
    shared.close()


def test_nothing_is_read_twice() -> None:
    shared = SharedModel(toy())
    for _ in range(3):
        context = shared.open()
        context.extend([1, 2, 3, 4], 0)
        assert shared.passes == 0 or shared.passes == 2
        context.extend([5, 6], 2)
        assert shared.passes == 2
        context.close()
    shared.forget()
    shared.open().extend([1, 2, 3, 4, 5, 6], 1)
    assert shared.passes == 3


class Counting(ToyModel):
    """Counts contexts, and the tokens that they read."""

    opened = read = 0

    def open(self) -> Context:
        self.opened += 1
        context, model = super().open(), self
        original = context.extend

        def extend(tokens: Sequence[int], rows: int = 1) -> np.ndarray:
            model.read += len(tokens)
            return original(tokens, rows)

        context.extend = extend
        return context


def test_each_of_a_few_prompts_is_read_once_however_answers_take_turns() -> None:
    model = Counting(toy_pieces(order=1), seed=3)
    shared = SharedModel(model)
    prompts = [[seed] * 40 for seed in range(READERS)]
    for turn in range(5):
        for prompt in prompts:
            shared.open().extend([*prompt, 5, turn], 1)
    assert model.opened == READERS
    assert model.read < READERS * 40 + 3 * 5 * READERS
    shared.open().extend([6] * 40, 1)  # one more prompt takes the place of one of them
    assert model.opened == READERS


def test_a_bad_token_is_still_an_error() -> None:
    shared = SharedModel(toy())
    with pytest.raises(ModelError):
        shared.open().extend([10**6], 1)
    with pytest.raises(ValueError, match="rewind"):
        shared.open().rewind(1)
