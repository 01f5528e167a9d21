"""The papers' closed forms against virtual time, on toys whose drafts stand with a constant probability.

Written out here from the papers: alpha = 1 - TV(draft distribution, target distribution), L drafts a round,
    tokens of a round   (1 - alpha^(L+1)) / (1 - alpha)
    its seconds         L (T_SLM + D / R_up) + T_LLM,  D bits of a draft distribution (TSLT 2.3; for a tree a distribution a
    parent, 4.2) speed-up            tokens / seconds, over 1 / T_LLM
and the bits of a round (METHODS 2). Framing, counts and padding are not in the forms, so the distributions are made large
beside them. The forms are given the alpha that a run had, which must be that of the distributions as far as chance allows.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits, Probs, process, total_variation, truncated
from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.models.toy import ToyModel, toy_pieces
from antiphon_lab.ends.no_drafts import NonDraftingModel
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.experiments.truncated import without_replacement
from antiphon_lab.hardware.profiles import PROFILES
from antiphon_lab.links.notation import parse_link

SAMPLING = SamplingParams(temperature=1.0)
PAPER = PROFILES["paper"]
DRAFT_S, VERIFY_S = PAPER.draft.first / 1000, PAPER.verify.first / 1000
TOKENS, ANSWERS = 1500, 2
KEPT = 200


class ConstantModel(ToyModel):
    """A model that says the same whatever it has read, and never ends."""

    def __init__(self, seed: int) -> None:
        super().__init__(toy_pieces(order=1), name=f"constant-{seed}")
        generator = np.random.default_rng(7)
        shared, own = generator.standard_normal(len(self.vocabulary)), np.random.default_rng(seed)
        scores = 1.5 * shared + 0.7 * own.standard_normal(len(self.vocabulary))
        scores[self.vocabulary.end] = -1e9
        self._logits = scores.astype(np.float32)

    def logits(self, tokens: Sequence[int]) -> Logits:
        return self._logits

    @property
    def distribution(self) -> Probs:
        return process(self._logits, SAMPLING)


def meeting(distribution: Probs, other: Probs) -> float:
    """How likely one race has the same winner over both distributions: x wins over both iff it beats every y over both."""
    both = np.flatnonzero((distribution > 0) & (other > 0))
    distribution, other = distribution[both], other[both]
    return float((1 / np.maximum(distribution / distribution[:, None], other / other[:, None]).sum(1)).sum())


CLOUD, DEVICE = ConstantModel(1), ConstantModel(2)
SIZE = len(CLOUD.vocabulary)
ID = int(np.ceil(np.log2(SIZE)))
ALPHA = 1 - total_variation(CLOUD.distribution, DEVICE.distribution)
SPARSE = {"truncate": f"k={KEPT}", "draft_precision": 16, "wire": "plain"}
TRUNCATED = truncated(DEVICE.distribution, KEPT, 1.0)
COUPLED = meeting(CLOUD.distribution, DEVICE.distribution)
ALPHA_TRUNCATED = 1 - total_variation(CLOUD.distribution, TRUNCATED)


def answers(method: str, link: str, **options: object) -> list[Result]:
    trial = Trial(method, parse_link(link), PAPER, SAMPLING, options, TOKENS)
    return attempt(trial, CLOUD, DEVICE, ["the "] * ANSWERS)


def speed(results: Sequence[Result]) -> float:
    """Tokens a second behind the first round, which also reads the prompt."""
    tokens = sum(result.answer.committed - len(result.answer.emissions[0].kinds) for result in results)
    return tokens / sum(result.answer.seconds - result.answer.first_token_s for result in results)


def alone() -> float:
    """Of the large model alone."""
    return speed(answers("cloud", "tslt"))


def tokens_a_round(alpha: float, drafts: int) -> float:
    return (1 - alpha ** (drafts + 1)) / (1 - alpha)


def realised(results: Sequence[Result], alpha: float) -> float:
    """The share of tested sets of siblings of which one stood; three deviations from what the probs say would be a fault."""
    stood, tested = (sum(counts) for counts in zip(*(result.answer.sets_of_siblings() for result in results), strict=True))
    assert stood / tested == pytest.approx(alpha, abs=3 * np.sqrt(alpha * (1 - alpha) / tested))
    return stood / tested


def compare(what: str, found: float, expected: float) -> None:
    print(f"{what}: {found:.3f}, form {expected:.3f}, off by {found / expected - 1:+.2%}")
    assert found == pytest.approx(expected, rel=0.03)


def test_the_toys_agree_in_part() -> None:
    assert 0.5 < ALPHA < 0.8
    assert abs(ALPHA - ALPHA_TRUNCATED) <= 1 - np.sort(DEVICE.distribution)[-KEPT:].sum()


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1, 100])
@pytest.mark.parametrize("drafts", [1, 5])
def test_the_speed_up_of_single_candidates(drafts: int, rate: int) -> None:
    """TSLT's equation, with dense distributions (`dsd`, no indices) of 32 bits an entry."""
    drafting = answers("dsd", f"tslt@{rate}", draft_length=drafts, draft_precision=32)
    seconds = drafts * (DRAFT_S + 32 * SIZE / (1e6 * rate)) + VERIFY_S
    expected = tokens_a_round(realised(drafting, ALPHA), drafts) * VERIFY_S / seconds
    compare(f"dsd, {drafts} drafts, {rate} Mbit/s", speed(drafting) / alone(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1, 100])
