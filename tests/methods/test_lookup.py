"""What was said before is drafted again without a pass: where that is likelier to stand, and nowhere else."""

import random
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.draft_length import Known
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.device.answer import Result
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import Method
from antiphon.methods.drafter import Guess
from antiphon.methods.lookup import Found, Lookup, join
from antiphon.methods.speculative.coupled import COUPLED, CoupledCloud, CoupledDevice, CoupledOptions
from antiphon.methods.speculative.coupled_tree import COUPLED_TREE, CoupledTreeCloud, CoupledTreeDevice, CoupledTreeOptions
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.testing.exactness import FEW_BRANCHES, assert_exact
from antiphon.testing.lockstep import run_pair
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from methods.editing import CODE, TEXT, EditingModel, edit, page_of
from methods.speculative.ahead import PLAIN, alike, reference
from methods.speculative.test_ahead_orders import interleaved
from support.examples import examples

SAID = list(range(40))


def looking(prompt: list[int], wanted: str = "auto", size: int = 1000) -> Lookup:
    """One that has read a prompt."""
    made = Lookup(lambda: prompt, size, wanted)
    made.read()
    return made


def number(guess: Guess | None) -> int | None:
    """What is guessed."""
    return None if guess is None else guess.number


# What is guessed.


def test_what_followed_a_long_match_is_guessed_and_after_it_what_followed_then() -> None:
    lookup, line = looking([*SAID, 99, *SAID[:12]]), list[Guess]()
    for wanted in SAID[12:]:
        guess = lookup.guess(line)
        assert number(guess) == wanted
        assert guess is not None
        assert isinstance(guess.entropy, Known)
        line.append(guess)
    assert guess.entropy.chance > 0.9
    assert number(lookup.guess(line)) == 99


def test_after_a_short_match_the_model_is_asked_unless_it_falls_always() -> None:
    lookup = looking([*SAID, 99, *SAID[:2]])
    assert lookup.guess([]) is None
    for _ in range(100):
        lookup.tested([], Guess(7, 1.0))
    assert number(lookup.guess([])) == 2
    assert number(looking([*SAID, 99, *SAID[:2]], "on").guess([])) == 2


def test_drafts_that_were_looked_up_say_nothing_of_the_model() -> None:
    lookup = looking([*SAID, 99, *SAID[:5]])
    for _ in range(100):
        lookup.tested([Guess(7, Known(0.9))], Guess(8, Known(0.9)))
    assert lookup.guess([]) is None
    for _ in range(100):
        lookup.tested([Guess(7, 0.1)], Guess(8, 0.1))
    assert number(lookup.guess([])) == 5, "a model that falls every second time"


def test_it_is_dropped_where_text_repeats_and_goes_on_otherwise_and_taken_again() -> None:
    lookup, source = looking([]), random.Random(1)
    same = [1000 + step for step in range(10)]
    for _ in range(10):
        lookup.commit([*same, source.randrange(1000)])
    lookup.commit(same)
    assert lookup.guess([]) is None
    for _ in range(12):
        lookup.commit([7, *same])
    assert number(lookup.guess([])) == 7


def test_a_token_that_is_not_common_is_not_guessed() -> None:
    text = [*SAID, 99, *SAID[:10]]
    assert number(looking(text, size=11).guess([])) == 10
    assert looking(text, "on", size=10).guess([]) is None


def test_nothing_is_found_before_the_prompt_is_read_nor_where_it_is_off() -> None:
    lookup = Lookup(lambda: [*SAID, 99], 1000, "on")
    lookup.commit(SAID[:10])
    assert lookup.guess([]) is None
    lookup.read()
    lookup.read()
    assert number(lookup.guess([])) == 10
    assert looking([*SAID, 99, *SAID[:10]], "off").guess([]) is None


# The text is that of `cloud`.


@pytest.mark.parametrize("method", [COUPLED, COUPLED_TREE], ids=lambda method: method.name)
@pytest.mark.parametrize("lookup", ["on", "auto"])
def test_answers_are_exact_to_the_last_digit(method: Method, lookup: str) -> None:
    assert_exact(method, method.options_from({**FEW_BRANCHES, "expansion": "", "nodes": 3, "lookup": lookup}))


