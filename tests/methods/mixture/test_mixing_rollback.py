"""The cloud follows: rollbacks near and far, ends of its own line, the borders of an answer, one question after another."""

from typing import Any

import pytest

from antiphon.methods.effects import Kind
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import context, look
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from methods.mixture.rolled_back import STEPWISE, tapped
from support.mixtures import (
    PIECES,
    Crossed,
    End,
    Reader,
    World,
    answer,
    dense_answer,
    dense_token,
    distribution,
    local_token,
    question,
    require_true,
    require_whole,
    virtually,
    world,
)

CODEC = ScoreCodec(len(PIECES), 7)


def of(frames: list[Crossed], kind: type) -> list[Any]:
    return [crossed.message for crossed in frames if isinstance(crossed.message, kind)]


@pytest.mark.core(3)
@pytest.mark.parametrize("ahead", range(1, 9))
@pytest.mark.parametrize("realign", ["soft", "hard"])
def test_every_distance_ahead(ahead: int, realign: str) -> None:
    for seed, wait in ((1, 0.0), (2, 0.02)):
        there, request = world(seed), question("concord", ahead=ahead, realign=realign, timeout=wait, tokens=24)
        require_true(there, request, answer(there, request))


def test_a_draft_that_is_not_the_token_is_rolled_back_at_once() -> None:
    """One token in the message, a new epoch; evidence of the old one that was on its way is not used."""
    there, request = world(2), question("concord-nosystem", tokens=24)
    frames = tapped(there)
    told = answer(there, request)
    assert told.numbers == dense_answer(there, request)
    realigned = of(frames, m.Realign)
    assert [message.epoch for message in realigned] == list(range(1, len(realigned) + 1))
    assert all(message.count == 1 for message in realigned)
    assert len(realigned) > 3
    late, epoch = 0, 0
    for crossed in frames:
        message = crossed.message
        epoch = message.epoch if isinstance(message, m.Realign) else epoch
        late += isinstance(message, m.Evidence) and message.epoch < epoch
    assert late > 3, "some was on its way, or this says nothing"


def test_evidence_that_comes_long_after_its_step() -> None:
    """The device is far ahead; the first difference takes the cloud to where the device is, in one message of many tokens."""
    link = "rtt=400ms,up=100Mbit,down=100Mbit,handshakes=0"
    there = world(3, links=[link], masses=(0.0, 0.0), end=-99.0)
    request = question("concord", tokens=100, timeout=0.001, short_timeout=0.001)
    frames = tapped(there)
    told = answer(there, request)
    require_true(there, request, told)
    realigned = of(frames, m.Realign)
    assert max(message.count for message in realigned) > 8
    for message in realigned:
        assert message.payload == CODEC.tokens(told.numbers[message.step : message.step + message.count])


def test_late_evidence_that_agrees_costs_nothing() -> None:
    """A timeout alone invalidates nothing: equal models, a link that is slow once, and no rollback at all."""
    link = "rtt=20ms,up=100Mbit,down=100Mbit,handshakes=0,outage=0.2s-0.38s"
    there = world(3, links=[link], masses=(0.0, 0.0), end=-99.0, verify_s=0.005)
    there.clouds[0] = End(there.device.model, there.device.shelf)  # one mind
    request = question("concord", tokens=60, timeout=0.01)
    frames = tapped(there)
    told = answer(there, request)
    require_true(there, request, told)
    assert Kind.LOCAL in told.kinds
    assert told.kinds[-1] is Kind.CONFIRMED
    assert of(frames, m.Realign) == []


def test_hard_realigning_clears_the_line_at_every_timeout() -> None:
    """As the paper does: also where the drafts would have agreed."""
    there = world(3, masses=(0.0, 0.0), end=-99.0, links=["rtt=300ms,up=100Mbit,down=100Mbit,handshakes=0"])
    there.clouds[0] = End(there.device.model, there.device.shelf)
    rows = {}
    for realign in ("soft", "hard"):
        frames = tapped(there)
        request = question("concord", tokens=40, timeout=0.001, realign=realign, ahead=8)
        told = answer(there, request)
        require_true(there, request, told)
        rows[realign] = told.kinds.count(Kind.LOCAL), len(of(frames, m.Realign))
    assert rows["hard"][1] >= rows["hard"][0] - 1
    assert rows["soft"][1] <= rows["soft"][0] // 4


def test_a_cloud_that_fell_far_behind_is_told_where_the_answer_is() -> None:
    """More than W steps: its own way there would take longer than the message."""
    there = world(3, masses=(0.0, 0.0), end=-99.0, verify_s=0.2)
    there.clouds[0] = End(there.device.model, there.device.shelf)
    request = question("concord", tokens=60, timeout=0.001, ahead=4)
    frames = tapped(there)
    require_true(there, request, answer(there, request))
    counts = [message.count for message in of(frames, m.Realign)]
    assert counts
    assert min(counts) > 4


def test_progress_is_told_now_and_then() -> None:
    """Half of W between two messages where every draft is taken."""
    there = world(3, end=-99.0)
    there.clouds[0] = End(there.device.model, there.device.shelf)
    for ahead, least, most in ((1, 39, 40), (2, 39, 40), (8, 8, 10), (64, 1, 2)):
        frames = tapped(there)
        told = answer(there, question("concord-nosystem", tokens=40, ahead=ahead))
        assert len(set(told.kinds)) <= 2
        steps = [message.step for message in of(frames, m.Progress)]
        assert least - 1 <= len(steps) <= most
        assert steps == sorted(set(steps))


