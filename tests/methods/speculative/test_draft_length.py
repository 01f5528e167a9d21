"""Automatic draft lengths: no more than is allowed, near the best fixed length, and exact whatever the clock says."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.draft_length import FIRST, Round
from antiphon.core.resampling import quantise_lumped
from antiphon.core.rounding import Quantise, exactly, quantise_ratios, ratios_of
from antiphon.core.stream import LOCKSTEP
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.drafter import Drafted
from antiphon.methods.speculative.chain import ChainDevice
from antiphon.methods.speculative.draft_length import Auto, Fixed, lengths
from antiphon.methods.speculative.options import AUTO_DRAFT_LENGTH
from antiphon.models.toy import ToyModel, named_toy, toy_pieces
from antiphon.testing.distributions import LARGE, SHARED, SMALL, Pair, distance, target_distribution
from antiphon.wire.messages import Draft, Verdict
from methods.speculative.stream.timed import Times, timed_distribution
from support.broken_links import Network, broken
from support.links import request

AUTOMATIC = ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "coupled"]
PLAIN = SamplingParams(temperature=1.0)
NARROW = SamplingParams(temperature=1.0, top_k=2)


def drafted(count: int, spread: float = 1.0) -> list[Drafted]:
    """Drafts whose distributions have an entropy of log 3 where `spread` is 0, and less the larger it is."""
    logits = spread * np.arange(3, dtype=np.float32)
    return [Drafted(0, np.full(3, 1 / 3), logits)] * count


def spent(drafts: int, tokens: int, drafting: float, waiting: float) -> Round:
    """A round of one trip."""
    return Round(drafts, drafting, drafts, tokens <= drafts, waiting, waiting, tokens)


def test_the_option_says_which() -> None:
    assert isinstance(lengths(0), Auto)
    assert isinstance(lengths(5), Fixed)
    assert lengths(0) is not lengths(0), "what one answer taught must not rule another"


def test_a_fixed_length_is_kept_whatever_happens() -> None:
    fixed = lengths(3)
    for _ in range(5):
        fixed.tested([], drafted(1)[0], follows=False)
        fixed.learn(spent(3, 1, 100.0, 0.001))
        assert [fixed.more(drafted(count)) for count in range(5)] == [True, True, True, False, False]


def test_no_more_than_a_narrow_pass_holds() -> None:
    """However sure the drafts and however cheap: a pass of more than 7 tokens may have other logits (docs/benchmarks.md)."""
    auto = Auto()
    for _ in range(50):
        auto.tested(drafted(6, 30.0), None, follows=False)
        auto.learn(spent(6, 7, 0.0, 1.0))
    assert [auto.more(drafted(count, 30.0)) for count in range(9)] == [True] * AUTO_DRAFT_LENGTH + [False] * 3


def test_it_starts_with_as_many_as_teach_it_the_time_of_a_draft() -> None:
    auto = Auto()
    assert [auto.more(drafted(count)) for count in range(FIRST + 1)] == [True] * FIRST + [False]
    auto.learn(spent(FIRST, 1, 9.0, 0.001))
    assert not auto.more([])


def test_a_round_in_which_nothing_was_tested_teaches_nothing_of_acceptance() -> None:
    auto = Auto()
    before = auto.pace.acceptance.overall
    auto.tested([], None, follows=False)
    assert auto.pace.acceptance.overall == before


# The distribution.


def target(name: str, pair: Pair) -> Quantise:
    """How a method rounds its target."""
    if name == "dssd":
        return quantise_ratios(ratios_of(16))
    return quantise_lumped(pair.common.size, ratios_of(16)) if name.startswith("xcosd") else exactly


def knowing(rounds: list[tuple[int, int, float, float]]) -> type[Auto]:
    """A rule that has seen rounds: drafts, tokens, seconds of drafting, of waiting. The first is always forgotten."""

    class Knowing(Auto):
        def __init__(self) -> None:
            super().__init__()
            for sent, tokens, drafting, waiting in rounds:
                self.pace.observe(spent(sent, tokens, drafting, waiting))

    return Knowing


CHEAP = [(3, 3, 0.012, 0.05)] * 3
DEAR = [(1, 1, 9.0, 0.05)] * 3
CLOCKS = {"cheap": (CHEAP, Times()), "dear": (DEAR, Times(draft=3.0)), "becoming dear": (CHEAP, Times(draft=3.0))}


@pytest.fixture(params=CLOCKS.values(), ids=CLOCKS)
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Times:
    known, times = request.param
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", knowing(known))
    return times


def error(name: str, pair: Pair, sampling: SamplingParams, tokens: int, times: Times) -> float:
    few = {"draft_length": 0, "candidates": 1, "iterations": 2, "truncate": "k=2", "ahead": 2}
    method = WITHOUT_DOCUMENTS[name]
    distribution = timed_distribution(pair, method, method.options_from(few), sampling, tokens, times)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    return distance(distribution, target_distribution(pair, sampling, tokens, target(name, pair)))


@pytest.mark.core(5)
@pytest.mark.parametrize("name", AUTOMATIC)
def test_joint_distribution_on_a_clock(name: str, clock: Times) -> None:
    tokens, sampling = (2, PLAIN) if name == "xcosd-e" else (4, NARROW)
    assert error(name, Pair(SHARED, SHARED, seed=6), sampling, tokens, clock) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", AUTOMATIC)
def test_joint_distribution_with_tokens_that_the_device_lacks(name: str, clock: Times) -> None:
    assert error(name, Pair(SMALL, LARGE), PLAIN, 2 if name == "xcosd-e" else 3, clock) < 1e-12


def test_the_lengths_do_differ_in_these_distributions(clock: Times, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, some, and some that become none; a fixed length would prove nothing."""
    sent: set[int] = set()
    plain = ChainDevice._send

    def noting(self: ChainDevice, drafts: Any) -> Any:
        if self.side.transcript.remaining > 1:
            sent.add(len(drafts))
        return plain(self, drafts)

    monkeypatch.setattr(ChainDevice, "_send", noting)
    error("dsd", Pair(SHARED, SHARED, seed=6), NARROW, 6, clock)
    known = [spent for spent, times in CLOCKS.values() if times is clock]
    assert len(sent) > 1 if known == [CHEAP] else 0 in sent