def test_the_speed_up_of_truncated_distributions(rate: int) -> None:
    """The same with K (b_prob + b_idx) bits a distribution, and the acceptance of the truncated distribution."""
    drafting = answers("tslt", f"tslt@{rate}", draft_length=3, **SPARSE)
    seconds = 3 * (DRAFT_S + KEPT * (16 + ID) / (1e6 * rate)) + VERIFY_S
    expected = tokens_a_round(realised(drafting, ALPHA_TRUNCATED), 3) * VERIFY_S / seconds
    compare(f"tslt, 3 drafts, {rate} Mbit/s", speed(drafting) / alone(), expected)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1, 100])
def test_the_speed_up_of_several_candidates(rate: int) -> None:
    """A distribution for each of the 1 + 2 + 4 parents of a tree of 2,2,2; of a node's children one stands with theta."""
    drafting = answers("tslt-tree", f"tslt@{rate}", expansion="2,2,2", **SPARSE)
    theta = realised(drafting, without_replacement(CLOUD.distribution, TRUNCATED, 2))
    seconds = 3 * DRAFT_S + 7 * KEPT * (16 + ID) / (1e6 * rate) + VERIFY_S
    compare(f"tslt-tree, {rate} Mbit/s", speed(drafting) / alone(), tokens_a_round(theta, 3) * VERIFY_S / seconds)


def bits_a_round(method: str, drafts: int, alpha: float) -> tuple[float, float]:
    """METHODS 2, accounting, in expectation over rounds: up and down."""
    stand = alpha**drafts
    scalars = drafts * (ID + 32) + (1 - stand) * ID  # the token that the device drew goes up with the next drafts
    match method:
        case "dsd":
            return drafts * (ID + 32 * SIZE), ID
        case "tslt":
            return drafts * (ID + KEPT * (16 + ID)), ID
        case "dssd":
            return scalars, (1 - stand) * 32 * SIZE + stand * ID
        case "xcosd":
            return scalars, (1 - stand) * (32 * (SIZE + 1) + ID) + stand * ID
        case _:
            return drafts * ID, ID


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dsd", "tslt", "dssd", "xcosd", "coupled"])
def test_the_bits_of_a_round(method: str) -> None:
    """Besides: padding to whole bytes, and the accepted count, which goes down."""
    own = SPARSE if method == "tslt" else {"draft_precision": 32}
    results = answers(method, "x-cosd", draft_length=6, precision=32, ahead=0, patience=LOCKSTEP, **own)
    rounds, distributions = sum(result.answer.rounds for result in results), {"tslt": ALPHA_TRUNCATED, "coupled": COUPLED}
    forms = bits_a_round(method, 6, realised(results, distributions.get(method, ALPHA)))
    for way, form, besides in zip(("up", "down"), forms, (4, 7), strict=True):
        found = sum(getattr(result.traffic, way).payload_bits for result in results) / rounds
        print(f"{method} {way}: {found:.1f} bits a round, form {form:.1f}, off by {found / form - 1:+.2%}")
        assert found == pytest.approx(form, rel=0.03, abs=besides)


@pytest.mark.slow
def test_the_figure_of_x_cosd_on_toys() -> None:
    """X-CoSD's throughput at 100 Mbit/s reads 45 against 30 tokens/s; a tree without probabilities is faster still."""

    def tried(method: str, mute: bool = False, **options: object) -> float:
        trial = Trial(method, parse_link("x-cosd@100"), PROFILES["a100-7b"], SAMPLING, options, TOKENS)
        return speed(attempt(trial, CLOUD, NonDraftingModel(DEVICE) if mute else DEVICE, ["the "] * ANSWERS))

    streamed, asking = tried("cloud"), tried("coupled", mute=True, draft_length=1, ahead=0, patience=LOCKSTEP)
    candidates, tree = tried("xcosd-e", draft_length=2), tried("coupled-tree", expansion="2,2,2", patience=LOCKSTEP)
    print(f"cloud {streamed:.1f}, a trip a token {asking:.1f}, xcosd-e {candidates:.1f}, coupled-tree {tree:.1f} tokens/s")
    assert streamed == pytest.approx(30, rel=0.02)
    assert asking == pytest.approx(streamed, rel=0.01)  # the paper's link has no delay
    assert candidates >= 1.5 * streamed
    assert tree > candidates
