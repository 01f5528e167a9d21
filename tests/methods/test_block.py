"""`dsd` and `tslt` with block verification: both halves' real code, added up over every branch, over losses, and with seeds."""

from collections.abc import Callable
from pathlib import Path

import pytest

import antiphon.core.block
from antiphon.config import SamplingParams
from antiphon.core.acceptance import residual
from antiphon.core.block import Block
from antiphon.core.chance import Chance, PhiloxChance, Stream
from antiphon.core.distributions import Probs
from antiphon.errors import UsageError
from antiphon.methods import METHODS
from antiphon.methods.base import Transcript
from antiphon.methods.effects import Half, Kind
from antiphon.methods.speculative.chain import ChainDevice
from antiphon.methods.speculative.draft_length import Fixed
from antiphon.options import options_of
from antiphon.testing.distributions import LARGE, SMALL, Pair, distance, method_distribution, target_distribution, written
from antiphon.testing.enumeration import output_distribution
from antiphon.testing.exactness import FEW_BRANCHES, SAMPLINGS, VOCABULARIES, assert_exact
from methods.test_wrong_ends import past_the_end

PLAIN = {"plain": SamplingParams(temperature=1.0)}


def options(name: str, **given: object) -> object:
    return METHODS[name].options_from({**FEW_BRANCHES, "verification": "block", **given})


@pytest.mark.core(3)
@pytest.mark.parametrize("drafts", [1, 2, 3])
@pytest.mark.parametrize("name", ["dsd", "tslt"])
def test_exact(name: str, drafts: int) -> None:
    """With one vocabulary and with two, under every sampling, over links that break; up to blocks of three."""
    assert_exact(METHODS[name], options(name, draft_length=drafts), tokens=min(drafts + 1, 3))


@pytest.mark.medium
@pytest.mark.parametrize("name", ["dsd", "tslt"])
def test_exact_with_a_whole_block_of_three(name: str) -> None:
    """Of four tokens the first round drafts three."""
    narrow = {"top-k": SamplingParams(temperature=1.0, top_k=2)}
    assert_exact(METHODS[name], options(name, draft_length=3), tokens=4, samplings=narrow, cuts=0)


@pytest.mark.parametrize(
    ("name", "given"), [("dsd", {"draft_precision": 32}), *(("tslt", {"truncate": f"k={k}"}) for k in (1, 3))]
)
def test_exact_however_drafts_are_rounded(name: str, given: dict[str, object]) -> None:
    assert_exact(METHODS[name], options(name, **given), tokens=3, samplings=PLAIN, cuts=0)


@pytest.mark.parametrize("name", ["dsd", "tslt"])
def test_exact_with_an_automatic_number_of_drafts(name: str) -> None:
    assert_exact(METHODS[name], options(name, draft_length=0), tokens=3, samplings=PLAIN)


@pytest.mark.core(1)
@pytest.mark.parametrize("pieces", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("name", ["dsd", "tslt"])
def test_an_end_of_sequence_ends_the_block(name: str, pieces: tuple) -> None:
    """A device may draft on behind one: what is there is dropped, and tests nothing."""
    pair, method = Pair(*pieces, seed=3), past_the_end(METHODS[name])
    found = method_distribution(pair, method, options(name, truncate="off"), PLAIN["plain"], 3)
    assert distance(found, target_distribution(pair, PLAIN["plain"], 3)) < 1e-12
    assert method.device.behind > 0  # type: ignore[attr-defined]


def test_tokens_up_to_an_end() -> None:
    transcript = Transcript(frozenset({7, 8}), 10)
    assert [transcript.until_end(numbers) for numbers in ([1, 7, 2, 8], [7], [1, 2], [])] == [[1, 7], [7], [1, 2], []]


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_of_one_draft_the_answers_are_those_of_one_by_one(sampling: SamplingParams) -> None:
    """Draw for draw."""
    pair = Pair(SMALL, LARGE)
    for seed in range(20):
        one, other = (
            written(pair, METHODS["dsd"], options("dsd", draft_length=1, verification=kind), sampling, 12, PhiloxChance(seed))
            for kind in ("token", "block")
        )
        assert one == other


@pytest.mark.parametrize("seed", [0, 3, 6, 9])
def test_more_drafts_stand(seed: int) -> None:
    """Of the first two, summed over every branch; at temperature 0 as many as one by one."""
    pair = Pair(SMALL, LARGE, seed=seed)

    def stood(verification: str, sampling: SamplingParams) -> float:
        given = options("dsd", verification=verification)

        def run(chance: Chance) -> int:
            kinds = [token.kind for token in written(pair, METHODS["dsd"], given, sampling, 3, chance)]
            return next((place for place, kind in enumerate(kinds) if kind is not Kind.ACCEPTED), len(kinds))

        return sum(count * probability for count, probability in output_distribution(run).items())

    assert stood("block", PLAIN["plain"]) > stood("token", PLAIN["plain"]) + 1e-4
    assert stood("block", SAMPLINGS["greedy"]) == stood("token", SAMPLINGS["greedy"])


@pytest.mark.parametrize("name", ["dsd", "tslt"])
def test_another_word_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="verification must be token or block, not 'blok'"):
        options(name, verification="blok")


def test_the_protocol_page_has_the_option() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
    having = [name for name, method in METHODS.items() if any(one.name == "verification" for one in options_of(method.options))]
    default = METHODS["dsd"].options().verification
    assert f"| `verification` | {', '.join(f'`{name}`' for name in having)} | `{default}` (without it)" in page


# Faults in the code itself.


def forwards(block: Block, stream: Callable[[int], Stream]) -> int:
    """Up to the first draft whose test fails."""
    failed = (index for index, held in enumerate(block.held) if not stream(index).bernoulli(held))
    return next(failed, len(block.held))


def unscaled(target_probs: Probs, draft_probs: Probs) -> Probs:
    """The residual of the target, however much of it was used up."""
    return residual(target_probs / target_probs.sum(), draft_probs)


@pytest.mark.parametrize(
    ("place", "fault"),
    [
        ("antiphon.methods.speculative.dsd.residual", unscaled),
        ("antiphon.core.block.Block.accepted", forwards),
        ("antiphon.core.block._held", lambda reached, rest: reached),
        ("antiphon.core.block._held", lambda reached, rest: rest),
    ],
)
def test_a_fault_is_seen(place: str, fault: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing above says anything."""
    monkeypatch.setattr(place, fault)
    with pytest.raises(AssertionError, match="dsd is not exact"):
        assert_exact(METHODS["dsd"], options("dsd"), tokens=3, samplings=PLAIN, cuts=0)


def test_one_number_for_two_drafts_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumeration does not add such a thing up: two tests with one key are an error to it."""
    accepted = Block.accepted
    monkeypatch.setattr(antiphon.core.block.Block, "accepted", lambda block, stream: accepted(block, lambda index: stream(0)))
    with pytest.raises(AssertionError, match="two draws share one key"):
        assert_exact(METHODS["dsd"], options("dsd"), tokens=3, samplings=PLAIN, cuts=0)


def test_a_cut_round_that_is_divided_anew_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a link breaks can hang on what a block brings, so it is done again whole (METHODS 3, resuming)."""
    run = ChainDevice.run

    def forgetful(half: ChainDevice) -> Half:
        if half.side.memory.round is not None:
            half.side.memory.round, half.lengths = None, Fixed(1)
        return run(half)

    monkeypatch.setattr(ChainDevice, "run", forgetful)
    with pytest.raises(AssertionError, match=r"dsd is not exact: .* over links that lose"):
        assert_exact(METHODS["dsd"], options("dsd"), tokens=2, samplings={})
