"""Answers drawn at random: models, sampling, options, prompts, links, paces and cuts. Each is the very one of `cloud`."""

import asyncio
import random
import string
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest

from antiphon.cloud.service import Cloud
from antiphon.config import Request, SamplingParams
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.device.answer import Piece, Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.speculative.stream.cloud import Pending
from antiphon.models.base import Model
from antiphon.models.toy import MERGES, ToyModel, toy_pieces
from antiphon.options import NoOptions
from antiphon_lab.links.virtual_time import Cost, VirtualWorker
from support.broken_links import Cut, Delay, Network, broken

LETTERS = string.ascii_lowercase
SHAPES = ["2,2", "3,2,1", "1,1,1,1", "4", "7,4,1"]
BURST_SECONDS = 4.0
PATIENT = 400.0
"""Seconds to mend a link: cuts come while it is mended, too."""


@dataclass(frozen=True)
class Drawn:
    """An answer, and what it meets with."""

    device: ToyModel
    cloud: ToyModel
    request: Request
    delay: Delay
    costs: tuple[Cost, Cost]
    cuts: list[Cut]
    away: float | None
    """Seconds for which nobody answers after a cut."""
    several: bool
    """Whether another cloud of the same model may be behind the next link."""


def drawn(seed: int) -> Drawn:
    source = random.Random(f"answer {seed}")
    device, cloud = models(source)
    tokens = source.choice([1, 2, 3, 8, 20, 20, 40, 100])
    cuts = [
        (source.randint(1, 4 + 3 * tokens), source.choice(["before", "after", "goodbye"]))
        for _ in range(source.choice([0, 0, 1, 2, 3, 5]))
    ]
    away = source.choice([0.0, 0.02, 0.2, 2.0, 8.0, None])
    asked = request(source, cloud, tokens)
    return Drawn(device, cloud, asked, delay(source), costs(source), cuts, away, source.random() < 0.3)


def models(source: random.Random) -> tuple[ToyModel, ToyModel]:
    """Both can be small, so that contexts fill up on the way; the device may lack tokens, and be unable to spell a prompt."""
    letters = [letter.encode() for letter in LETTERS[: source.randint(2, 8)]]
    pairs = [first + second for first in letters for second in letters if source.random() < 0.2]
    large = [*letters, *pairs, *[b"A", b"B"][: source.randint(0, 2)], b""]
    small = [piece for piece in large if not piece or source.random() < 0.9] + [b"xy"]
    source.shuffle(large)
    source.shuffle(small)
    if source.random() < 0.3:
        small, large = list(toy_pieces(merges=MERGES[::2], order=2)), list(toy_pieces(order=1))
    seed, noise, sharpness = source.randint(0, 10**6), source.choice([0.0, 0.2, 0.5, 1.0]), source.choice([0.3, 1.0, 2.0, 4.0])
    device_cells, cloud_cells = source.choice([4096, 4096, source.randint(16, 100)]), source.choice([4096, 4096, 110, 160])
    return (
        ToyModel(small, seed=seed, noise=noise, sharpness=sharpness, context_length=device_cells, name="small"),
        ToyModel(large, seed=seed + 1, noise=noise, sharpness=sharpness, context_length=cloud_cells, name="large"),
    )


def request(source: random.Random, cloud: ToyModel, tokens: int) -> Request:
    letters = [letter for letter in LETTERS + "AB" if letter.encode() in cloud.vocabulary.pieces]
    prompt = "".join(source.choice(letters) for _ in range(source.choice([1, 2, 5, 12]))) * source.choice([1, 1, 3])
    stop = ["".join(source.choice(letters) for _ in range(source.randint(1, 4))) for _ in range(source.choice([0, 0, 1, 2]))]
    name = source.choice(["coupled", "coupled-tree"])
    return Request(
        prompt,
        name,
        WITHOUT_DOCUMENTS[name].options_from(
            options(source) if source.random() < 0.9 else {"expansion": source.choice(SHAPES)}
        ),
        sampling(source, cloud),
        tokens,
        tuple(stop),
        seed=source.randint(0, 2**64 - 1),
        on_loss=source.choice(["wait", "local"]) if name == "coupled" else "wait",
    )


def options(source: random.Random) -> dict[str, object]:
    return {
        "patience": source.choice([AUTO, AUTO, 0.0, 0.0, 5.0, 50.0, 3000.0, LOCKSTEP]),
        "objective": source.choice(["speed", "speed", "cloud", "data", "battery"]),
        "lookup": source.choice(["auto", "on", "off"]),
        "draft_length": source.choice([0, 0, 1, 2, 3, 7, 16]),
        "ahead": source.choice([-1, -1, 0, 1, 5, 32]),
        "settle_width": source.choice([2, 3, 7, 64]),
        "nodes": source.choice([0, 0, 1, 2, 5, 20, 63]),
    }


