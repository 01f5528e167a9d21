"""On every consulted step the token is the dense one, whatever the scores, the bounds, the options and the ends."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.consult import (
    AskAll,
    AskChunk,
    AskScores,
    Bound,
    ConsultOptions,
    Question,
    Replies,
    Settled,
    consult,
)
from antiphon.core.mixture.scores import SCORES, SUMS, ZERO, Codes, Report, StepScores, Values
from antiphon.core.mixture.weights import dense_token, weights_of
from antiphon.core.noise import Noise
from antiphon.errors import UsageError
from support.examples import examples

STYLES = ("ties", "near", "spread", "sharp", "points")


def scores_of(seed: int, size: int, style: str) -> Values:
    """Numbers like probabilities: few different ones, neighbours on the grid, or probs of either sharpness, with zeros."""
    random = np.random.default_rng(seed)
    if style in ("spread", "sharp"):
        scores = random.normal(size=size) * (1.0 if style == "spread" else 6.0)
        return np.exp(scores - np.logaddexp.reduce(scores))
    steps = {"ties": 1500, "near": 1, "points": 9000}[style]
    values = SCORES.values((1000 + steps * random.integers(0, 4, size)).astype(np.uint16))
    values[random.random(size) < random.choice([0.0, 0.3, 0.95])] = 0.0
    return values


def noise_of(seed: int, size: int, style: str) -> Values | None:
    if style == "greedy":
        return None
    uniform = Noise(seed).uniform(7, np.arange(size, dtype=np.int32))
    return -np.log(uniform) if style == "sampled" else np.exp2(np.floor(4 * uniform))


class Ends:
    """Honest remote ends, and what was asked of them. From a given round on, one of them is silent."""

    def __init__(self, ends: Sequence[StepScores], options: ConsultOptions, silent_from: int = 10**9) -> None:
        self.ends, self.options, self.silent_from = ends, options, silent_from
        self.asked: list[Question] = []

    def reply(self, number: int, question: Question) -> Report | Codes:
        match question:
            case AskScores(tokens):
                return self.ends[number].of(tokens)
            case AskChunk(count):
                return self.ends[number].chunk(count)
            case AskAll():
                return self.ends[number].codes

    def settle(self, certificate: Certificate) -> Settled:
        for number, end in enumerate(self.ends):
            certificate.absorb(number, end.strongest(self.options.first))
        talk = consult(certificate, self.options)
        try:
            questions, rounds = next(talk), 0
            while True:
                self.asked += questions.values()
                gone = {0} if rounds >= self.silent_from else set()
                replies: Replies = {number: self.reply(number, questions[number]) for number in questions.keys() - gone}
                questions, rounds = talk.send(replies), rounds + 1
        except StopIteration as stop:
            return stop.value


OPTIONS = st.builds(
    ConsultOptions,
    first=st.sampled_from([1, 2, 3, 4, 8, 40]),
    ids_per_question=st.sampled_from([1, 2, 4, 16]),
    questions=st.integers(0, 3),
    epsilon=st.sampled_from([0.001, 0.05, 0.5, 0.99]),
    delta=st.sampled_from([0.0, 0.0, 2.0**-11, 0.05, 1.0]),
    chunk=st.sampled_from([1, 5, 64]),
    chunks=st.integers(0, 3),
    bound=st.sampled_from(["next", "global"]),
    certificate=st.sampled_from(["both", "upper"]),
)
SEEDS = st.integers(0, 2**40)
SIZES = st.one_of(st.integers(2, 6), st.integers(7, 60), st.sampled_from([300, 2000]))
MASSES = st.lists(st.sampled_from([0.0, 0.0, 0.7, -2.0, -9.0, 6.0, -229.0, 300.0, -np.inf]), min_size=2, max_size=3)
MODES = st.sampled_from(["greedy", "sampled", "sampled with ties"])


def distributions_of(seed: int, size: int, styles: Sequence[str], count: int) -> list[Values]:
    """Distributions of as many ends, some alike."""
    distributions = [scores_of(seed + number, size, styles[number]) for number in range(count)]
    if seed % 3 == 0:
        distributions[1] = np.where(np.random.default_rng(seed).random(size) < 0.9, distributions[0], distributions[1])
    return distributions


STEPS = given(SEEDS, SIZES, st.lists(st.sampled_from(STYLES), min_size=3, max_size=3), MASSES, MODES, OPTIONS)


@examples(400)
@STEPS
def test_the_token_is_the_dense_one(
    seed: int, size: int, styles: list[str], masses: list[float], mode: str, options: ConsultOptions
) -> None:
    _is_dense(seed, size, styles, masses, mode, options)


@pytest.mark.slow
@examples(5000)
@STEPS
def test_the_token_is_the_dense_one_many_times(
    seed: int, size: int, styles: list[str], masses: list[float], mode: str, options: ConsultOptions
) -> None:
    _is_dense(seed, size, styles, masses, mode, options)


def _is_dense(seed: int, size: int, styles: list[str], masses: list[float], mode: str, options: ConsultOptions) -> None:
    distributions, noise = distributions_of(seed, size, styles, len(masses)), noise_of(seed, size, mode)
    ends = Ends([StepScores(distribution, noise, options.bound) for distribution in distributions[1:]], options)
    settled = ends.settle(Certificate(distributions[0], masses, noise, known_only=options.certificate == "upper"))
    decoded = [distributions[0], *(SCORES.values(SCORES.codes(distribution)) for distribution in distributions[1:])]
    assert settled.token == dense_token(weights_of(masses), decoded, noise)
    _check_effort(settled, ends, options)
    event(f"questions {settled.effort.questions}, chunks {settled.effort.chunks}, everything {settled.effort.everything}")


FEW = st.integers(1, 2)
LITTLE_AT_A_TIME = st.builds(
    ConsultOptions,
    first=FEW,
    ids_per_question=FEW,
    questions=FEW,
    chunk=FEW,
    chunks=st.integers(0, 4),
    bound=st.sampled_from(["next", "global"]),
    certificate=st.sampled_from(["both", "upper"]),
)


@examples(400)
@given(SEEDS, st.integers(2, 5), st.integers(2, 3), LITTLE_AT_A_TIME)
def test_ties_of_a_few_tokens(seed: int, size: int, count: int, options: ConsultOptions) -> None:
    """Two different scores only, equal weights, a device that often has no say: most maxima are shared."""
    random = np.random.default_rng(seed)
    distributions = [SCORES.values(random.choice(np.array([900, 2900], dtype=np.uint16), size)) for _ in range(count)]
    distributions[0] *= random.integers(0, 2)
    ends = Ends([StepScores(distribution, None, options.bound) for distribution in distributions[1:]], options)
    settled = ends.settle(Certificate(distributions[0], [0.0] * count, known_only=options.certificate == "upper"))
    assert settled.token == dense_token(weights_of([0.0] * count), distributions)


def _check_effort(settled: Settled, ends: Ends, options: ConsultOptions) -> None:
    effort, remotes = settled.effort, len(ends.ends)
    assert settled.ends == tuple(range(remotes))
    assert effort.questions <= options.questions
    assert effort.chunks <= options.chunks
    assert effort.ids <= effort.questions * options.ids_per_question
    kinds = [type(question) for question in ends.asked]
    assert kinds.count(AskChunk) == effort.chunks * remotes
    assert kinds.count(AskAll) == effort.everything * remotes
    assert effort.questions <= kinds.count(AskScores) <= effort.questions * remotes


@examples(300)
@given(SEEDS, SIZES, st.lists(st.sampled_from(STYLES), min_size=3, max_size=3), MASSES, MODES, OPTIONS, st.integers(0, 4))
def test_an_end_that_falls_silent_midway(
    seed: int, size: int, styles: list[str], masses: list[float], mode: str, options: ConsultOptions, silent_from: int
) -> None:
    """The token is the dense one of those who stayed."""
    distributions, noise = distributions_of(seed, size, styles, len(masses)), noise_of(seed, size, mode)
    ends = Ends([StepScores(distribution, noise, options.bound) for distribution in distributions[1:]], options, silent_from)
    settled = ends.settle(Certificate(distributions[0], masses, noise, known_only=options.certificate == "upper"))
    stayed = [0, *(number + 1 for number in settled.ends)]
    decoded = [distributions[0], *(SCORES.values(SCORES.codes(distribution)) for distribution in distributions[1:])]
    expected = dense_token(weights_of([masses[end] for end in stayed]), [decoded[end] for end in stayed], noise)
    assert settled.token == expected


class TightLiar(StepScores):
    """Its bound is one step of the grid too small."""

    def _bound(self) -> int:
        return min(super()._bound() + 1, ZERO)


class LooseLiar(StepScores):
    """It says that nothing else is above 0."""

    def _bound(self) -> int:
        return ZERO


@pytest.mark.core(2)
@pytest.mark.parametrize("mode", ["greedy", "sampled with ties"])
@pytest.mark.parametrize(("liar", "least"), [(StepScores, 0), (TightLiar, 3), (LooseLiar, 20)])
def test_a_bound_that_does_not_hold_gives_wrong_tokens(liar: type[StepScores], least: int, mode: str) -> None:
    """So the tests above can see one."""
    wrong, options = 0, ConsultOptions(first=1)
    for seed in range(400):
        noise = noise_of(seed, 12, mode)
        distributions = [scores_of(seed, 12, "near"), scores_of(seed + 1000, 12, "near")]
        settled = Ends([liar(distributions[1], noise)], options).settle(Certificate(distributions[0], [0.0, 0.0], noise))
        wrong += settled.token != dense_token([0.5, 0.5], distributions, noise)
    assert (wrong >= least) if least else (wrong == 0)


def race_of(bound: Bound, sampled: bool, *, known_only: bool = False, slope: float = 1.6, mass: float = 0.6) -> list[Settled]:
    """Steps of two similar ends on a vocabulary of some size. slope: how peaked probs are. mass: of the device's documents."""
    steps, options = [], ConsultOptions(bound=bound)
    for seed in range(150):
        random = np.random.default_rng(seed)
        shared = random.permutation(4000) + 1.0
        distributions = []
        for _ in range(2):
            scores = -slope * np.log(shared) + random.normal(size=4000)
            distributions.append(np.exp(scores - np.logaddexp.reduce(scores)))
        noise = noise_of(seed, 4000, "sampled" if sampled else "greedy")
        certificate = Certificate(distributions[0], [mass, 0.0], noise, known_only=known_only)
        steps.append(Ends([StepScores(distributions[1], noise, bound)], options).settle(certificate))
    return steps


