"""The papers' closed forms against virtual time, with toy models whose acceptance is the same at every token."""

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.acceptance import acceptance_rate
from antiphon.core.distributions import truncated
from antiphon.models.toy import ToyModel, toy_pieces
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.hardware.profiles import PROFILES
from antiphon_lab.links.notation import parse_link
from antiphon_lab.papers.answers import Timing
from antiphon_lab.papers.tslt.forms import SpeedUp, tokens_a_round

TOKENS = 2000
SAMPLING = SamplingParams(temperature=1.0)
FLAT = PROFILES["paper"]


class Steady(ToyModel):
    """A model that says the same after everything, and never ends."""

    def __init__(self, seed: int, sharpness: float) -> None:
        super().__init__(toy_pieces(order=1), name=f"steady-{seed}")
        shared, own = (np.random.default_rng(number).standard_normal(len(self.vocabulary)) for number in (1, seed))
        self.row = (sharpness * (shared + 0.5 * own)).astype(np.float32)
        self.row[self.vocabulary.end] = -np.inf

    def logits(self, tokens):
        return self.row

    @property
    def distribution(self) -> np.ndarray:
        shifted = np.exp(self.row.astype(np.float64) - self.row.max())
        return shifted / shifted.sum()


CLOUD, DEVICE = Steady(2, 1.6), Steady(3, 1.4)


def timing(method: str, rate: float, **options: object) -> Timing:
    trial = Trial(method, parse_link(f"tslt@{rate:g}"), FLAT, SAMPLING, options, TOKENS)
    return Timing.of(attempt(trial, CLOUD, DEVICE, ["the river "], 5)[0])


def speed_up(method: str, rate: float, **options: object) -> tuple[float, Timing]:
    ours, alone = timing(method, rate, **options), timing("cloud", rate)
    (tokens, seconds), (others, longer) = ours.decoding, alone.decoding
    return tokens / seconds / (others / longer), ours


def form(distributions: int, distribution_bits: float, drafts: int = 3) -> SpeedUp:
    return SpeedUp(drafts, FLAT.draft.seconds(1, 0), FLAT.verify.seconds(1, 0), distribution_bits, distributions)


CUT = truncated(DEVICE.distribution, 100, 1.0)
CASES = {
    "tslt": ({"draft_length": 3, "truncate": "k=100", "wire": "plain", "draft_precision": 16}, CUT, 3, 1, 100 * (16.0 + 9)),
    "tslt-tree": (
        {"truncate": "k=100", "wire": "plain", "draft_precision": 16, "replacement": True},
        CUT,
        7,
        2,
        100 * (16.0 + 9),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("method", CASES)
def test_the_speed_up_of_the_paper(method: str) -> None:
    """Every closed form of every method is held against virtual time in `test_speculative_forms`; this is `forms`."""
    rate = 0.2
    options, distribution, distributions, children, bits = CASES[method]
    acceptance = acceptance_rate(CLOUD.distribution, distribution, children, replacement=True)
    assert 0.4 < acceptance < 0.9
    found, ours = speed_up(method, rate, **options)
    stood = ours.accepted / ours.tested
    assert stood == pytest.approx(acceptance, abs=0.025)
    assert ours.tokens / len(ours.moments) == pytest.approx(tokens_a_round(stood, 3), rel=0.03)
    assert found == pytest.approx(form(distributions, bits).at(stood, 1e6 * rate), rel=0.03)


def test_a_chain_by_hand() -> None:
    """Two drafts, each accepted half the time: 1.75 tokens in 2 x 4 + 33 ms and two distributions of 1 kbit at 100 kbit/s."""
    assert tokens_a_round(0.5, 2) == 1.75
    assert tokens_a_round(1.0, 3) == 4
    assert tokens_a_round(0.0, 3) == 1
    found = SpeedUp(2, 0.004, 0.033, 1000.0, 2)
    assert found.at(0.5, 1e5) == pytest.approx(1.75 * 33 / (8 + 33 + 20))
    assert found.with_bits(0.0).at(0.5, 1e5) == pytest.approx(1.75 * 33 / 41)
