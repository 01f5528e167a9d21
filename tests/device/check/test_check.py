"""What `--check` calls a near tie, and what a fault: by the answer's own passes, made again, and by all that decides.

Numeric noise is planted into the toys (logits that depend on the width of a pass, or on all widths before it), faults into what
stands around the model: who sees which row, which history, which noise, and a cache that a rollback spoils.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.distributions import Logits, Probs, process
from antiphon.device.answer import Result
from antiphon.device.check import Finding
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import CloudHalf, CloudSide
from antiphon.methods.verifier import Targets, TreeTargets, Verifier
from antiphon.models.toy import ToyContext
from device.check.checked import GREEDY, SHIFT, asking, differing, disturb, findings, moved, widen

RICH = " thing and other on red of in he her an era "


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
