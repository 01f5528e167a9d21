"""Block verification, by itself: its distribution is the target's, it lets no fewer drafts stand, and faults are seen."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.core.acceptance import accepts, residual
from antiphon.core.block import Block, judged
from antiphon.core.chance import Chance, Place, Role, Stream
from antiphon.core.distributions import Probs
from antiphon.testing.enumeration import output_distribution
from support.examples import examples

Numbers = tuple[int, ...]
Rule = Callable[["Toy", Numbers, Chance], tuple[int, Probs]]
"""How many of a round's drafts stand, and the distribution of the token behind them."""


@dataclass(frozen=True)
class Toy:
    """Draft and target distributions behind every run of drafts. stops: runs behind which nothing is drafted."""

    drafts: Mapping[Numbers, Probs]
    targets: Mapping[Numbers, Probs]
    longest: int
    stops: frozenset[Numbers] = frozenset()

    def probs(self, numbers: Numbers) -> list[Probs]:
        """Those that the drafts were drawn from."""
        return [self.drafts[numbers[:index]] for index in range(len(numbers))]

    def drawn(self, chance: Chance) -> Numbers:
        numbers: Numbers = ()
        while len(numbers) < self.longest and numbers not in self.stops:
            stream = chance.at(Place(0, len(numbers)), Role.DRAFT)
            numbers = (*numbers, stream.categorical(self.drafts[numbers]))
        return numbers


def toy(seed: int, longest: int, common: int, outside: int, sharpness: float, *, zeros: bool) -> Toy:
    """Any: targets have tokens besides those that can be drafted; with `zeros` each lacks some."""
    source = np.random.default_rng(seed)

    def made(size: int) -> Probs:
        probs = np.exp(sharpness * source.normal(size=size))
        if zeros and size > 1:
            probs[source.integers(size)] = 0.0
        return probs / probs.sum()

    runs = [run for length in range(longest + 1) for run in product(range(common), repeat=length)]
    drafts = {run: made(common) for run in runs}
    targets = {run: made(common + outside) if source.random() < 0.9 else grown(drafts[run], outside) for run in runs}
    return Toy(drafts, targets, longest)


def grown(probs: Probs, outside: int) -> Probs:
    """The same distribution, with tokens that it never draws."""
    return np.append(probs, np.zeros(outside))


