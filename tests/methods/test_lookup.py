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
from antiphon.device.answer import Result
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.drafter import Guess
from antiphon.methods.lookup import Lookup
from antiphon.methods.speculative.coupled import COUPLED, CoupledCloud, CoupledDevice, CoupledOptions
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair
from antiphon.testing.exactness import FEW_BRANCHES, assert_exact
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


@pytest.mark.parametrize("lookup", ["on", "auto"])
def test_answers_are_exact_to_the_last_digit(lookup: str) -> None:
    assert_exact(COUPLED, COUPLED.options_from({**FEW_BRANCHES, "lookup": lookup}))


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
@pytest.mark.parametrize("given", [{"patience": "lockstep"}, {}], ids=["lockstep", "stream"])
def test_an_edit_brings_twice_the_tokens_a_pass_and_is_the_text_of_cloud(temperature: float, given: dict) -> None:
    given = {name: float("inf") for name in given}
    without, found = (edited("coupled", temperature, lookup=lookup, **given) for lookup in ("off", "auto"))
    assert [one.token_ids for one in found] == [one.token_ids for one in edited("cloud", temperature)]
    assert tokens_a_pass(found) > 2 * tokens_a_pass(without)
    assert seconds(found) < seconds(without) / 2


def test_two_tokenizers_do_so_too() -> None:
    sampling, options = SamplingParams(temperature=0.0), {"lookup": "off"}
    trial = Trial("coupled", parse_link("rtt=10ms"), parse_compute("a100-7b"), sampling, options, max_tokens=160)
    ends = EditingModel(order=1), EditingModel(order=2, seed=2, knows=0.55)
    without = attempt(trial, *ends, prompts())
    found = attempt(replace(trial, options={}), *ends, prompts())
    assert [one.token_ids for one in found] == [one.token_ids for one in without]
    assert tokens_a_pass(found) > 2 * tokens_a_pass(without)
    assert WITHOUT_DOCUMENTS["coupled"].options().lookup == "auto"