def sampling(source: random.Random, cloud: ToyModel) -> SamplingParams:
    ends = source.choice([-1e3, -3.0, 0.0])
    biased = source.sample(range(len(cloud.vocabulary)), 2) if source.random() < 0.3 else []
    biases = {token: source.choice([-5.0, 3.0]) for token in biased} | dict.fromkeys(cloud.vocabulary.ends, ends)
    return SamplingParams(
        repetition_penalty=source.choice([1.0, 1.0, 0.7, 1.3]),
        presence_penalty=source.choice([0.0, 0.0, -0.5, 0.7]),
        frequency_penalty=source.choice([0.0, 0.0, -0.3, 0.5]),
        logit_bias=tuple(biases.items()),
        temperature=source.choice([0.0, 0.3, 0.7, 1.0, 1.0, 2.0]),
        top_k=source.choice([0, 0, 1, 3]),
        top_p=source.choice([1.0, 1.0, 0.7, 0.95]),
        min_p=source.choice([0.0, 0.0, 0.1]),
    )


def delay(source: random.Random) -> Delay:
    """Always the same, another one each time, or mostly none."""
    most, more = source.choice([0.0, 0.001, 0.01, 0.05, 0.3, 1.5]), random.Random(source.random())
    burst = [0.0] * 9 + [min(BURST_SECONDS, 10 * most)]
    return source.choice([lambda: most, lambda: more.uniform(0.0, most), lambda: more.choice(burst)])


def costs(source: random.Random) -> tuple[Cost, Cost]:
    draft, first, further = (
        source.choice([0.0, 0.001, 0.03]),
        source.choice([0.0, 0.01, 0.1]),
        source.choice([0.0, 0.001, 0.02]),
    )
    return lambda width, length: draft, lambda width, length: first + further * width


def written(one: Drawn) -> tuple[Result | AntiphonError, str]:
    """How it ends, and what was shown of it."""

    async def test(device: Device, connection: Connection, network: Network) -> tuple[Result | AntiphonError, str]:
        if one.several:
            both = network.cloud(), Cloud(one.cloud, None, WITHOUT_DOCUMENTS, VirtualWorker(one.costs[1]))
            turn = random.Random(7)
            network.cloud = lambda: turn.choice(both)
        _leave_after_cuts(network, one.away)
        network.arm(*one.cuts)
        settled: list[Piece] = []
        try:
            result = await device.generate(
                one.request, connection, lambda pieces: settled.extend(piece for piece in pieces if not piece.provisional)
            )
        except AntiphonError as error:
            return error, ""
        return result, "".join(piece.text for piece in settled)

    def both() -> tuple[Model, Model]:
        return one.device, one.cloud

    return broken(test, models=both, delay=one.delay, costs=one.costs, mend_seconds=PATIENT)


def _leave_after_cuts(network: Network, away: float | None) -> None:
    cut = network.cut

    def leave(end: Any = None) -> None:
        cut(end)
        network.refuse = away is not None
        if away is not None:
            asyncio.get_running_loop().call_later(away, setattr, network, "refuse", False)

    network.cut = leave  # type: ignore[method-assign]


def compared(seeds: range) -> Counter[str]:
    """What went on in these answers. Raises AssertionError where one is not that of `cloud`."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        one = drawn(seed)
        plain = replace(one.request, method="cloud", options=NoOptions(), on_loss="wait")
        expected, _ = written(replace(one, request=plain, cuts=[], delay=lambda: 0.0))
        found, shown = written(one)
        where = f"answer {seed}: {one.request}"
        if isinstance(expected, AntiphonError) or isinstance(found, AntiphonError):
            assert str(found) == str(expected), where
            seen["refused"] += 1
            continue
        assert (found.token_ids, found.finish_reason) == (expected.token_ids, expected.finish_reason), where
        assert shown == found.text == expected.text, where
        assert found.exact, where
        assert found.drafts[0] <= found.drafts[1], where
        seen.update(answers=1, accepted=found.drafts[0], resumed=found.answer.resumed, revised=found.answer.unsettled.revised)
    return seen


@pytest.mark.core(1)
@pytest.mark.parametrize("first", [0, 30, 60, 90])
def test_random_answers_are_those_of_cloud(first: int) -> None:
    seen = compared(range(first, first + 30))
    assert seen["answers"] > 20
    assert min(seen["accepted"], seen["resumed"], seen["revised"]) > 0


@pytest.mark.slow
def test_more_random_answers_are_those_of_cloud() -> None:
    assert compared(range(1000, 2000))["answers"] > 700


@pytest.mark.medium
def test_a_late_draft_that_is_not_compared_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a line goes on behind a token that is not its own, and the two ends count differently."""

    def add(self: Pending, number: int) -> None:
        if self.next >= len(self._transcript.numbers):
            self.queue.append(number)
        self.next += 1

    monkeypatch.setattr(Pending, "add", add)
    with pytest.raises(AssertionError):
        compared(range(400))
