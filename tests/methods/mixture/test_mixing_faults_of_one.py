"""One cloud of two fails: the other still takes part."""

from typing import Any

import pytest

from antiphon.methods.effects import Kind
from methods.mixture.wrong_clouds import FAULTS, IN_TIME, cutting, silent_from, wrong
from support.mixtures import (
    answer,
    dense_answer,
    question,
    require_true,
    world,
)

BROKEN = {
    "silent from the start": silent_from(0),
    "silent at the first evidence": silent_from(1),
    "silent later": silent_from(4),
    **{name: FAULTS[name] for name in ("weight that is no number", "a step left out", "ones", "a verdict")},
}


@pytest.mark.core(5)
@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("name", ["concord", "concord-nosystem", "drdg-tw"])
@pytest.mark.parametrize("end", [0, 1])
def test_the_other_cloud_still_takes_part(name: str, spoil: Any, end: int) -> None:
    there = world(4, 2, halves={end: {name: wrong(name, spoil)}})
    request = question(name, tokens=16)
    told = answer(there, request)
    require_true(there, request, told)
    assert told.seconds < IN_TIME
    decided = [step.ends for step in told.steps if step.kind in (Kind.CONFIRMED, Kind.CHANGED)]
    assert (1 - end,) in decided


@pytest.mark.core(1)
@pytest.mark.parametrize("end", [0, 1])
def test_one_of_two_links_cut_at_every_message(end: int) -> None:
    for place in range(1, 12):
        there, request = world(4, 2), question("concord-nosystem", tokens=8)
        cutting(there, place, end)
        told = answer(there, request)
        require_true(there, request, told)
        assert told.steps[-1].ends in ((0, 1), (1 - end,))
        assert Kind.LOCAL not in told.kinds, "the other one is waited for"


def test_a_refusal_of_one_cloud_is_none_of_the_other() -> None:
    there = world(4, 2)
    there.clouds[1].model.context_length = 40  # the prompt alone is longer
    request = question("concord-nosystem")
    told = answer(there, request)
    require_true(there, request, told)
    assert {step.ends for step in told.steps} == {(0,)}
    assert told.numbers == dense_answer(there, request, [0])