@pytest.mark.core(1)
@pytest.mark.parametrize("sampled", [False, True])
def test_most_steps_need_no_question(sampled: bool) -> None:
    """Of peaked distributions; and the paper's bound needs more."""
    ours, paper = race_of("next", sampled), race_of("global", sampled)
    at_once = [sum(step.effort.questions + step.effort.chunks == 0 for step in steps) for steps in (ours, paper)]
    assert at_once[0] >= 135
    assert at_once[1] < at_once[0]
    assert not any(step.effort.everything for step in ours)
    assert [step.token for step in ours] == [step.token for step in paper]


@pytest.mark.parametrize("sampled", [False, True])
def test_a_chunk_tightens_the_paper_s_bound_so_that_nothing_is_forced(sampled: bool) -> None:
    """Of steps that come to chunks, all would end with all scores if the bound stayed as it was (CONCORD V-A)."""
    paper = race_of("global", sampled, known_only=True, slope=0.8, mass=-0.6)
    assert sum(step.effort.chunks > 0 for step in paper) > 3
    assert not any(step.effort.everything for step in paper)


def test_without_bounds_from_below_more_is_asked_for() -> None:
    """So that a row of the paper does not have what it has not."""
    ours, paper = (race_of("next", sampled=False, known_only=known, slope=0.8) for known in (False, True))
    assert [step.token for step in ours] == [step.token for step in paper]
    asked = [sum(step.effort.questions for step in steps) for steps in (ours, paper)]
    assert 2 * asked[0] < asked[1]


