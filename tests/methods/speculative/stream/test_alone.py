"""What a device writes alone is drafts and nothing else: every branch added up, the answer has the target's distribution."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, PhiloxChance
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.effects import Emit, Finish, Half, Kind, Provisional
from antiphon.testing.distributions import (
    LARGE,
    SHARED,
    SMALL,
    CutError,
    Pair,
    breaking,
    distance,
    target_distribution,
)
from antiphon.testing.enumeration import output_distribution
from antiphon.testing.lockstep import run_pair
from antiphon.wire.messages import Draft, Message, Verdict

METHOD = WITHOUT_DOCUMENTS["coupled"]
PAIRS = {"shared": (SHARED, SHARED, 3), "different": (SMALL, LARGE, 9)}
NARROW, PLAIN = SamplingParams(temperature=1.0, top_k=2), SamplingParams(temperature=1.0)
WAYS: dict[str, dict[str, Any]] = {"auto": {}, "stream": {"patience": 0.0}, "lockstep": {"patience": float("inf")}}


def first(half: Half, most: int) -> Generator[Any, Any, Finish]:
    """A half until it has shown so often what follows. Raises CutError then: the cloud is back."""
    try:
        effect = next(half)
        while True:
            most -= isinstance(effect, Provisional)
            if most < 0:
                raise CutError
            effect = half.send((yield effect))
    except StopIteration as stop:
        finish: Finish = stop.value
        return finish


def written(chance: Chance, pair: Pair, sampling: SamplingParams, tokens: int, alone: int, lost: Any, **given: Any) -> Any:
    """The answer over a link that breaks where `lost` says; each time the device writes so many tokens by itself."""
    options = METHOD.options_from({"draft_length": 2, "lookup": "off", **given})
    device, cloud = pair.sides(tokens, sampling, chance)
    assert METHOD.alone is not None
    assert METHOD.cloud is not None
    lines = []
    while device.transcript.finish is None:
        halves = METHOD.device(device, options).run(), METHOD.cloud(cloud, options).run()
        try:
            run_pair(*(breaking(half, lost) for half in halves))
        except CutError:
            with suppress(CutError):
                run_pair(first(METHOD.alone(device, options, keep=False), alone), None)
            lines.append(len(device.memory.line))
            cloud = pair.cloud_side(tokens, sampling, chance, device.transcript.numbers)
    return tuple(device.transcript.numbers), lines


def breaks(kind: type, most: int) -> Any:
    """Links that break under so many messages of a kind, the second of them first: something has stood then."""
    left = [most]

    def lost(message: Message) -> bool:
        left[0] -= isinstance(message, kind)
        return isinstance(message, kind) and 0 <= left[0] < most - (kind is Verdict)

    return lost


@pytest.mark.core(3)
@pytest.mark.parametrize("kind", [Draft, Verdict])
@pytest.mark.parametrize("alone", [1, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pieces", PAIRS.values(), ids=PAIRS)
def test_the_answer_has_the_distribution_of_the_target(pieces: tuple[Any, ...], way: str, alone: int, kind: type) -> None:
    pair, tokens = Pair(*pieces), 3
    sampling = NARROW if pieces[0] is SHARED else SamplingParams(temperature=1.0, top_k=3)
    written_alone = 0

    def answer(chance: Chance) -> tuple[int, ...]:
        nonlocal written_alone
        numbers, lines = written(chance, pair, sampling, tokens, alone, breaks(kind, 3), **WAYS[way])
        written_alone += sum(lines)
        return numbers

    distribution = output_distribution(answer)
    assert sum(distribution.values()) == pytest.approx(1, abs=1e-12)
    assert distance(distribution, target_distribution(pair, sampling, tokens)) < 1e-12
    assert written_alone > 5


@pytest.mark.parametrize("way", WAYS)
def test_what_stands_is_the_text_of_the_seed(way: str) -> None:
    """Whatever is written alone, and however often: of production's noise each answer is the very one of an unbroken link."""
    pair = Pair(SMALL, LARGE, seed=9)
    for seed in range(200):
        whole, _ = written(PhiloxChance(seed), pair, PLAIN, 12, 0, lambda message: False, **WAYS[way])
        found, _ = written(PhiloxChance(seed), pair, PLAIN, 12, seed % 7, breaks((Draft, Verdict)[seed % 2], 4), **WAYS[way])
        assert found == whole


