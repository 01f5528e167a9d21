"""A cloud that was lost takes part again once it is back: every token is what its mark says, before, meanwhile and after."""

import pytest

from antiphon.methods import ALL_METHODS
from antiphon.methods.base import OnLoss
from antiphon.methods.effects import Kind
from antiphon.wire import messages as m
from support.lost_clouds import TOKENS, asked, consulted, cutting, endless, in_sessions, openings
from support.mixtures import answer, dense_answer, require_true, require_whole

REJOINING = [name for name, method in ALL_METHODS.items() if method.on_loss is OnLoss.REJOIN]


@pytest.mark.parametrize("name", REJOINING)
def test_a_link_cut_at_every_message(name: str) -> None:
    """The cloud is there, is lost, and is there again: every consulted step is the dense mixture's throughout."""
    links = cutting(there := endless())
    whole = answer(there, asked(name))
    assert whole.result.answer.resumed == 0
    back = 0
    for place in range(1, len(in_sessions(links[0])), 2 if name == "concord" else 7):
        links = cutting(there := endless(), place)
        told = answer(there, asked(name))
        require_true(there, asked(name), told)
        first, *others = openings(links)
        assert first.committed == ()
        assert [list(opened.committed) for opened in others] == [told.numbers[: len(opened.committed)] for opened in others]
        assert len(others) == told.result.answer.resumed <= 1
        if others and consulted(told)[-1]:
            back += 1
            gap = consulted(told).index(False)
            assert all(consulted(told)[len(others[0].committed) + 20 :]), "and stays"
            assert not any(consulted(told)[gap : len(others[0].committed)]), "without it meanwhile"
            assert {Kind.CONFIRMED, Kind.CHANGED} & set(told.kinds[gap:]), "its evidence decides again"
            assert not told.result.exact, "what was local is not exact"
    assert back > 3


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_an_answer_that_waits_for_every_step_is_dense_again(temperature: float) -> None:
    """Behind the local tokens it is the dense mixture's, token for token."""
    links = cutting(there := endless(), 15)
    request = asked("concord-nosystem", temperature=temperature)
    told = answer(there, request)
    require_true(there, request, told)
    (_, again) = openings(links)
    behind = len(again.committed)
    assert 0 < behind < TOKENS - 5
    assert Kind.LOCAL in told.kinds[:behind]
    assert Kind.LOCAL not in told.kinds[behind + 10 :]
    assert {step.ends for step in told.steps[behind + 10 :]} == {(0,)}


def test_dragon_sampled_goes_on_with_the_cloud() -> None:
    cutting(there := endless(), 20)
    told = answer(there, asked("dragon", temperature=1.0))
    require_whole(there, asked("dragon"), told)
    assert told.result.answer.resumed == 1
    assert Kind.LOCAL in told.kinds
    assert Kind.LOCAL not in told.kinds[-10:]


@pytest.mark.parametrize(("places", "tokens"), [((8, 12, 5), 120), ((12,) * 11, 400)])
def test_it_may_be_lost_more_than_once(places: tuple[int, ...], tokens: int) -> None:
    """As often as it likes, if its evidence came in between."""
    links = cutting(there := endless(), *places)
    request = asked("concord", tokens=tokens)
    told = answer(there, request)
    require_true(there, request, told)
    assert told.result.answer.resumed == len(places)
    assert len(openings(links)) == len(places) + 1
    assert all(consulted(told)[-20:])


def test_the_other_cloud_decides_meanwhile() -> None:
    there = endless(2)
    cutting(there, 12, end=1)
    request = asked("concord-nosystem")
    told = answer(there, request)
    require_true(there, request, told)
    assert Kind.LOCAL not in told.kinds
    parts = [step.ends for step in told.steps]
    gone, back = parts.index((0,)), len(parts) - parts[::-1].index((0,))
    assert parts == [(0, 1)] * gone + [(0,)] * (back - gone) + [(0, 1)] * (TOKENS - back)
    assert 0 < gone < back < TOKENS
    assert told.result.closed is not None, "both say what it cost in the end"
    assert not told.result.costs_known, "but not what the lost session did"


def test_a_cloud_that_is_lost_before_it_says_what_it_found() -> None:
    cutting(there := endless(), 1)
    told = answer(there, asked())
    require_true(there, asked(), told)
    assert told.kinds[0] is Kind.LOCAL
    assert consulted(told)[-1]


# Figures


def test_bits_and_tokens_are_those_of_both_sessions() -> None:
    links = cutting(there := endless(), 12)
    told = answer(there, asked())
    mine = [one for frames in links for one in in_sessions(frames)]
    setup = [one for one in mine if isinstance(one.message, m.Open | m.Opened)]
    traffic = told.result.traffic
    assert traffic.setup.frames == len(setup) == 4
    assert traffic.up.frames + traffic.down.frames + traffic.setup.frames >= len(mine) - 2, (
        "the last words are not counted twice"
    )
    payload = sum(m.payload_bits(one.message) for one in mine)
    assert traffic.up.payload_bits + traffic.down.payload_bits == payload
    row = told.result.as_json()
    assert row["resumed"] == 1
    assert row["exact"] is False
    assert row["prompt_tokens"] == answer(endless(), asked()).result.prompt_tokens
    assert row["cloud_ms_per_token"] is None


def test_an_answer_without_a_loss_is_the_dense_one_as_before() -> None:
    there, request = endless(), asked("concord-nosystem")
    told = answer(there, request)
    assert told.numbers == dense_answer(there, request)
    assert told.result.exact