def test_a_rule_that_saw_the_draft_that_it_stops_at_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft that is thrown away for what it is: the classic way to be biased."""
    plain = ChainDevice.drafts

    def picky(self: ChainDevice, most: int) -> Generator[Any, Any, list[Drafted]]:
        drafts = yield from plain(self, most)
        return drafts[:-1] if drafts and drafts[-1].number == 0 else drafts

    monkeypatch.setattr(ChainDevice, "drafts", picky)
    assert error("dsd", Pair(SHARED, SHARED), PLAIN, 3, Times()) > 1e-3


# Two real ends in virtual time.

CLOUD = named_toy("toy-cloud")
LIKE = ToyModel(toy_pieces(order=1), seed=9, noise=0.3, sharpness=3.0)


def seconds(
    method: str, draft_length: int, way: float, draft: float, verify: float, answers: int = 6
) -> tuple[float, list[int]]:
    """Of so many answers; and the drafts of each round."""
    asked = request(method, tokens=100)
    asked = replace(
        asked, options=WITHOUT_DOCUMENTS[method].options_from({"draft_length": draft_length, "ahead": 0, "patience": LOCKSTEP})
    )

    async def test(device: Device, connection: Connection, network: Network) -> tuple[float, list[int]]:
        total, tokens = 0.0, 0
        for seed in range(answers):
            result = await device.generate(replace(asked, seed=seed), connection)
            total, tokens = total + result.answer.seconds, tokens + result.tokens
        messages = [envelope.message for _, _, envelope in network.log]
        return total / tokens, [message.count for message in messages if isinstance(message, Draft)]

    costs = (lambda width, length: draft, lambda width, length: verify + 0.001 * width)
    return broken(test, models=lambda: (LIKE, CLOUD), delay=lambda: way, costs=costs)


LINKS = {
    "near": (0.001, 0.004, 0.033),
    "far": (0.025, 0.004, 0.033),
    "very far": (0.15, 0.01, 0.033),
    "slow device": (0.001, 0.1, 0.02),
}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "draft", "verify"), LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("method", ["dsd", "coupled"])
def test_whole_answers_come_near_the_best_fixed_length(
    method: str,
    way: float,
    draft: float,
    verify: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Answers of 100 tokens at most, learning included; a fixed length has nothing to learn."""
    auto, counts = seconds(method, 0, way, draft, verify)
    fixed = {length: seconds(method, length, way, draft, verify)[0] for length in range(1, 7)}
    monkeypatch.setattr("antiphon.methods.speculative.draft_length.Auto", lambda: Fixed(0))
    fixed[0] = seconds(method, 0, way, draft, verify)[0]
    with capsys.disabled():
        found = ", ".join(f"{length}: {1000 * value:.1f}" for length, value in sorted(fixed.items()))
        print(f"\n{method}, {way:g} s a way, {draft:g} s a draft: milliseconds a token {found}")
        print(f"auto {1000 * auto:.1f} with {np.mean(counts):.2f} drafts a round")
    learning = FIRST * draft / 60  # the answers have 60 tokens and more
    assert auto < 1.1 * min(fixed.values()) + learning


