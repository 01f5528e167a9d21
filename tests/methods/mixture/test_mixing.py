"""Every token of a mixture is what its mark says: the dense decision on decoded scores, or the device's own (METHODS 4)."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from antiphon.config import Request, SamplingParams
from antiphon.methods.effects import Kind
from support.examples import examples
from support.mixtures import Reader, World, answer, dense_answer, question, require_true, world

STEPWISE = ["concord", "concord-nosystem", "concord-nocomm", "drdg-tw"]


PATIENT = ["concord-nosystem", "drdg-tw"]
"""Those that wait for the evidence of every step."""


SLOW = [HealthCheck.too_slow]
"""A model takes some milliseconds to make."""


OPTIONS = st.fixed_dictionaries(
    {
        "bound": st.sampled_from(["next", "global"]),
        "certificate": st.sampled_from(["both", "upper"]),
        "first": st.sampled_from([1, 2, 8, 256]),
        "min_share": st.sampled_from([0.0, 0.2, 1.0]),
        "ids_per_question": st.sampled_from([1, 4, 256]),
        "questions": st.sampled_from([0, 1, 2, 9]),
        "chunk": st.sampled_from([1, 8, 64, 4096]),
        "chunks": st.sampled_from([0, 1, 4]),
        "delta": st.sampled_from([0.0, 0.0, 0.1, 3.0]),
        "epsilon": st.sampled_from([0.01, 0.05, 0.9]),
        "gate": st.sampled_from([1.0, math.inf]),
        "ahead": st.sampled_from([1, 2, 3, 8, 64]),
    }
)


WAITING = st.fixed_dictionaries(
    {
        "timeout": st.sampled_from([0.0, 0.001, 0.02, 0.1]),
        "short_timeout": st.sampled_from([0.0, 0.01]),
        "debt_threshold": st.sampled_from([0.0, 1.0, 3.0, 9.0]),
        "debt_repayment": st.sampled_from([0.5, 1.0]),
        "timeout_decay": st.sampled_from(["constant", "linear", "halving"]),
        "realign": st.sampled_from(["soft", "hard"]),
        "undrafted": st.sampled_from(["dense", "dense", "local"]),
    }
)


MASSES = st.sampled_from([-math.inf, -2.0, 0.0, 0.5, 3.0])


LINKS = st.builds(
    lambda rtt, down, jitter: f"rtt={rtt}ms,up=10Mbit,down={down},jitter={jitter}ms,handshakes=0",
    st.sampled_from([0, 5, 50, 400]),
    st.sampled_from(["100Mbit", "300kbit", "30kbit"]),
    st.sampled_from([0, 5, 80]),
)


def asked(method: str, temperature: float, tokens: int, seed: int, options: dict[str, Any]) -> Request:
    return question(method, temperature=temperature, tokens=tokens, seed=seed, **options)


REQUESTS = st.builds(
    lambda method, temperature, tokens, seed, options, waiting: asked(method, temperature, tokens, seed, options | waiting),
    st.sampled_from(["concord", "concord", *STEPWISE]),
    st.sampled_from([0.0, 0.0, 0.7, 1.3]),
    st.sampled_from([1, 2, 12, 24]),
    st.integers(0, 99),
    OPTIONS,
    WAITING,
)


@st.composite
def worlds(draw: st.DrawFn, clouds: int) -> World:
    """Models that agree much or little, sharp or flat; documents that weigh much, little or nothing; any links."""
    shape = {
        "agree": draw(st.sampled_from([0.3, 0.6, 0.8, 1.0])),
        "sharpness": draw(st.sampled_from([1.0, 4.0, 10.0])),
        "end": draw(st.sampled_from([-9.0, -3.0, 2.0])),
    }
    seconds = [draw(st.sampled_from([0.001, 0.015, 0.05])) for _ in range(2)]
    masses = tuple(draw(MASSES) for _ in range(clouds + 1))
    links = [draw(LINKS) for _ in range(clouds)]
    return world(
        draw(st.integers(0, 999)), clouds, masses=masses, links=links, draft_s=seconds[0], verify_s=seconds[1], **shape
    )


@pytest.mark.medium
@examples(70, suppress_health_check=SLOW)
@given(worlds(1), REQUESTS)
def test_with_one_cloud(there: World, request: Request) -> None:
    require_true(there, request, answer(there, request))


@examples(50, suppress_health_check=SLOW)
@given(worlds(2), REQUESTS)
def test_with_two_clouds(there: World, request: Request) -> None:
    require_true(there, request, answer(there, request))


@pytest.mark.slow
@examples(400, suppress_health_check=SLOW)
@given(st.one_of(worlds(1), worlds(2), worlds(3)), REQUESTS)
def test_with_any_clouds(there: World, request: Request) -> None:
    require_true(there, request, answer(there, request))


@examples(40, suppress_health_check=SLOW)
@given(st.integers(1, 2).flatmap(worlds), st.sampled_from([0.0, 0.7]), OPTIONS, st.sampled_from(PATIENT))
def test_who_waits_for_all_writes_the_dense_answer(
    there: World, temperature: float, options: dict[str, Any], method: str
) -> None:
    """Token by token and as a whole: nothing is decided alone, whatever the links and the settings."""
    request = asked(method, temperature, 12, 3, options)
    told = answer(there, request)
    assert Kind.LOCAL not in told.kinds
    assert told.numbers == dense_answer(there, request, range(len(there.clouds)))


@pytest.mark.core(12)
@pytest.mark.parametrize("masses", [(0.0, 1e300), (1e300, 0.0), (0.0, -1e300), (-math.inf, -math.inf), (-math.inf, 0.0)])
@pytest.mark.parametrize("method", STEPWISE)
def test_weights_at_the_border_of_numbers(method: str, masses: tuple[float, float]) -> None:
    """One end alone decides, or all alike; and where only the cloud has documents the device still has a token of its own."""
    there, request = world(3, masses=masses), question(method, tokens=12, timeout=0.03)
    require_true(there, request, answer(there, request))


def test_off_is_off_where_an_end_weighs_nothing() -> None:
    """Infinity times a weight of 0 must not make the device certain: its first and its last token would be at once."""
    for seed in range(3):
        there = world(seed, 2, masses=(2.0, 2.0, -math.inf))
        for end in (there.device, *there.clouds):
            end.model = Favouring(end.model)
        request = question("concord", gate=math.inf, tokens=12)
        told = answer(there, request)
        require_true(there, request, told)
        assert Kind.CERTAIN not in told.kinds


class Favouring(Reader):
    """Likes the first and the last token."""

    def __init__(self, model: Reader) -> None:
        super().__init__(model._seed, end=-99.0)

    def logits(self, tokens: Sequence[int]) -> Any:
        scores = super().logits(tokens).copy()
        scores[[0, len(scores) - 2]] += 8.0
        return scores


@pytest.mark.parametrize("packing", ["dense", "topp"])
def test_greedy_dragon_is_dense(packing: str) -> None:
    for seed in range(4):
        there = world(seed)
        request = question("dragon", packing=packing, packing_top_p=1.0)
        assert answer(there, request).numbers == dense_answer(there, request)


@pytest.mark.core(2)
@pytest.mark.parametrize("method", STEPWISE)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_sampling_parameter(method: str, temperature: float) -> None:
    """Both ends apply them to their own distribution; what is cut off at one end may still be likely at the other."""
    shaped = [
        {"top_k": 5},
        {"top_p": 0.5},
        {"min_p": 0.2},
        {"repetition_penalty": 1.4, "presence_penalty": 0.5, "frequency_penalty": 0.5},
        {"logit_bias": ((3, 2.5), (70, -4.0))},
    ]
    for seed, parameters in enumerate(shaped):
        sampling = SamplingParams(temperature=temperature, **parameters)
        there, request = world(seed), question(method, sampling=sampling, tokens=12)
        require_true(there, request, answer(there, request))


@pytest.mark.medium
def test_the_cases_that_matter_do_occur() -> None:
    """Of every mark some, questions, chunks, forced completions and drafts that were taken: or the tests above say little."""
    kinds, efforts, drafted = Counter(), Counter(), 0
    for seed in range(10):
        there = world(seed, masses=(0.6, 0.5), agree=0.6, sharpness=6.0)
        for bound, chunks in (("next", 1), ("global", 1), ("global", 0)):
            request = question(
                "concord",
                tokens=32,
                first=2,
                ids_per_question=1,
                questions=1,
                chunk=2,
                chunks=chunks,
                timeout=0.06,
                bound=bound,
            )
            told = answer(there, request)
            kinds.update(told.kinds)
            for step in told.steps:
                if step.consulted is not None and step.consulted.effort is not None:
                    drafted += step.consulted.drafted
                    effort = step.consulted.effort
                    efforts.update(questions=effort.questions, chunks=effort.chunks, forced=effort.everything)
    assert all(kinds[kind] > 10 for kind in (Kind.LOCAL, Kind.CERTAIN, Kind.CONFIRMED, Kind.CHANGED)), kinds
    assert all(efforts[what] > 10 for what in ("questions", "chunks", "forced")), efforts
    assert drafted > 10


@pytest.mark.medium
def test_every_bound_and_count_gives_the_same_answer() -> None:
    there, answers = world(5), set()
    for temperature in (0.0, 0.7):
        for bound in ("next", "global"):
            for first, asked_for, rounds in [(1, 1, 0), (1, 1, 2), (2, 4, 1), (8, 4, 2), (64, 4, 2)]:
                certificate = "upper" if (first + rounds) % 2 else "both"
                options = {
                    "bound": bound,
                    "certificate": certificate,
                    "first": first,
                    "ids_per_question": asked_for,
                    "questions": rounds,
                }
                told = answer(there, question("concord-nosystem", temperature=temperature, **options))
                answers.add((temperature, tuple(told.numbers)))
    assert len(answers) == 2


LETTER = {
    "bound": "global",
    "certificate": "upper",
    "gate": math.inf,
    "realign": "hard",
    "undrafted": "local",
    "min_share": 0.0,
}
"""CONCORD as it is printed: nothing of ours."""


@pytest.mark.medium
@pytest.mark.parametrize(("method", "departs"), [("concord", True), ("concord-nocomm", True), ("concord-nosystem", False)])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_to_the_letter_only_algorithm_1_departs_from_the_dense_token(method: str, departs: bool, temperature: float) -> None:
    """Where the dense token is neither draft it submits the device's own; every other consulted step is dense. Both occur.

    Without waiting control there is no algorithm 1, and every token is dense.
    """
    departed, consulted = 0, 0
    for seed in range(12):
        there = world(seed, masses=(0.6, 0.5), sharpness=2.0)
        request = question(method, temperature=temperature, tokens=24, timeout=0.3, **LETTER)
        told = answer(there, request)
        require_true(there, request, told)
        departed += sum(step.kind is Kind.LOCAL for step in told.steps if step.is_consulted)
        consulted += sum(step.is_consulted for step in told.steps)
    assert consulted > 100
    assert (2 < departed < consulted / 4) if departs else departed == 0


@pytest.mark.medium
def test_ours_departs_nowhere() -> None:
    """The same steps, where the dense token is neither draft: both ends take it."""
    for seed in range(12):
        there = world(seed, masses=(0.6, 0.5), sharpness=2.0)
        request = question("concord", tokens=24, timeout=0.3)
        told = answer(there, request)
        assert not any(step.kind is Kind.LOCAL for step in told.steps if step.is_consulted)


def test_noise_is_that_of_coupled_drafting_and_of_the_seed() -> None:
    there = world(5)
    first, again, other = (
        answer(there, question("concord-nosystem", temperature=1.0, seed=seed)).numbers for seed in (1, 1, 2)
    )
    assert first == again != other


def test_push_asks_for_no_ids() -> None:
    there = world(8)
    request = question("concord-nosystem", tokens=32, questions=0, first=1, chunk=4)
    told = answer(there, request)
    efforts = [step.consulted.effort for step in told.steps if step.consulted]
    assert sum(effort.questions + effort.ids for effort in efforts) == 0
    assert sum(effort.chunks for effort in efforts) > 5
    assert told.numbers == dense_answer(there, request)


def test_a_bound_from_below_spares_questions() -> None:
    """The option reaches the certificate: `upper` must know a token's score before it is settled, so it asks more."""
    asked = {}
    for certificate in ("both", "upper"):
        told = [
            answer(
                world(seed, masses=(1.0, 0.5)), question("concord-nosystem", first=1, gate=math.inf, certificate=certificate)
            )
            for seed in range(4)
        ]
        efforts = [step.consulted.effort for one in told for step in one.steps if step.consulted and step.consulted.effort]
        asked[certificate] = sum(effort.questions + effort.chunks for effort in efforts)
    assert 0 < asked["both"] < asked["upper"]
