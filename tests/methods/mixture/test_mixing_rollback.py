"""The cloud follows: rollbacks near and far, ends of its own line, the borders of an answer, one question after another."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.errors import RemoteError
from antiphon.methods.effects import Kind
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import context, look
from antiphon.wire import messages as m
from antiphon.wire.scores import ScoreCodec
from antiphon.wire.session import Life
from support.examples import examples
from support.mixtures import (
    PIECES,
    Crossed,
    End,
    Reader,
    Shelf,
    Tap,
    World,
    answer,
    ask,
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
STEPWISE = ["concord", "concord-nosystem", "concord-nocomm", "dragon", "drdg-tw"]


def tapped(there: World) -> list[Crossed]:
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames)
    return frames


def of(frames: list[Crossed], kind: type) -> list[Any]:
    return [crossed.message for crossed in frames if isinstance(crossed.message, kind)]


# Rollbacks


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


# Ends


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


# Prompts


@pytest.mark.parametrize("method", ["concord-nosystem", "drdg-tw"])
def test_a_conversation(method: str) -> None:
    """Passages and question together are the message, in each model's own template."""
    there, request = world(3), question(method, chat=True)
    there.device.model.chat_template = "<{{ messages[0].content }}>"
    there.clouds[0].model.chat_template = "[{{ messages[0].content }}]{% if add_generation_prompt %}:{% endif %}"
    told = answer(there, request)
    require_true(there, request, told)
    assert told.numbers != answer(there, replace(request, chat=False)).numbers


def test_a_cloud_without_a_template_says_so() -> None:
    there = world(3)
    there.device.model.chat_template = "<{{ messages[0].content }}>"
    with pytest.raises(RemoteError, match="has no chat template: leave out --chat"):
        answer(there, question("concord", chat=True))


@pytest.mark.parametrize("form", ["question", "text"])
@pytest.mark.parametrize("kept", [1, 2, 64])
def test_forms_and_passages(form: str, kept: int) -> None:
    there, request = world(3), question("concord-nosystem", prompt_format=form, passages=kept, prompt="once upon a time")
    if kept == 1:  # what it weighs is another sum then
        there.device.shelf, there.clouds[0].shelf = Shelf(("one", 0.4)), Shelf(("other", 0.1))
    require_true(there, request, answer(there, request))


# One question after another


def test_questions_one_after_the_other() -> None:
    """Each is what it would be alone, whatever was on its way when the one before ended."""

    async def run(methods: list[str]) -> list[list[int]]:
        there = world(4, links=["rtt=300ms,up=10Mbit,down=1Mbit,handshakes=0,jitter=20ms"])
        found = []
        async with there.ends() as (device, connections):
            for number, method in enumerate(methods):
                request = question(method, prompt=f"question {number}?", tokens=6, ahead=64, seed=number)
                told = await ask(there, device, connections, request)
                if method in STEPWISE:
                    require_true(there, request, told)
                found.append(told.numbers)
        return found

    methods = ["concord-nosystem", "concord", "drdg-tw", "drdg-sw", "dragon", "drcg", "crcg", "concord-nocomm"] * 2
    together = virtually(run(methods))
    assert len(together) == len(methods)
    assert together == virtually(run(methods))


def test_evidence_of_an_old_question_is_never_used() -> None:
    """The old session's cloud goes on sending for a while: long answers of a cloud with much room ahead, and a slow link."""

    async def run() -> None:
        there = world(4, links=["rtt=400ms,up=10Mbit,down=200kbit,handshakes=0"], end=-99.0)
        frames = tapped(there)
        async with there.ends() as (device, connections):
            first = question("concord", prompt="first?", tokens=2, ahead=64)
            second = question("concord-nosystem", prompt="second?", tokens=12, ahead=64)
            await ask(there, device, connections, first)
            require_true(there, second, await ask(there, device, connections, second))
            sessions = {crossed.session for crossed in frames if isinstance(crossed.message, m.Evidence)}
            assert sessions == {1, 2}
            assert connections[0].wire.life(1) is connections[0].wire.life(2) is Life.ENDED

    virtually(run())


@pytest.mark.parametrize("method", ["concord", "concord-nosystem", "dragon"])
def test_two_questions_at_once_over_one_connection(method: str) -> None:
    async def run() -> None:
        there = world(4)
        requests = [question(method, prompt=f"question {number}?", tokens=12) for number in range(3)]
        async with there.ends() as (device, connections):
            results = await asyncio.gather(*(device.generate(one, connections) for one in requests))
        for one, result in zip(requests, results, strict=True):
            if method == "concord-nosystem":
                assert list(result.token_ids) == dense_answer(there, one)
            else:
                assert result.tokens == 12 or result.finish_reason == "end"

    virtually(run())


@pytest.mark.medium
@examples(30)
@given(
    seed=st.integers(0, 99),
    questions=st.lists(
        st.tuples(st.sampled_from([*STEPWISE, "drdg-sw"]), st.sampled_from([0.0, 0.9]), st.integers(1, 9)),
        min_size=2,
        max_size=4,
    ),
    jitter=st.sampled_from([0, 30]),
)
@example(seed=79, questions=[("drdg-sw", 0.0, 3), ("concord", 0.0, 1)], jitter=0)
def test_any_questions_in_any_order(seed: int, questions: list[tuple[str, float, int]], jitter: int) -> None:
    async def run() -> None:
        there = world(seed, links=[f"rtt=60ms,up=10Mbit,down=1Mbit,jitter={jitter}ms,handshakes=0"])
        async with there.ends() as (device, connections):
            for number, (method, temperature, tokens) in enumerate(questions):
                request = question(method, temperature=temperature, tokens=tokens, prompt=f"question {number}?")
                told = await ask(there, device, connections, request)
                require_whole(there, request, told)
                if method in STEPWISE and not (method == "dragon" and temperature):
                    require_true(there, request, told)

    virtually(run())


# The dense reference itself


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