def test_no_drafts_at_all_is_a_legal_choice_on_a_real_session() -> None:
    """METHODS 5: drafts of 2 s, and the cloud alone would take 35 ms a token."""
    _, counts = seconds("dsd", 0, 0.001, 2.0, 0.033, answers=1)
    assert counts == [FIRST, *[0] * (len(counts) - 1)]


@pytest.mark.core(2)
@pytest.mark.parametrize("name", AUTOMATIC)
def test_every_draft_that_was_tested_teaches_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that stood, and the first that fell; not those behind it, and no bonus where no draft was tested."""
    stood: list[int] = []
    fell: list[bool] = []
    plain = Auto.tested

    def noting(self: Auto, drafts: list[Drafted], next: Drafted | None, follows: bool) -> None:
        stood.append(len(drafts))
        fell.append(next is not None and not follows)
        plain(self, drafts, next, follows)

    monkeypatch.setattr(Auto, "tested", noting)

    async def test(device: Device, connection: Connection, network: Network) -> None:
        options = WITHOUT_DOCUMENTS[name].options_from({"draft_length": 0, "truncate": "k=40", "patience": LOCKSTEP})
        result = await device.generate(replace(request(name, tokens=60), options=options), connection)
        assert sum(stood) == result.answer.kinds["accepted"] > 0
        assert sum(fell) == result.answer.kinds["correction"] > 0

    broken(test)


@pytest.mark.parametrize("name", AUTOMATIC)
def test_rounds_are_timed_without_the_reading_of_the_prompt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of the device takes a second a token, so that the first draft, for which it reads the prompt, takes many."""
    rounds: list[Round] = []
    plain = Auto.learn

    def noting(self: Auto, round: Round) -> None:
        rounds.append(round)
        plain(self, round)

    monkeypatch.setattr(Auto, "learn", noting)

    async def test(device: Device, connection: Connection, network: Network) -> None:
        given = {"draft_length": 0, "truncate": "k=40", "ahead": 0, "patience": LOCKSTEP}
        options = WITHOUT_DOCUMENTS[name].options_from(given)
        await device.generate(replace(request(name, tokens=20), options=options), connection)

    broken(test, costs=(lambda width, length: float(width), lambda width, length: 100.0), delay=lambda: 0.0)
    assert (rounds[0].made, rounds[0].sent, rounds[0].drafting) == (FIRST - 1, FIRST, pytest.approx(FIRST - 1))
    assert all(one.made == one.sent for one in rounds[1:])
    assert all(one.drafting > one.made - 1e-6 for one in rounds)
    assert all(one.fell == (one.tokens <= one.sent) for one in rounds[:-1])
    assert all(one.settled == pytest.approx(100.0, abs=0.1) for one in rounds[1:-1] if name == "coupled")


def test_a_verdict_without_drafts_is_one_token() -> None:
    async def test(device: Device, connection: Connection, network: Network) -> None:
        await device.generate(
            replace(request("dsd", tokens=20), options=WITHOUT_DOCUMENTS["dsd"].options_from({"draft_length": 0})), connection
        )
        messages = [envelope.message for _, _, envelope in network.log]
        drafts = [message for message in messages if isinstance(message, Draft)]
        verdicts = [message for message in messages if isinstance(message, Verdict)]
        empty = [verdict for draft, verdict in zip(drafts, verdicts, strict=True) if draft.count == 0]
        assert empty
        assert all(verdict.accepted == 0 and verdict.payload for verdict in empty)

    broken(test, costs=(lambda width, length: 5.0, lambda width, length: 0.01))
