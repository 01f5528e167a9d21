"""What `--check` calls a near tie, and what a fault: by the answer's own passes, made again, and by all that decides.

Numeric noise is planted into the toys (logits that depend on the width of a pass, or on all widths before it), faults into what
stands around the model: who sees which row, which history, which noise, and a cache that a rollback spoils.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits, Probs, process
from antiphon.device.answer import Result
from antiphon.device.check import Check, Finding, check, judged, probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudHalf, CloudSide
from antiphon.methods.baselines.u_hlm import UncertaintyOptions
from antiphon.methods.probe import Question
from antiphon.methods.speculative.options import ChainOptions
from antiphon.methods.speculative.tslt_tree import TsltTreeOptions
from antiphon.methods.verifier import Targets, TreeTargets, Verifier
from antiphon.models.toy import ToyContext, named_toy
from antiphon.options import NoOptions
from antiphon.wire.messages import Probed
from support.links import linked, request

SHIFT = 0.2
"""Logits by which noise and faults move the toys, the even tokens up and the others down."""
RICH = " thing and other on red of in he her an era "

Watch = Callable[[ToyContext, Logits, int], Logits]


def moved(logits: Logits, shift: float = SHIFT) -> Logits:
    signs = np.where(np.arange(logits.shape[-1]) % 2 == 0, 1, -1)
    return (logits + shift * signs).astype(np.float32)


def disturb(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `watch` see the logits of every pass of a toy, with the pass's width, and give others."""
    extend, grow = ToyContext.extend, ToyContext.grow

    def extended(self: ToyContext, tokens: list[int], rows: int = 1, stop: object = None) -> Logits:
        return watch(self, extend(self, tokens, rows), len(tokens))

    def grown(self: ToyContext, tokens: list[int], parents: list[int]) -> Logits:
        return watch(self, grow(self, tokens, parents), len(tokens))

    monkeypatch.setattr(ToyContext, "extend", extended)
    monkeypatch.setattr(ToyContext, "grow", grown)


def widen(monkeypatch: pytest.MonkeyPatch, least: int = 2, shift: float = SHIFT) -> None:
    """Passes of `least` tokens and more move the logits, as some kernels do."""
    disturb(lambda _, logits, width: moved(logits, shift) if width >= least else logits, monkeypatch)


Ask = Callable[[int], Request]
Answer = Callable[[Result], Result]


def findings(ask: Ask, count: int, alter: Answer = lambda result: result) -> list[Check]:
    """What is found of answers to `count` requests."""

    async def test(device: Device, connection: Connection) -> list[Check]:
        found = []
        for seed in range(count):
            asked = ask(seed)
            found.append(await check(device, asked, alter(await device.generate(asked, connection)), connection))
        return found

    return linked(test)


def asking(method: str, sampling: SamplingParams, drafts: int = 4, text: str = " ") -> Ask:
    def ask(seed: int) -> Request:
        asked = request(method, tokens=30, prompt=f"{seed} the{text}", seed=seed, draft_length=drafts)
        return replace(asked, sampling=sampling)

    return ask


def differing(found: list[Check], least: int = 3) -> list[Check]:
    different = [one for one in found if not one.equal]
    assert len(different) >= least, "what was planted must flip tokens, or this test shows nothing"
    return different


# --- noise