def test_no_ids_when_none_may_be_asked_for() -> None:
    distributions = [scores_of(1, 300, "near"), scores_of(2, 300, "near")]
    ends = Ends([StepScores(distributions[1])], ConsultOptions(first=1, questions=0, chunk=2, chunks=1))
    assert ends.settle(Certificate(distributions[0], [0.0, 0.0])).token == dense_token([0.5, 0.5], distributions)
    assert ends.asked
    assert not any(isinstance(question, AskScores) for question in ends.asked)


def test_replies_that_are_no_answer() -> None:
    distributions = [scores_of(1, 300, "near"), scores_of(2, 300, "near")]
    end = StepScores(distributions[1], bound="global")
    talk = consult(Certificate(distributions[0], [0.0, 0.0]), ConsultOptions(questions=1, chunks=0))
    next(talk)
    with pytest.raises(ValueError, match="all scores came"):
        talk.send({0: end.codes})
    talk = consult(Certificate(distributions[0], [0.0, 0.0]), ConsultOptions(questions=0, chunks=0))
    next(talk)
    with pytest.raises(ValueError, match="some scores came"):
        talk.send({0: end.strongest(3)})


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": 0}, {"ids_per_question": 0}, {"questions": -1}, {"chunk": 0}, {"chunks": 65}, {"epsilon": 0.0},
        {"epsilon": 1.0},        {"delta": -0.1}, {"delta": float("nan")}, {"bound": "none"}, {"certificate": "lower"},
    ],
)  # fmt: skip
def test_options_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        ConsultOptions(**wrong)


def test_the_largest_strength_fits_the_grid() -> None:
    """The smallest noise is 2^-53, and a score is at most 1."""
    assert SUMS.code_above(2.0**53) > 0
