"""How `--check` makes the passes of an answer again, and what it says without them."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from antiphon.device.answer import Result
from antiphon.device.check import Finding, judged, probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods.baselines.u_hlm import UncertaintyOptions
from antiphon.methods.probe import Question
from antiphon.methods.speculative.options import ChainOptions
from antiphon.methods.speculative.tslt_tree import TsltTreeOptions
from antiphon.methods.verifier import Targets
from antiphon.models.toy import ToyContext, named_toy
from antiphon.options import NoOptions
from antiphon.wire.messages import Probed
from device.check.checked import GREEDY, SHIFT, asking, differing, disturb, findings, widen
from support.links import linked, request


def lost(result: Result) -> Result:
    """As if the cloud had the passes of the answer no more."""
    return replace(result, session=0)


def test_without_the_passes_noise_is_undecided_and_says_below_what(monkeypatch: pytest.MonkeyPatch) -> None:
    widen(monkeypatch)
    for one in differing(findings(asking("dssd", GREEDY), 8, lost)):
        assert one.finding is Finding.UNDECIDED
        assert one.moved is None
        assert "undecided below 0.2 logits: the cloud has the passes of the answer no more" in one.sentence()


@pytest.mark.medium
def test_without_the_passes_a_fault_above_the_noise_is_still_one(monkeypatch: pytest.MonkeyPatch) -> None:
    widen(monkeypatch, shift=0.01)
    plain = Targets.probs
    monkeypatch.setattr(Targets, "probs", lambda self, index: plain(self, 0))
    found = differing(findings(asking("coupled", GREEDY), 8, lost))
    assert Finding.FAULT in {one.finding for one in found}
    for one in found:
        assert (one.finding is Finding.FAULT) == (one.gap is None or one.gap > 0.011)


def seen(plain: int, again: int | None = None, **more: Any) -> Probed:
    fields: dict[str, Any] = {"plain": (0.2, 0.3), "again": (0.3, 0.2), "recorded": True, "made": again is not None}
    fields |= {"shift": 0.1, "moved": 0.2, "noise": 0.2}
    return Probed((0.5,), (plain, plain if again is None else again), **{**fields, **more})


@pytest.mark.parametrize(
    ("probed", "shared", "resumed", "finding"),
    [
        (seen(4, 3), False, False, Finding.NEAR_TIE),
        (seen(4, 3), True, False, Finding.NEAR_TIE),
        (seen(4, 3, moved=0.41), False, False, Finding.FAULT),
        (seen(4, 4), False, False, Finding.FAULT),
        (seen(4, 5), False, False, Finding.FAULT),
        (seen(3, 3), False, False, Finding.FAULT),
        (seen(4, 4), True, False, Finding.UNDECIDED),
        (seen(3, 3), True, False, Finding.UNDECIDED),
        (seen(4, 4, shift=0.3), True, False, Finding.FAULT),
        (seen(4), False, False, Finding.FAULT),
        (seen(4), False, True, Finding.UNDECIDED),
        (seen(4, recorded=False), False, False, Finding.UNDECIDED),
        (seen(4, recorded=False, shift=0.3), False, False, Finding.FAULT),
        (seen(4, recorded=False, shift=float("inf")), False, False, Finding.FAULT),
    ],
)
def test_what_is_said_of_what_was_seen(probed: Probed, shared: bool, resumed: bool, finding: Finding) -> None:
    """The method's token is 3, cloud's is 4."""
    found = judged(Question((), (3, 4), 4), probed, 7, shared=shared, resumed=resumed)
    assert (found.finding, found.first_difference, found.shared) == (finding, 7, shared)
    said = {"near tie": "a near tie", "fault": "NOT a near tie: a fault", "undecided": "undecided below 0.2 logits"}
    assert said[finding] in found.sentence()


def test_the_probe_sees_what_the_model_says() -> None:
    async def test(device: Device, connection: Connection) -> None:
        asked = request("dssd", temperature=0, tokens=10)
        result = await device.generate(asked, connection)
        numbers = tuple(result.answer.numbers[:5])
        found = await probe(connection, asked, Question(numbers, (3, result.answer.numbers[5]), 4, session=result.session))
        assert found.winners == (result.answer.numbers[5],) * 2
        assert found.plain == found.again == (0, 1)
        assert (found.noise, found.moved, found.recorded) == (0, 0, True)
        model, ids = named_toy("toy-cloud"), connection.common.cloud_ids
        row = model.logits([*model.tokenize(asked.prompt), *ids[list(numbers)].tolist()])
        gap = float(row.max() - row[ids[3]])
        assert found.shift == pytest.approx(gap / 2, rel=0.15)
        assert len(found.shares) == len(numbers) + 1
        assert all(0 < share <= 1 for share in found.shares)

    linked(test)


@pytest.mark.parametrize("silent", [0, 16])
@pytest.mark.parametrize("numbers", [(), (5,), (5, 6, 7, 8, 9, 10, 11)])
def test_a_short_continuation_is_read_in_full_width_too(
    numbers: tuple[int, ...], silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    widen(monkeypatch, 9)

    async def test(device: Device, connection: Connection) -> list[float]:
        asked = [
            request("dssd", temperature=0, tokens=10, prompt=prompt) for prompt in ("the ", "the thing and the other " * 9)
        ]
        return [(await probe(connection, one, Question(numbers, (3, 4), 9, 64, silent))).noise for one in asked]

    assert linked(test) == [pytest.approx(SHIFT, abs=1e-3)] * 2


@pytest.mark.medium
def test_passes_of_many_answers_are_kept_until_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.cloud.records.RECORDED", 200)

    async def test(device: Device, connection: Connection) -> list[bool]:
        asked = request("dssd", temperature=0, tokens=30)
        results = [await device.generate(replace(asked, max_tokens=tokens), connection) for tokens in [*[30] * 7, 400]]
        questions = [Question((), (3, 4), 4, session=result.session) for result in results]
        return [(await probe(connection, asked, question)).recorded for question in questions]

    *short, long = linked(test)
    assert not long
    assert short == sorted(short)
    assert 0 < sum(short) < len(short)


def test_others_get_the_model_between_the_passes_of_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two probes at once: their passes take turns."""
    readers: list[ToyContext] = []
    disturb(lambda context, logits, _: readers.append(context) or logits, monkeypatch)

    async def test(device: Device, connection: Connection) -> None:
        asked = request("dssd", temperature=0, tokens=10)
        numbers = tuple((await device.generate(replace(asked, max_tokens=30), connection)).answer.numbers)
        readers.clear()
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(probe(connection, asked, Question(numbers, (3, 4), 4)))

    linked(test)
    turns = sum(before is not after for before, after in pairwise(readers))
    assert turns > 20


def test_the_width_that_is_probed_is_that_of_the_method() -> None:
    assert request("dssd", draft_length=5).options.max_drafts == 5
    assert ChainOptions().max_drafts == ChainOptions().draft_length
    assert TsltTreeOptions(expansion="4,2,1").max_drafts == 4 + 8 + 8
    assert UncertaintyOptions().max_drafts == 1
    assert NoOptions().max_drafts == 0