@pytest.mark.parametrize("pieces", [(SHARED, SHARED), (SMALL, LARGE)])
@pytest.mark.parametrize("nodes", [1, 4, 12])
def test_a_tree_with_sure_children_gives_the_same_answer(pieces: tuple, nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are not read, behind them nodes that are, at all depths."""
    monkeypatch.setattr("antiphon.methods.speculative.stream.tree_drafts.SURE", 0.4)
    for seed in range(30):
        pair, chance, options = Pair(*pieces, seed=seed), PhiloxChance(seed), CoupledTreeOptions(nodes=nodes)
        device, cloud = pair.sides(40, PLAIN, chance)
        run_pair(CoupledTreeDevice(device, options).run(), CoupledTreeCloud(cloud, options).run())
        assert device.transcript.numbers == cloud.transcript.numbers == reference(pair, PLAIN, chance, 40)


@examples(200)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(0, 8), st.floats(0.0, 1.0))
def test_what_was_looked_up_joins_the_children_of_the_model(weights: list[float], token: int, chance: float) -> None:
    total = max(1.0, sum(weights))
    before = sorted((weight / total for weight in weights), reverse=True)
    numbers, after = list(range(len(before))), list(before)
    join(numbers, after, Found(token, chance))
    place = numbers.index(token)
    assert numbers == [*range(len(before)), *([] if token < len(before) else [token])]
    assert sum(after) <= 1.0 + 1e-9
    if token >= len(before):
        assert after[place] == pytest.approx(chance * (1.0 - before[0])), "the model says something else"
    elif token == 0:
        assert 1.0 - after[0] == pytest.approx((1.0 - chance) * (1.0 - before[0])), "right if either is"
    assert after[place] >= (before[token] if token < len(before) else 0.0) - 1e-12
    others = [(old, new) for at, (old, new) in enumerate(zip(before, after, strict=False)) if at != place]
    assert all(new <= old + 1e-12 for old, new in others)


@examples(150)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0, 1, 3]),
    st.integers(1, 24),
    st.sampled_from([0.0, 0.5, 0.9]),
    st.sampled_from(["shared", "different", "alike"]),
    st.sampled_from([-1.0, 0.0, float("inf")]),
)
def test_any_order_of_events_gives_the_same_answer(
    seed: int, draft_length: int, tokens: int, lateness: float, which: str, patience: float
) -> None:
    pair = {"shared": Pair(SHARED, SHARED), "different": Pair(SMALL, LARGE), "alike": alike()}[which]
    chance, options = PhiloxChance(seed), CoupledOptions(draft_length, patience=patience, lookup="on")
    device, cloud = pair.sides(tokens, PLAIN, chance)
    interleaved(CoupledDevice(device, options).run(), CoupledCloud(cloud, options).run(), random.Random(seed), lateness)
    assert device.transcript.numbers == cloud.transcript.numbers == reference(pair, PLAIN, chance, tokens)


# What it brings, in virtual time.


@cache
def prompts() -> list[str]:
    """Edits of code and of text."""
    renamed = (
        (CODE, "method", "procedure"),
        (CODE, "cloud", "server"),
        (TEXT, "drafts", "guesses"),
        (TEXT, "tokens", "pieces"),
    )
    return [edit(page_of(path, 900), old, new) for path, old, new in renamed]


def edited(method: str, temperature: float, **options: object) -> list[Result]:
    """Answers to them, of a device that knows every second token, 10 ms away."""
    sampling = SamplingParams(temperature=temperature)
    trial = Trial(method, parse_link("rtt=10ms"), parse_compute("a100-7b"), sampling, options, max_tokens=160)
    return attempt(trial, EditingModel(), EditingModel(seed=2, knows=0.55), prompts())


def tokens_a_pass(results: list[Result]) -> float:
    """Of all answers."""
    passes = sum(result.closed.passes for result in results if result.closed is not None)
    return sum(len(result.token_ids) for result in results) / passes


def seconds(results: list[Result]) -> float:
    """Until their last tokens."""
    return sum(result.answer.emissions[-1].time - result.answer.started for result in results)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("method", "patience"), [("coupled", LOCKSTEP), ("coupled", AUTO), ("coupled-tree", LOCKSTEP), ("coupled-tree", AUTO)]
)
def test_an_edit_brings_twice_the_tokens_a_pass_and_is_the_text_of_cloud(
    method: str, patience: float, temperature: float
) -> None:
    without, found = (edited(method, temperature, lookup=lookup, patience=patience) for lookup in ("off", "auto"))
    assert [one.token_ids for one in found] == [one.token_ids for one in edited("cloud", temperature)]
    assert tokens_a_pass(found) > 2 * tokens_a_pass(without)
    assert seconds(found) < seconds(without) / 2


@pytest.mark.parametrize("patience", [LOCKSTEP, AUTO])
@pytest.mark.parametrize("context", [20, 1300])
def test_a_device_whose_context_is_full_looks_up_all_the_same(context: int, patience: float) -> None:
    """The prompt does not fit, or fits and the answer does not."""
    options = {"patience": patience}
    trial = Trial("coupled", parse_link("rtt=10ms"), parse_compute("a100-7b"), SamplingParams(), options, max_tokens=160)
    device = EditingModel(seed=2, knows=0.0)
    device.context_length = context
    found = attempt(trial, EditingModel(), device, prompts())
    assert tokens_a_pass(found) > 3.0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_device_that_is_slower_than_the_cloud_looks_up_all_the_same(temperature: float) -> None:
    sampling = SamplingParams(temperature=temperature)
    trial = Trial("coupled", parse_link("rtt=10ms"), parse_compute("paper,draft=80ms"), sampling, {}, max_tokens=160)
    found = attempt(trial, EditingModel(), EditingModel(seed=2, knows=0.55), prompts())
    assert tokens_a_pass(found) > 3.0


def test_a_line_that_stands_to_the_end_keeps_nobody_waiting() -> None:
    """The cloud goes 64 tokens past what it knows to be known, and a line that never falls begins no other one."""
    trial = Trial("coupled", parse_link("rtt=10ms"), parse_compute("a100-7b"), SamplingParams(temperature=0.0), {}, 400)
    found = attempt(trial, EditingModel(), EditingModel(seed=2), [edit(page_of(TEXT, 600), "nothing-like-it", "anything")])
    assert len(found[0].token_ids) > 300
    assert seconds(found) < 400 / 60


def test_two_tokenizers_do_so_too() -> None:
    sampling, options = SamplingParams(temperature=0.0), {"lookup": "off"}
    trial = Trial("coupled", parse_link("rtt=10ms"), parse_compute("a100-7b"), sampling, options, max_tokens=160)
    ends = EditingModel(order=1), EditingModel(order=2, seed=2, knows=0.55)
    without = attempt(trial, *ends, prompts())
    found = attempt(replace(trial, options={}), *ends, prompts())
    assert [one.token_ids for one in found] == [one.token_ids for one in without]
    assert tokens_a_pass(found) > 2 * tokens_a_pass(without)
    assert WITHOUT_DOCUMENTS["coupled"].options().lookup == "auto"
