"""Wrapped models: one that remembers is the model itself with fewer passes; one that is watched says what happened and when."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits
from antiphon.errors import CapacityError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.models.base import Context
from antiphon.models.toy import ToyContext, ToyModel, named_toy, toy_pieces
from antiphon_lab.ends.no_drafts import NonDraftingModel
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.ends.timeline import Timeline, watch
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import Compute, PassCost, parse_compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.notation import parse_link

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


@settings(max_examples=300, deadline=None)
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


@pytest.mark.parametrize("method", ["cloud", "dssd", "xcosd-e", "coupled", "tslt-tree", "coupled-tree"])
def test_answers_and_timelines_are_those_of_the_models_themselves(method: str) -> None:
    plain = named_toy("toy-cloud"), named_toy("toy-device")
    remembering = RememberingModel(plain[0]), RememberingModel(plain[1])
    for link in LINKS:
        passes = remembering[0].passes, remembering[1].passes
        one, other = (attempt(trial(method, link), *models, ["the "])[0].as_json() for models in (plain, remembering))
        assert one == other
        if link != LINKS[0] and method != "coupled":  # in lockstep the tokens do not depend on the link
            assert (remembering[0].passes, remembering[1].passes) == passes


def test_a_mute_device_makes_a_trip_a_token_and_the_answer_of_cloud() -> None:
    cloud, device = named_toy("toy-cloud"), named_toy("toy-device")
    (streamed,) = attempt(trial("cloud"), cloud, device, ["the "], 5)
    (asking,) = attempt(trial("coupled", draft_length=1, ahead=0), cloud, NonDraftingModel(device), ["the "], 5)
    assert asking.token_ids == streamed.token_ids
    assert asking.answer.exchanged.drafted == 0
    assert asking.answer.rounds == asking.tokens == asking.passes
    left = device.open()
    assert left.extend([1]).size  # the model is still open
    left.close()


COMPUTE = Compute("test", PassCost(5.0, 1.0), PassCost(20.0, 2.0), "a test")


def watched(method: str, **options: object) -> Timeline:
    tried = Trial(method, Link("l", *two_ways(), "a test"), COMPUTE, SamplingParams(temperature=1.0), options, 12)
    return watch(tried, named_toy("toy-cloud"), named_toy("toy-device"), "the ", 1)


def two_ways() -> tuple:
    link = parse_link("rtt=40ms,up=1Mbit,down=1Mbit")
    return link.up, link.down


def test_a_timeline_of_lockstep_is_a_chain_of_causes() -> None:
    line = watched("dssd", draft_length=2)
    assert len(line.commits) > 4
    for before, after in pairwise(line.commits[:-1]):
        drafts = [one for one in line.device if before.time <= one.start < after.time]
        up = [one for one in line.frames if one.up and before.time <= one.sent < after.time]
        verify = [one for one in line.cloud if before.time <= one.start < after.time]
        down = [one for one in line.frames if not one.up and before.time <= one.sent < after.time]
        assert (len(up), len(verify), len(down)) == (1, 1, 1)
        assert drafts[0].start == pytest.approx(before.time)
        assert up[0].sent == pytest.approx(drafts[-1].end)
        assert up[0].arrived == pytest.approx(verify[0].start)
        assert down[0].sent == pytest.approx(verify[0].end)
        assert down[0].arrived == pytest.approx(after.time)
        assert up[0].arrived - up[0].sent > 0.02
        assert verify[0].tokens == len(drafts) + 1


def test_passes_of_a_timeline_take_what_the_profile_says_and_never_overlap() -> None:
    for method in WITHOUT_DOCUMENTS:
        line = watched(method) if WITHOUT_DOCUMENTS[method].cloud else None
        for passes, cost in ((line.device, COMPUTE.draft), (line.cloud, COMPUTE.verify)) if line else ():
            assert all(one.end - one.start == pytest.approx(cost.seconds(one.tokens, 0)) for one in passes)
            assert all(one.end <= other.start + 1e-9 for one, other in pairwise(passes))


def test_a_timeline_is_that_of_the_answer() -> None:
    tried = trial("coupled")
    line = watch(tried, named_toy("toy-cloud"), named_toy("toy-device"), "the ", 3)
    (result,) = attempt(tried, named_toy("toy-cloud"), named_toy("toy-device"), ["the "], 3)
    assert line.seconds == result.answer.seconds
    assert sum(count for commit in line.commits for _, count in commit.kinds) == result.answer.committed
    assert len([one for one in line.cloud if one.tokens]) == result.passes + 1  # and the prompt's