@pytest.mark.core(6)
@pytest.mark.parametrize("ahead", [1, 2, 8])
@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_who_is_sure_of_itself_does_not_starve_its_cloud(ahead: int, seed: int) -> None:
    """A device that commits certain tokens faster than evidence comes still tells the cloud to go on before it waits."""
    there = world(seed, masses=(3.0, 0.0), agree=0.9, sharpness=10.0, draft_s=0.001, verify_s=0.02)
    request = question("concord-nosystem", ahead=ahead, tokens=32)
    told = answer(there, request)
    require_true(there, request, told)
    assert Kind.LOCAL not in told.kinds
    assert told.seconds < 3.0


def ending(seed: int, device: float, cloud: float) -> World:
    """How much each end likes to end the answer."""
    there = world(seed, masses=(1.0, 0.0))
    there.device = End(Reader(1000 * seed, end=device), there.device.shelf)
    there.clouds = [End(Reader(1000 * seed + 1, end=cloud), there.clouds[0].shelf)]
    return there


@pytest.mark.core(1)
@pytest.mark.parametrize("method", STEPWISE)
def test_an_end_in_the_clouds_own_line(method: str) -> None:
    """It stops there; where the answer goes on it is realigned, and takes part again."""
    ended = 0
    for seed in range(6):
        there, request = ending(seed, -99.0, 6.0), question(method, tokens=16)
        frames = tapped(there)
        told = answer(there, request)
        require_true(there, request, told)
        assert Kind.LOCAL not in told.kinds[:3] or method in ("concord", "concord-nocomm")
        drafts = [
            int(distribution(there.clouds[0], request, told.numbers[:step]).argmax()) for step in range(len(told.numbers))
        ]
        ended += sum(PIECES[draft] == b"" and PIECES[number] != b"" for draft, number in zip(drafts, told.numbers, strict=True))
        assert of(frames, m.Realign) or told.numbers == drafts
    assert ended > 5, "the cloud does want to end"


@pytest.mark.core(3)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("ends", [(6.0, -99.0), (5.0, 5.0), (-99.0, 8.0)])
def test_ends_of_answers_are_dense_too(ends: tuple[float, float], temperature: float) -> None:
    finished = 0
    for seed in range(4):
        there = ending(seed, *ends)
        request = question("concord-nosystem", temperature=temperature, tokens=40)
        told = answer(there, request)
        assert told.numbers == dense_answer(there, request)
        finished += told.result.finish_reason == "end"
    assert finished


@pytest.mark.core(9)
@pytest.mark.parametrize("method", [*STEPWISE, "drdg-sw", "drcg", "crcg"])
@pytest.mark.parametrize("tokens", [1, 2])
def test_the_shortest_answers(method: str, tokens: int) -> None:
    for seed in range(3):
        there, request = world(seed), question(method, tokens=tokens)
        told = answer(there, request)
        require_whole(there, request, told)
        if method in STEPWISE:
            require_true(there, request, told)
        assert told.seconds < 2.0


def test_no_step_is_scored_beyond_the_longest_answer() -> None:
    for tokens in (1, 2, 5):
        there = world(3, end=-99.0)
        frames = tapped(there)
        told = answer(there, question("concord-nosystem", tokens=tokens, ahead=64))
        assert max(message.step for message in of(frames, m.Evidence)) == tokens - 1
        assert told.result.passes <= tokens + 2 * len(of(frames, m.Realign))
        assert not [message for message in of(frames, m.Realign) if message.step + message.count >= tokens]


def test_a_context_that_holds_the_answer_to_its_last_cell() -> None:
    """The device needs cells for its prompt and for all tokens but the last; one less, and a passage is left out."""
    there, request = world(3, end=-99.0), question("concord", tokens=10)
    text = context(look(there.device.shelf, request.prompt, 2).passages, request.prompt, "question")
    cells = len(prompt_ids(there.device.model, text, chat=False)) + 9
    there.device.model.context_length = cells
    told = answer(there, request)
    require_true(there, request, told)
    assert told.result.looked is not None
    assert len(told.result.looked.passages) == 2
    there.device.model.context_length = cells - 1
    told = answer(there, request)
    assert told.result.looked is not None
    assert len(told.result.looked.passages) == 1


@pytest.mark.core(3)
@pytest.mark.parametrize("method", [*STEPWISE, "drdg-sw"])
def test_a_stop_string_ends_the_answer(method: str) -> None:
    """The text up to it; the cloud is told to stop, and the next question of the connection is whole."""

    async def run() -> None:
        there = world(3, end=-99.0)
        async with there.ends() as (device, connections):
            whole = await device.generate(question(method, tokens=40), connections)
            stop = whole.answer.text[6:8]
            stopped = await device.generate(question(method, tokens=40, stop=(stop,)), connections)
            again = await device.generate(question(method, tokens=40), connections)
        text = whole.answer.text
        assert stopped.finish_reason == "stop"
        assert stopped.answer.text == text[: text.index(stop)]
        assert stopped.token_ids == whole.token_ids[: stopped.tokens]
        assert stopped.closed is not None
        assert stopped.closed.reason == "cancelled"
        assert again.token_ids == whole.token_ids

    virtually(run())


def test_the_reference_differs_from_each_end_alone() -> None:
    """Else equality with it would be no feat."""
    alike = {"device": 0, "cloud": 0}
    there, request, numbers = world(4), question("concord"), list[int]()
    for _ in range(60):
        dense = dense_token(there, request, numbers, [0])
        alike["device"] += dense == local_token(there, request, numbers)
        alike["cloud"] += dense == int(distribution(there.clouds[0], request, numbers).argmax())
        numbers.append(dense)
    assert all(10 < count < 55 for count in alike.values()), alike
