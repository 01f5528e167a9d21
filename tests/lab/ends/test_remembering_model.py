"""A model that remembers says what the model itself says, with fewer passes."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError, ModelError
from antiphon.models.base import Context, InUse, Model, Stop
from antiphon.models.toy import ToyContext, ToyModel, named_toy, toy_pieces
from antiphon_lab.ends.remembering_model import NARROW, READERS, RememberingModel
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from support.examples import examples

PIECES = toy_pieces(merges=(), order=3)
TOKENS = st.lists(st.integers(0, 3), max_size=4)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), TOKENS, st.integers(0, 4)),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("grow"), st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=4)),
        st.tuples(st.just("settle"), st.floats(0, 1)),
        st.tuples(st.just("fork")),
        st.tuples(st.just("other")),
    ),
    max_size=25,
)


class CountedModel(ToyModel):
    """A toy whose logits tell apart whole histories, and that counts what it reads."""

    def __init__(self, **options: int) -> None:
        super().__init__(PIECES, **options)
        self.read = 0

    def open(self) -> ToyContext:
        return CountedContext(self, [])

    def logits(self, tokens: Sequence[int]) -> Logits:
        return np.full(len(self.vocabulary), hash(tuple(tokens)) % 2**20, dtype=np.float32)


class CountedContext(ToyContext):
    def extend(self, tokens: Sequence[int], rows: int = 1) -> Logits:
        assert rows <= len(tokens)  # a real model has logits of what it reads alone
        found = super().extend(tokens, rows)
        self._model.read += len(tokens)
        return found


class Pair:
    """A plain context and a remembering one, of which the same is asked."""

    def __init__(self, plain: Context, other: Context) -> None:
        self.contexts, self.nodes = (plain, other), 0

    def ask(self, act: tuple) -> "Pair | None":
        name, *given = act
        if name == "fork":
            return None if self.nodes else Pair(*(context.fork() for context in self.contexts))
        self.both(getattr(self, name)(*given))
        assert self.contexts[0].length == self.contexts[1].length
        return None

    def both(self, calls: "tuple | None") -> None:
        if calls is None:
            return
        name, *given = calls
        plain, other = (getattr(context, name)(*given) for context in self.contexts)
        if plain is not None:
            np.testing.assert_array_equal(plain, other)

    def extend(self, tokens: list[int], rows: int) -> "tuple | None":
        return None if self.nodes else ("extend", tokens, min(rows, len(tokens)))

    def rewind(self, share: float) -> tuple:
        self.nodes = 0
        return "rewind", round(share * self.contexts[0].length)

    def grow(self, nodes: list) -> "tuple | None":
        if not self.contexts[0].length:
            return None
        first, self.nodes = self.nodes, self.nodes + len(nodes)
        parents = [round(share * (first + place)) - 1 for place, (_, share) in enumerate(nodes)]
        return "grow", [token for token, _ in nodes], parents

    def settle(self, share: float) -> tuple:
        node, self.nodes = round(share * self.nodes) - 1, 0
        return "settle", node


@pytest.mark.medium
@examples(300)
@given(ACTS, st.integers(1, 40))
def test_a_model_that_remembers_is_the_model(acts: list[tuple], rows: int) -> None:
    """Whatever is asked, on several contexts, and however little is remembered."""
    model = CountedModel()
    remembering = RememberingModel(model, rows * 4 * len(PIECES))
    pairs = [Pair(model.open(), remembering.open())]
    for act in acts:
        if act == ("other",):
            pairs.append(Pair(model.open(), remembering.open()))
        elif (fork := pairs[-1].ask(act)) is not None:
            pairs.append(fork)


def test_nothing_is_read_twice() -> None:
    model = CountedModel()
    remembering = RememberingModel(model)
    for _ in range(3):
        context = remembering.open()
        context.extend([1, 2, 3], 0)
        context.extend([4], 1)
        context.extend([5, 6], 2)
        context.rewind(4)
        context.extend([5], 1)
    assert model.read == 6
    assert remembering.passes == 2


def test_what_was_recalled_is_read_once_something_new_follows() -> None:
    remembering = RememberingModel(CountedModel())
    remembering.open().extend([2, 7])
    context = remembering.open()
    context.extend([1, 7])
    context.rewind(0)
    context.extend([2, 7])
    np.testing.assert_array_equal(context.extend([3]), CountedModel().open().extend([2, 7, 3]))


def test_what_was_read_and_forgotten_is_read_again_for_its_logits() -> None:
    remembering = RememberingModel(CountedModel(), most_bytes=1)  # one row
    context = remembering.open()
    context.extend([1, 2])
    context.extend([3])
    context.rewind(1)
    np.testing.assert_array_equal(context.extend([2]), CountedModel().open().extend([1, 2]))
    np.testing.assert_array_equal(context.extend([3, 4], 2), CountedModel().open().extend([1, 2, 3, 4], 2))


def test_what_is_kept_of_a_tree_is_not_read_again() -> None:
    model = CountedModel()
    context = RememberingModel(model).open()
    context.extend([1, 2])
    context.grow([3, 4], [-1, 0])
    context.settle(1)
    context.extend([5])
    assert model.read == 3
    np.testing.assert_array_equal(context.extend([6]), CountedModel().open().extend([1, 2, 3, 4, 5, 6]))


def test_a_full_context_reads_nothing() -> None:
    remembering = RememberingModel(CountedModel(context_length=4))
    context = remembering.open()
    context.extend([1, 2, 3])
    with pytest.raises(CapacityError):
        context.extend([1, 2])
    assert context.length == 3
    np.testing.assert_array_equal(context.extend([0]), CountedModel().open().extend([1, 2, 3, 0]))


LINKS = ("4g", "lan", "rtt=30ms,up=1Mbit,down=1Mbit")


def trial(method: str, link: str = "4g", **options: object) -> Trial:
    compute = parse_compute("a100-7b")
    return Trial(method, parse_link(link), compute, SamplingParams(temperature=1.0), options, 12)


@pytest.mark.core(2)
@pytest.mark.parametrize("method", ["cloud", "dssd", "xcosd-e", "coupled", "tslt-tree", "coupled-tree"])
def test_answers_and_timelines_are_those_of_the_models_themselves(method: str) -> None:
    plain = named_toy("toy-cloud"), named_toy("toy-device")
    remembering = RememberingModel(plain[0]), RememberingModel(plain[1])
    for link in LINKS:
        passes = remembering[0].passes, remembering[1].passes
        one, other = (attempt(trial(method, link), *models, ["the "])[0].as_json() for models in (plain, remembering))
        assert one == other
        if link != LINKS[0] and not method.startswith("coupled"):  # in lockstep the tokens do not depend on the link
            assert (remembering[0].passes, remembering[1].passes) == passes
    for model in remembering:
        model.forget()


def test_contexts_share_the_cells_of_a_model_so_old_ones_make_room() -> None:
    """Three prompts of 40 tokens would be 120; the model has 100, and the last prompt is not refused."""
    model = Counting(toy_pieces(order=1), seed=3, context_length=100)
    remembering = RememberingModel(model)
    for seed in range(READERS):
        remembering.open().extend([seed] * 40, 1)
    assert model.in_use == InUse(2)
    remembering.forget()
    assert model.in_use == InUse()


SAID = st.lists(st.integers(0, 6), min_size=1, max_size=4)
VERBS = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), SAID, st.integers(0, 3)),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("grow"), SAID, st.lists(st.floats(0, 1), min_size=4, max_size=4), st.floats(0, 1)),
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


@examples(60)
@given(VERBS)
def test_it_says_what_the_model_says(verbs: Sequence[tuple]) -> None:
    model, shared = toy(), RememberingModel(toy())
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


def test_nothing_is_read_twice_however_it_is_opened() -> None:
    shared = RememberingModel(toy())
    for _ in range(3):
        context = shared.open()
        context.extend([1, 2, 3, 4], 0)
        assert shared.passes == 0 or shared.passes == 1
        context.extend([5, 6], 2)
        assert shared.passes == 1
        context.close()
    shared.forget()
    shared.open().extend([1, 2, 3, 4, 5, 6], 1)
    assert shared.passes == 2


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
    shared = RememberingModel(model)
    prompts = [[seed] * 40 for seed in range(READERS)]
    for turn in range(5):
        for prompt in prompts:
            shared.open().extend([*prompt, 5, turn], 1)
    assert model.opened == READERS
    assert model.read < READERS * 40 + 3 * 5 * READERS
    shared.open().extend([6] * 40, 1)  # one more prompt takes the place of one of them
    assert model.opened == READERS


def test_a_bad_token_is_still_an_error() -> None:
    shared = RememberingModel(toy())
    with pytest.raises(ModelError):
        shared.open().extend([10**6], 1)
    with pytest.raises(ValueError, match="rewind"):
        shared.open().rewind(1)


class BatchedModel(ToyModel):
    """Its logits depend on which tokens were read in wide passes, and on how many contexts there are, as a real one's can."""

    def open(self) -> "BatchedContext":
        return BatchedContext(self, [])


