"""Tapes: an answer that is played again goes to the last bit as one that is written, on any link."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.stream import LOCKSTEP as WITHOUT_END
from antiphon.device.answer import Result
from antiphon.errors import ProtocolError, RemoteError
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.models.toy import named_toy
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute, PassCost
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.virtual_time import run_virtual
from antiphon_lab.papers.tapes import DRIFTED, Looked, Player, Recorder, Reel, Sent, Tape, Waited

HARDWARE = Compute("test", PassCost(3.7, 0.2, 1.1), PassCost(31.3, 0.7, 2.3), "made up")
SLOW_DRAFTS = Compute("test", PassCost(15.0), PassCost(31.3), "made up: a verdict comes while drafts are made")
FIRST = "x-cosd@100"
LINKS = ("tslt@0.1", "4g", "rtt=90ms,up=64kbit,down=128kbit,jitter=9ms,loss=5%,outage=1s-2s,every=5s")
PROMPTS = ("the river ", "in the hills ")
LOCKSTEP = {
    "cloud": {},
    "dsd": {},
    "dssd": {"draft_length": 4},
    "xcosd": {"draft_length": 1},
    "xcosd-e": {"draft_length": 2},
    "gr": {},
    "tr": {},
    "u-hlm": {},
    "cu-hlm": {},
    "tslt": {"truncate": "k=20"},
    "tslt-tree": {"replacement": True, "truncate": "k=20"},
    "coupled": {"draft_length": 3, "ahead": 0, "patience": WITHOUT_END},
    "coupled-tree": {"expansion": "3,2", "patience": WITHOUT_END},
}


def requests(method: str) -> list[Request]:
    options = WITHOUT_DOCUMENTS[method].options_from(LOCKSTEP[method])
    sampling = SamplingParams(temperature=1.0)
    return [Request(prompt, method, options, sampling, 40, seed=place) for place, prompt in enumerate(PROMPTS)]


def answers(
    asked: Sequence[Request], link: str, methods=WITHOUT_DOCUMENTS, each=lambda place: None, hardware: Compute = HARDWARE
) -> list[Result]:
    async def written() -> list[Result]:
        found = []
        toys = named_toy("toy-cloud"), named_toy("toy-device")
        async with virtual_ends(*toys, parse_link(link), hardware, methods) as (device, connection):
            for place, request in enumerate(asked):
                each(place)
                found.append(await device.generate(request, connection))
                each(place)
        return found

    return run_virtual(written())


def recorded(asked: Sequence[Request], hardware: Compute = HARDWARE) -> list[Tape]:
    recorder, tapes = Recorder(), {}
    answers(asked, FIRST, recorder.methods, lambda place: tapes.update({place: recorder.tape}), hardware)
    assert all(tape.complete for tape in tapes.values())
    return list(tapes.values())


def played(asked: Sequence[Request], tapes: Sequence[Tape], link: str, hardware: Compute = HARDWARE) -> list[Result]:
    player = Player()
    return answers(asked, link, player.methods, lambda place: setattr(player, "tape", tapes[place]), hardware)


@pytest.mark.core(2)
@pytest.mark.parametrize("method", LOCKSTEP)
@pytest.mark.parametrize("link", LINKS)
def test_a_played_answer_is_the_direct_one(method: str, link: str) -> None:
    asked = requests(method)
    tapes = [msgspec.json.decode(msgspec.json.encode(tape), type=Tape) for tape in recorded(asked)]
    direct, again = answers(asked, link), played(asked, tapes, link)
    for one, other in zip(direct, again, strict=True):
        assert other.as_json() == one.as_json()
        assert other.answer.emissions == one.answer.emissions
        assert other.traffic == one.traffic
        assert other.closed == one.closed


def test_links_differ() -> None:
    """Else the test above would say nothing."""
    asked = requests("dssd")
    seconds = {link: answers(asked, link)[0].answer.seconds for link in (FIRST, *LINKS)}
    assert len(set(seconds.values())) == len(seconds)


@pytest.mark.medium
def test_looks_that_find_the_same_are_played() -> None:
    """`coupled` drafts ahead; on a link like the first one its looks find what they found."""
    asked = drafting_ahead()
    tapes = recorded(asked)
    assert any(isinstance(event, Waited) and event.within == 0 and not event.came for event in tapes[0].device.events)
    direct, again = answers(asked, "x-cosd@300"), played(asked, tapes, "x-cosd@300")
    assert [one.as_json() for one in again] == [one.as_json() for one in direct]


def drafting_ahead(drafts: int = 3) -> list[Request]:
    """Answers of 40 tokens, as no end is ever drawn, and so many drafts while a verdict is on its way."""
    options = WITHOUT_DOCUMENTS["coupled"].options_from({"draft_length": 3, "ahead": drafts, "patience": WITHOUT_END})
    ends = named_toy("toy-cloud").vocabulary.ends
    endless = SamplingParams(temperature=1.0, logit_bias=tuple((end, -1000.0) for end in ends))
    return [replace(request, options=options, sampling=endless) for request in requests("coupled")]


@pytest.mark.core(1)
@pytest.mark.parametrize("link", ["x-cosd@100,rtt=150ms", "tslt@0.01"])
def test_looks_that_find_something_else_end_the_play(link: str) -> None:
    """Eight drafts of 15 ms: the verdict comes while they are made, and on a slower link it does not."""
    asked = drafting_ahead(8)
    tapes = recorded(asked, SLOW_DRAFTS)
    assert played(asked, tapes, FIRST, SLOW_DRAFTS)
    with pytest.raises((ProtocolError, RemoteError)) as drift:
        played(asked, tapes, link, SLOW_DRAFTS)
    assert drift.value.code == DRIFTED


def test_what_is_on_a_tape() -> None:
    (tape, _) = recorded(requests("dssd"))
    kinds = [type(event).__name__ for event in tape.device.events[:10]]
    assert kinds == ["Looked", "Pass", "Looked", "Pass", "Pass", "Pass", "Looked", "Looked", "Sent", "Waited"]
    assert isinstance(tape.device.events[0], Looked)
    sent = tape.device.events[8]
    assert isinstance(sent, Sent)
    assert (sent.kind, sent.numbers) == ("Draft", (0, 4))
    assert sent.size == -(-4 * (9 + 16) // 8)
    assert len(msgspec.json.encode(tape)) < 12_000


def test_an_answer_that_ends_early_leaves_no_tape() -> None:
    recorder = Recorder()
    assert not recorder.tape.complete
    request = replace(requests("dssd")[0], stop=("e",))
    answers([request], FIRST, recorder.methods)
    assert not recorder.tape.complete


def test_a_half_handles_its_own_failures_on_tape() -> None:
    """A device whose context is full goes on without drafts; so does its tape."""

    async def written(methods) -> Result:
        cloud, device = named_toy("toy-cloud"), named_toy("toy-device")
        device.context_length = 20
        async with virtual_ends(cloud, device, parse_link(FIRST), HARDWARE, methods) as (device_end, connection):
            return await device_end.generate(requests("dssd")[0], connection)

    recorder, player = Recorder(), Player()
    direct = run_virtual(written(recorder.methods))
    assert direct.answer.exchanged.drafted < 3 * direct.answer.rounds
    player.tape = recorder.tape
    assert run_virtual(written(player.methods)).as_json() == direct.as_json()


def test_an_empty_tape_is_not_complete() -> None:
    assert not Tape(Reel([]), Reel([])).complete
