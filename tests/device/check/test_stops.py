"""`--check` compares the tokens of a stop string too: they decide where an answer ends, though nobody is shown them."""

from dataclasses import replace
from typing import Any

import pytest

from antiphon.config import SamplingParams
from antiphon.device.check import Check, Finding, check, first_difference
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.verifier import Verifier
from antiphon.options import NoOptions
from device.check.checked import Ask, asking, moved, widen
from support.links import linked


def stopped(ask: Ask, count: int, *, both: bool) -> list[Check]:
    """What is found where one answer, or both, end with the very tokens in which they differ without stop strings."""

    async def test(device: Device, connection: Connection) -> list[Check]:
        found = []
        for asked in map(ask, range(count)):
            ours = await device.generate(asked, connection)
            theirs = await device.generate(replace(asked, method="cloud", options=NoOptions()), connection)
            if (index := first_difference(ours.answer.numbers, theirs.answer.numbers)) is None:
                continue
            pieces = [connection.common.pieces[one.answer.numbers[index]].decode("latin-1") for one in (ours, theirs)]
            before = b"".join(connection.common.pieces[number] for number in ours.answer.numbers[:index]).decode("latin-1")
            if any(piece in before or not piece.isascii() for piece in pieces):
                continue
            for stop in [tuple(pieces)] if both else [(pieces[0],), (pieces[1],)]:
                ended = replace(asked, stop=stop)
                found.append(await check(device, ended, await device.generate(ended, connection), connection))
                assert found[-1].first_difference == index
        return found

    return linked(test)


@pytest.mark.core(1)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_a_near_tie_in_a_stop_string_is_one(method: str, both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer ends there and the other goes on, or both end with the same text by different strings."""
    widen(monkeypatch)
    found = stopped(asking(method, SamplingParams()), 12, both=both)
    assert len(found) >= 3
    assert {one.finding for one in found} == {Finding.NEAR_TIE}


@pytest.mark.medium
def test_a_fault_in_a_stop_string_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Verifier.score

    def score(self: Verifier, drafts: Any, quantise: Any) -> Any:
        targets = yield from plain(self, drafts, quantise)
        targets.logits[1:] = moved(targets.logits[1:])
        return targets

    monkeypatch.setattr(Verifier, "score", score)
    found = stopped(asking("coupled", SamplingParams()), 16, both=False)
    assert len(found) >= 3
    assert {one.finding for one in found} == {Finding.FAULT}
    assert all("one answer ends" not in one.sentence() for one in found)
