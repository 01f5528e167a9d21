"""One question after another and two at once: no evidence of an old one is ever used."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from antiphon.errors import RemoteError
from antiphon.wire import messages as m
from antiphon.wire.session import Life
from methods.mixture.rolled_back import STEPWISE, tapped
from support.examples import examples
from support.mixtures import (
    Shelf,
    answer,
    ask,
    dense_answer,
    question,
    require_true,
    require_whole,
    virtually,
    world,
)


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