@pytest.mark.parametrize("way", WAYS)
def test_at_a_loss_the_line_is_what_the_device_drafts_behind_what_stands(way: str) -> None:
    """Also at a second one, when part of what was written alone has been settled: else old text would be shown."""
    pair, options, drafted = Pair(SMALL, LARGE, seed=9), METHOD.options_from({"lookup": "off", **WAYS[way]}), 0
    for seed in range(60):
        device, cloud = pair.sides(12, PLAIN, PhiloxChance(seed))
        for kind in (Draft, Verdict, Verdict, Verdict):
            halves = METHOD.device(device, options).run(), METHOD.cloud(cloud, options).run()  # type: ignore[misc]
            with suppress(CutError):
                run_pair(*(breaking(half, breaks(kind, 3)) for half in halves))
            if device.transcript.finish is not None:
                break
            fresh, _ = pair.sides(12, PLAIN, PhiloxChance(seed))
            for number in device.transcript.numbers:
                fresh.transcript.commit(number)
            fresh.drafter.commit(device.transcript.numbers)  # type: ignore[union-attr]
            shown = effects(METHOD.alone(fresh, options, keep=False))  # type: ignore[misc]
            line = tuple(guess.number for guess in device.memory.line)
            assert line == (shown[-1].numbers[: len(line)] if line else ())
            with suppress(CutError):
                run_pair(first(METHOD.alone(device, options, keep=False), 5), None)  # type: ignore[misc]
            drafted += len(device.memory.line)
            cloud = pair.cloud_side(12, PLAIN, PhiloxChance(seed), device.transcript.numbers)
    assert drafted > 100


def test_a_line_ends_where_the_answer_may_and_at_an_end() -> None:
    pair = Pair(SHARED, SHARED, seed=3)
    ended = 0
    for seed in range(40):
        device, _ = pair.sides(4, PLAIN, PhiloxChance(seed))
        shown = [effect.numbers for effect in effects(METHOD.alone(device, None, keep=False))]  # type: ignore[misc]
        assert [len(numbers) for numbers in shown] == list(range(1, len(shown) + 1)), "one more at a time"
        line = shown[-1]
        assert len(line) == 3 or device.transcript.is_end(line[-1])
        assert not any(device.transcript.is_end(number) for number in line[:-1])
        assert [guess.number for guess in device.memory.line] == list(line)
        assert device.transcript.numbers == []
        ended += device.transcript.is_end(line[-1])
    assert 0 < ended < 40


def test_what_is_kept_are_the_same_tokens_and_the_last_one() -> None:
    pair = Pair(SHARED, SHARED, seed=3)
    for seed in range(40):
        device, _ = pair.sides(6, PLAIN, PhiloxChance(seed))
        line = [effect.numbers for effect in effects(METHOD.alone(device, None, keep=False))][-1]  # type: ignore[misc]
        kept, _ = pair.sides(6, PLAIN, PhiloxChance(seed))
        kept.memory.line[:] = device.memory.line[: seed % 3]  # drafts that were on their way
        emitted = effects(METHOD.alone(kept, None, keep=True))  # type: ignore[misc]
        assert all(isinstance(effect, Emit) and effect.exact is False for effect in emitted)
        tokens = [token for effect in emitted for token in effect.tokens]
        assert all(token.kind is Kind.LOCAL for token in tokens)
        assert [token.number for token in tokens] == kept.transcript.numbers
        assert tuple(kept.transcript.numbers[: len(line)]) == line
        assert kept.transcript.finish is not None
        assert kept.memory.line == []


def effects(half: Half) -> list[Any]:
    """What a half asks for besides passes."""
    found, answer = [], None
    try:
        while True:
            effect = half.send(answer)
            answer = effect.run() if hasattr(effect, "run") else None
            found += [] if hasattr(effect, "run") else [effect]
    except StopIteration:
        return found
