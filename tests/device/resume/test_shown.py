"""What is shown of an answer that went on: its text once, and one line for each loss."""

from dataclasses import replace
from functools import cache

import pytest

from antiphon.config import Request, SamplingParams
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.effects import Finish
from antiphon.wire import messages as m
from device.resume.cuts import TOYS, asked, assert_cut_anywhere, assert_same, frames, written
from support.broken_links import Network, broken


@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "xcosd", "tslt-tree", "cu-hlm"])
def test_a_cut_after_the_last_token(name: str) -> None:
    """Nothing is missing but `Closed`: the answer is there, and nobody is dialled."""
    what = asked(name)
    whole, network = written(what)
    last = frames(network)
    assert isinstance(network.log[-1][2].message, m.Closed)
    result, network = written(what, (last, "before"))
    assert_same(result, whole)
    assert result.closed is None
    assert (result.answer.resumed, network.dials) == (0, 1)


@cache
def with_a_stop(name: str) -> tuple[Request, Result]:
    """A request whose stop string comes in the middle of a round, and its answer."""
    whole, _ = written(asked(name, tokens=24))
    text = whole.answer.text
    what = replace(asked(name, tokens=24), stop=(text[6:8], "\0never"))
    return what, written(what)[0]


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["cloud", "coupled", "dssd", "coupled-tree"])
def test_a_stop_string_ends_an_answer_that_was_cut(name: str) -> None:
    what, whole = with_a_stop(name)
    assert whole.finish_reason == Finish.STOP
    assert_cut_anywhere(what)


def owing(network: Network) -> int | None:
    """The frame of the last verdict, if the device then owes the last token."""
    sent = [envelope.message for _, _, envelope in network.log]
    owes = isinstance(sent[-2], m.Draft) and sent[-2].count == 0 and isinstance(sent[-3], m.Verdict)
    return len(sent) - 2 if owes else None


@pytest.mark.medium
def test_what_was_held_back_is_shown_where_only_the_end_is_lost() -> None:
    """The text's end could begin a stop string, and the device owes the end, which it drew itself, when the link goes."""
    soon = SamplingParams(temperature=1.0, logit_bias=((TOYS[1].vocabulary.end, 6.0),))
    tried = 0
    for name in ("dssd", "xcosd"):
        for seed in range(20):
            what = replace(asked(name, seed=seed), sampling=soon)
            what = replace(what, stop=(written(what)[0].answer.text[-1:] + "\0",))
            whole, network = written(what)
            if whole.finish_reason == Finish.END and whole.answer.text and (verdict := owing(network)) is not None:
                tried += 1
                assert_same(written(what, (verdict, "after"))[0], whole)
    assert tried > 3, tried


def test_what_is_shown_is_the_text_once() -> None:
    what = asked("coupled", tokens=20)
    whole, _ = written(what)

    async def test(device: Device, connection: Connection, network: Network) -> str:
        network.arm((7, "after"), (20, "before"))
        shown: list[str] = []
        await device.generate(what, connection, lambda pieces: shown.extend(piece.text for piece in pieces))
        return "".join(shown)

    assert broken(test) == whole.answer.text


def test_it_is_said_once_a_loss(caplog: pytest.LogCaptureFixture) -> None:
    result, _ = written(asked("dssd"), (8, "before"))
    assert result.as_json()["resumed"] == 1
    assert [record.getMessage() for record in caplog.records] == [
        "antiphon: the other end closed the link; trying again for 30 s"
    ]