class BatchedContext(ToyContext):
    def __init__(self, model: BatchedModel, tokens: list[int]) -> None:
        super().__init__(model, tokens)
        self._wide: list[bool] = []

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        self._wide = [*self._wide[: self.length], *[rows == 0 and len(tokens) > NARROW] * len(tokens)]
        found = super().extend(tokens, rows, stop)
        return found + np.stack([self._noise(self.length - row) for row in reversed(range(rows))]) if rows else found

    def _noise(self, length: int) -> Logits:
        noise = np.random.default_rng([*self._wide[:length], self._model.in_use.contexts])
        return noise.standard_normal(len(self._model.vocabulary)).astype(np.float32)


def said(model: Model, prompt: Sequence[int], tokens: Sequence[int]) -> Logits:
    """What a model says after each of these tokens, read one by one behind a prompt."""
    context = model.open()
    context.extend(prompt, 0)
    found = np.concatenate([context.extend([token]) for token in tokens])
    context.close()
    return found


@pytest.mark.parametrize("rows", [1, 25, 1000])
def test_a_text_of_narrow_passes_is_the_models_own_whatever_is_kept(rows: int) -> None:
    """Of a text that goes on otherwise the last token alone is new, behind a prompt and a text that must be read again."""
    model = BatchedModel(toy_pieces(order=1), seed=1)
    shared = RememberingModel(BatchedModel(toy_pieces(order=1), seed=1), rows * 4 * len(model.vocabulary), readers=1)
    first, second, text = range(30, 50), [30, *range(60, 90)], list(range(20))
    for prompt, tokens in ((first, text), (second, text), (first, [7]), (first, [*text, 9]), (second, [*text, 9, 8])):
        np.testing.assert_array_equal(said(model, prompt, tokens), said(shared, prompt, tokens))
    shared.forget()