GREEDY = SamplingParams(temperature=0)
HALF = tuple((token, 1.5) for token in range(270) if token // 2 % 2)
NOISY = {
    "greedy": ("dssd", GREEDY, 4, 2),
    "tree": ("tslt-tree", GREEDY, 4, 2),
    "repetition": ("dssd", replace(GREEDY, repetition_penalty=1.3), 4, 2),
    "frequency": ("dssd", replace(GREEDY, frequency_penalty=1.0), 4, 2),
    "presence": ("coupled", SamplingParams(presence_penalty=2.0), 4, 2),
    "bias": ("dssd", replace(GREEDY, logit_bias=HALF), 4, 2),
    "sampled": ("coupled", SamplingParams(), 4, 2),
    "sampled tree": ("coupled-tree", SamplingParams(temperature=0.3), 4, 2),
    "top-k": ("coupled", SamplingParams(top_k=20), 4, 2),
    "top-p": ("coupled", SamplingParams(top_p=0.8), 4, 2),
    "min-p": ("coupled", SamplingParams(min_p=0.1), 4, 2),
    "12 drafts": ("coupled", SamplingParams(), 12, 8),
}


@pytest.mark.medium
@pytest.mark.parametrize("name", NOISY)
def test_noise_is_a_near_tie_whatever_decides(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, sampling, drafts, least = NOISY[name]
    widen(monkeypatch, least)
    for one in differing(findings(asking(method, sampling, drafts, RICH if name == "bias" else " "), 8)):
        assert one.finding is Finding.NEAR_TIE, one.sentence()
        assert one.moved == pytest.approx(SHIFT, abs=1e-3)
        assert one.noise == pytest.approx(SHIFT, abs=1e-3)
        assert one.gap is not None
        assert one.gap <= SHIFT * 1.15
        assert "a near tie: the answer's own passes, made again, give its token" in one.sentence()
        assert sampling.temperature > 0 or "top-k" not in one.sentence()


@pytest.mark.medium
def test_a_token_that_was_cut_off_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    widen(monkeypatch)
    found = differing(findings(asking("coupled", SamplingParams(temperature=2.0, top_k=8)), 16))
    flips = [one for one in found if one.plain is not None and min(one.plain) == 0]
    assert flips
    assert all("keep another set of tokens" in one.sentence() for one in flips)


@pytest.mark.medium
def test_noise_of_the_whole_history_is_a_near_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits hang on the widths of all passes so far, rolled back or not: only the very passes give them again."""
    widths: dict[ToyContext, int] = {}

    def watch(context: ToyContext, logits: Logits, width: int) -> Logits:
        widths[context] = hash((widths.get(context, 0), width)) if context.length > width else width
        noise = np.random.Generator(np.random.PCG64(abs(widths[context]))).uniform(-SHIFT, SHIFT, logits.shape)
        return logits if width == 1 else (logits + noise).astype(np.float32)

    disturb(watch, monkeypatch)
    found = differing(findings(asking("dssd", GREEDY), 12))
    assert {one.finding for one in found} == {Finding.NEAR_TIE}


@pytest.mark.medium
@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_tokens_that_the_model_rules_out_hide_no_noise_and_are_none(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch(_: ToyContext, logits: Logits, width: int) -> Logits:
        noisy = moved(logits, SHIFT if width > 1 else 0.0)
        noisy[..., 200:210] = -np.inf
        return noisy

    disturb(watch, monkeypatch)
    for one in differing(findings(asking(method, SamplingParams()), 8)):
        assert one.finding is Finding.NEAR_TIE, one.sentence()
        assert (one.moved, one.noise) == (pytest.approx(SHIFT, abs=1e-3),) * 2


def test_no_noise_no_difference() -> None:
    assert all(one.equal for one in findings(asking("dssd", GREEDY), 3))


# --- faults


@pytest.mark.medium
def test_a_drafted_position_whose_logits_are_off_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Verifier.score

    def score(self: Verifier, drafts: Any, quantise: Any) -> Any:
        targets = yield from plain(self, drafts, quantise)
        targets.logits[1:] = moved(targets.logits[1:])
        return targets

    monkeypatch.setattr(Verifier, "score", score)
    found = differing(findings(asking("coupled", SamplingParams()), 16))
    assert {one.finding for one in found} == {Finding.FAULT}


@pytest.mark.medium
def test_a_node_whose_logits_are_off_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Verifier.score_tree

    def score(self: Verifier, tree: Any, quantise: Any) -> Any:
        targets = yield from plain(self, tree, quantise)
        targets._logits[1:] = moved(targets._logits[1:])
        return targets

    monkeypatch.setattr(Verifier, "score_tree", score)
    found = differing(findings(asking("coupled-tree", SamplingParams()), 16))
    assert {one.finding for one in found} == {Finding.FAULT}
    assert "the answer's own passes, made again, do not give its token" in found[0].sentence()


@pytest.mark.medium
@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_drafts_that_no_penalty_sees_are_a_fault(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(self: Any, index: int) -> Probs:
        history = self._tokens[: len(self._tokens) - len(self.logits) + 1]
        distribution: Probs = process(self.logits[index], self._sampling, history)[self._common.cloud_ids]
        return distribution

    def tree(self: Any, node: int) -> Probs:
        distribution: Probs = process(self._logits[node + 1], self._sampling, self._tokens)[self._common.cloud_ids]
        return distribution

    monkeypatch.setattr(Targets, "probs", chain)
    monkeypatch.setattr(TreeTargets, "probs", tree)
    found = differing(findings(asking(method, SamplingParams(presence_penalty=2.0)), 12))
    assert {one.finding for one in found} == {Finding.FAULT}


@pytest.mark.core(1)
@pytest.mark.parametrize("method", ["coupled", "coupled-tree"])
def test_a_cloud_that_draws_its_own_noise_is_at_fault(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    half: Any = WITHOUT_DOCUMENTS[method].cloud
    plain = half.__init__

    def with_own_noise(self: CloudHalf, side: CloudSide, options: object) -> None:
        plain(self, replace(side, chance=PhiloxChance(99)), options)

    monkeypatch.setattr(half, "__init__", with_own_noise)
    for one in differing(findings(asking(method, SamplingParams()), 3)):
        assert one.finding is Finding.FAULT


@pytest.mark.medium
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_cache_that_a_rollback_spoils_is_a_fault(noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes made again give the very same, but no reading without a rollback moves logits so far."""
    spoiled: set[ToyContext] = set()
    rewind = ToyContext.rewind

    def rewound(self: ToyContext, length: int) -> None:
        if 0 < length < self.length:
            spoiled.add(self)
        if length == 0:
            spoiled.discard(self)
        rewind(self, length)

    def watch(context: ToyContext, logits: Logits, width: int) -> Logits:
        return moved(logits, SHIFT if context in spoiled else noise if width > 1 else 0.0)

    monkeypatch.setattr(ToyContext, "rewind", rewound)
    disturb(watch, monkeypatch)
    found = [one for one in findings(asking("dssd", GREEDY), 12) if not one.equal]
    spoilt = [one for one in found if one.moved is not None and one.moved > 0.1]
    assert len(spoilt) > 3
    assert {one.finding for one in spoilt} == {Finding.FAULT}
    assert all("by more than their width can" in one.sentence() for one in spoilt)


def test_passes_that_read_other_tokens_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud's half forgets a token that it committed: what it scores follows something else."""
    plain = Verifier.commit

    def commit(self: Verifier, numbers: Any) -> None:
        plain(self, numbers[:-1] if len(numbers) > 2 else numbers)

    monkeypatch.setattr(Verifier, "commit", commit)
    for one in differing(findings(asking("coupled", GREEDY), 6)):
        assert one.finding is Finding.FAULT


def test_an_answer_that_ends_where_the_other_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def shorter(result: Result) -> Result:
        del result.answer.written[-1]
        return result

    (found,) = findings(asking("dssd", GREEDY), 1, shorter)
    assert (found.finding, found.first_difference) == (Finding.FAULT, 29)
    assert found.sentence().endswith("a fault: one answer ends where the other goes on")


# --- passes that cannot be made again


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


# --- the probe


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