def by_block(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    return settled(models, numbers, block_of(models, numbers), lambda block: block.accepted(draws(chance)))


def block_of(models: Toy, numbers: Numbers) -> Block:
    return judged(numbers, models.probs(numbers), lambda index: models.targets[numbers[:index]])


def draws(chance: Chance) -> Callable[[int], Stream]:
    return lambda index: chance.at(Place(0, index), Role.ACCEPT)


def settled(models: Toy, numbers: Numbers, block: Block, count: Callable[[Block], int]) -> tuple[int, Probs]:
    accepted = count(block)
    target = models.targets[numbers[:accepted]]
    if accepted == len(numbers):
        return accepted, target
    return accepted, residual(block.reached[accepted] * target, models.drafts[numbers[:accepted]])


def by_token(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    for index, number in enumerate(numbers):
        draft, target = models.drafts[numbers[:index]], models.targets[numbers[:index]]
        if not accepts(draws(chance)(index), float(target[number]), float(draft[number])):
            return index, residual(target, draft)
    return len(numbers), models.targets[numbers]


def rounds(models: Toy, rule: Rule) -> Mapping[Numbers, float]:
    """The probability of each run of tokens that a round can bring: drafts that stand, and one token."""

    def run(chance: Chance) -> Numbers:
        numbers = models.drawn(chance)
        accepted, probs = rule(models, numbers, chance)
        return (*numbers[:accepted], chance.at(Place(0, accepted), Role.RESAMPLE).categorical(probs))

    return output_distribution(run)


def stood(models: Toy, rule: Rule) -> float:
    """Drafts that stand, on average."""
    return sum(probability * (len(run) - 1) for run, probability in rounds(models, rule).items())


def off(models: Toy, rule: Rule) -> float:
    """The largest difference between a round's distribution, gone on with as the target would, and the target's."""
    found: defaultdict[Numbers, float] = defaultdict(float)
    for run, probability in rounds(models, rule).items():
        for whole, share in continued(models, run):
            found[whole] += probability * share
    wanted = dict(continued(models, ()))
    return max(abs(found[run] - wanted.get(run, 0.0)) for run in {*found, *wanted})


def continued(models: Toy, run: Numbers) -> Iterator[tuple[Numbers, float]]:
    """All ways for the target to go on, up to as many tokens as a round can bring, and their probabilities."""
    # Behind a token that cannot be drafted all answers are alike: what follows does not hang on how it was reached.
    if run not in models.targets:
        yield run, 1.0
        return
    for number, probability in enumerate(models.targets[run].tolist()):
        for whole, share in continued(models, (*run, number)):
            yield whole, probability * share


TOYS = st.builds(
    toy,
    seed=st.integers(0, 10**6),
    longest=st.integers(1, 3),
    common=st.integers(1, 3),
    outside=st.integers(0, 1),
    sharpness=st.sampled_from([0.0, 0.4, 1.0, 3.0]),
    zeros=st.booleans(),
)


@examples(60)
@given(TOYS)
@example(toy(1, 3, 3, 1, 1.0, zeros=False))
@example(toy(1, 0, 2, 1, 1.0, zeros=False))
def test_a_round_has_the_distribution_of_the_target(models: Toy) -> None:
    assert off(models, by_block) < 1e-12


@examples(40)
@given(TOYS, st.integers(0, 10**6))
def test_where_drafting_stops_may_hang_on_the_drafts(models: Toy, seed: int) -> None:
    """As an automatic number of drafts does, and an end of sequence."""
    source = np.random.default_rng(seed)
    stopping = replace(models, stops=frozenset(run for run in models.drafts if source.random() < 0.4))
    assert off(stopping, by_block) < 1e-12


@examples(60)
@given(TOYS)
@example(toy(1, 3, 3, 1, 1.0, zeros=False))
def test_no_fewer_drafts_stand_than_one_by_one(models: Toy) -> None:
    assert off(models, by_token) < 1e-12
    assert stood(models, by_block) >= stood(models, by_token) - 1e-12


def test_more_drafts_stand_as_in_the_paper() -> None:
    """Draft (2/3, 1/3), target (1/3, 2/3), two drafts, whatever was before: 11/9 stand, not 10/9 (arXiv 2403.10444, 2)."""
    draft, target = np.array([2 / 3, 1 / 3]), np.array([1 / 3, 2 / 3])
    runs = [run for length in range(3) for run in product(range(2), repeat=length)]
    models = Toy(dict.fromkeys(runs, draft), dict.fromkeys(runs, target), 2)
    assert stood(models, by_token) == pytest.approx(10 / 9)
    assert stood(models, by_block) == pytest.approx(11 / 9)


def test_of_one_draft_both_rules_are_the_same() -> None:
    for seed in range(20):
        models = toy(seed, 1, 3, 1, 1.0, zeros=True)
        assert rounds(models, by_block) == pytest.approx(rounds(models, by_token))


def test_how_far_is_reached() -> None:
    """By hand: a draft of half the target's probability, then one of twice, then one that the target rules out."""
    target = np.array([0.5, 0.25, 0.25, 0.0])
    drafts = [np.array([0.25, 0.75, 0.0, 0.0]), np.array([0.25, 0.5, 0.25, 0.0]), np.array([0.25, 0.25, 0.25, 0.25])]
    assert judged([0, 1, 3], drafts, lambda index: target) == Block((1.0, 1.0, 0.5, 0.0), (1.0, 0.0, 0.0))
    # S_1 = .25, p_1 = 1; S_2 = sum of max(.5 target - draft, 0) = 0.
    assert judged([1, 0], [drafts[0], drafts[1]], lambda index: target).reached == (1.0, 1 / 3, 2 / 3)


def test_what_is_ruled_out_is_not_asked_about() -> None:
    asked = []

    def target(index: int) -> Probs:
        asked.append(index)
        return np.array([0.0, 1.0])

    even = np.array([0.5, 0.5])
    assert judged([1, 0, 1, 1], [even] * 4, target) == Block((1.0, 1.0, 0.0), (1.0, 0.0))
    assert asked == [0, 1]
    assert judged([], [], target) == Block((1.0,), ())


class Least:
    """The smallest uniform number that there is: 0."""

    def bernoulli(self, probability: float) -> bool:
        return probability > 0.0

    def categorical(self, probs: Probs) -> int:
        raise NotImplementedError


class Largest(Least):
    """The largest: 1 - 2^-53."""

    def bernoulli(self, probability: float) -> bool:
        return probability == 1.0


def test_a_number_that_is_equal_is_not_below() -> None:
    """u = 0 lets nothing stand that has no chance (`u <= h` would), and 1 is above every u."""
    assert Block((1.0, 0.5, 0.0), (0.0, 0.0)).accepted(lambda index: Least()) == 0
    assert Block((1.0, 1.0, 1.0), (0.5, 1.0)).accepted(lambda index: Largest()) == 2
    assert Block((1.0, 1.0, 0.5), (1.0, 0.5)).accepted(lambda index: Largest()) == 1
    assert Block((1.0,), ()).accepted(lambda index: Least()) == 0


# Faults that were made elsewhere, or that are near: each is seen.


def one_number(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """All drafts are tested with the same u."""

    def count(block: Block) -> int:
        cuts = sorted({0.0, *block.held, 1.0})
        place = chance.at(Place(0), Role.ACCEPT).categorical(np.diff(cuts))
        middle = (cuts[place] + cuts[place + 1]) / 2
        return max((index + 1 for index, held in enumerate(block.held) if middle < held), default=0)

    return settled(models, numbers, block_of(models, numbers), count)


def first_that_falls(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """One after the other, up to the first whose test fails."""

    def count(block: Block) -> int:
        for index, held in enumerate(block.held):
            if not draws(chance)(index).bernoulli(held):
                return index
        return len(block.held)

    return settled(models, numbers, block_of(models, numbers), count)


def unscaled(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """The correction comes from max(target - draft, 0)."""
    block = block_of(models, numbers)
    return settled(
        models, numbers, replace(block, reached=(1.0,) * len(block.reached)), lambda _: block.accepted(draws(chance))
    )


def uncapped(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """The product of the ratios is not held at 1."""
    ratios = [models.targets[numbers[:index]][number] / probs[number] for index, number, probs in drafted(models, numbers)]
    reached = np.cumprod([1.0, *ratios])
    held = [
        mass / (mass + 1.0 - min(1.0, reached[index])) if (mass := rest(models, numbers[:index], reached[index])) > 0 else 0.0
        for index in range(1, len(numbers))
    ]
    block = Block(tuple(reached.tolist()), (*held, min(1.0, reached[-1])))
    return settled(models, numbers, block, lambda block: block.accepted(draws(chance)))


def last_as_any_other(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """Behind the last draft, as if another followed: h_N = S_N / (S_N + 1 - p_N)."""
    block = block_of(models, numbers)
    mass = rest(models, numbers[: len(block.held)], block.reached[-1])
    last = mass / (mass + 1.0 - block.reached[-1]) if mass > 0 else 0.0
    return settled(models, numbers, replace(block, held=(*block.held[:-1], last)), lambda one: one.accepted(draws(chance)))


def at_its_own_place(models: Toy, numbers: Numbers, chance: Chance) -> tuple[int, Probs]:
    """S_i is taken at draft i, and not behind it."""
    block, held = block_of(models, numbers), []
    for index in range(1, len(block.held)):
        mass = rest(models, numbers[: index - 1], block.reached[index])
        held.append(mass / (mass + 1.0 - block.reached[index]) if mass > 0 else 0.0)
    return settled(models, numbers, replace(block, held=(*held, block.held[-1])), lambda one: one.accepted(draws(chance)))


def drafted(models: Toy, numbers: Numbers) -> Iterator[tuple[int, int, Probs]]:
    for index, (number, probs) in enumerate(zip(numbers, models.probs(numbers), strict=True)):
        yield index, number, probs


def rest(models: Toy, run: Numbers, reached: float) -> float:
    """S behind these drafts."""
    target = reached * models.targets[run]
    target[: len(models.drafts[run])] -= models.drafts[run]
    return float(target.clip(min=0.0).sum())


@pytest.mark.parametrize("fault", [one_number, first_that_falls, unscaled, uncapped, last_as_any_other, at_its_own_place])
def test_a_fault_is_seen(fault: Rule) -> None:
    several = [toy(seed, 3, 2, 1, 1.0, zeros=False) for seed in range(1, 6)]
    assert max(off(models, by_block) for models in several) < 1e-12
    assert max(off(models, fault) for models in several) > 1e-3
