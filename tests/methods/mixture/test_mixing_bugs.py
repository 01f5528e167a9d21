"""Bugs planted into a mixture are seen."""

from collections.abc import Callable
from typing import Any

import pytest

from antiphon.core.mixture.certificate import Certificate
from antiphon.core.mixture.scores import StepScores
from antiphon.methods.mixture.cloud import MixtureCloud
from antiphon.methods.mixture.cloud_stream import CloudStream
from support.mixtures import answer, question, require_true, world


def loose_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Certificate, "settled", lambda self, delta=0.0: self._state(delta)[0])


def too_low_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = StepScores._bound
    monkeypatch.setattr(StepScores, "_bound", lambda self: min(bound(self) + 4000, 65535))


def no_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CloudStream, "committed", lambda self, token, step: self._proofs.pop(step, None) and None)


def old_epochs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    take = CloudStream._take_evidence

    def wrong(self: CloudStream, message: Any, now: float) -> None:
        if message.epoch < self.epoch and message.step >= self._expected:
            message = type(message)(self.epoch, self._expected, message.payload)
        take(self, message, now)

    monkeypatch.setattr(CloudStream, "_take_evidence", wrong)


def forgets_to_take_back(monkeypatch: pytest.MonkeyPatch) -> None:
    realign = MixtureCloud._realign

    def wrong(self: MixtureCloud, message: Any) -> None:
        back, self._side.verifier.take_back = self._side.verifier.take_back, lambda count: []
        realign(self, message)
        self._side.verifier.take_back = back

    monkeypatch.setattr(MixtureCloud, "_realign", wrong)


def unequal_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = MixtureCloud.noise
    monkeypatch.setattr(MixtureCloud, "noise", lambda self, step: noise(self, step + 1))


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("plant", "temperature"),
    [
        (loose_certificate, 0.0),
        (too_low_a_bound, 0.0),
        (no_rollback, 0.0),
        (old_epochs_count, 0.0),
        (forgets_to_take_back, 0.0),
        (unequal_noise, 0.7),
    ],
)
def test_a_planted_bug_is_seen(
    plant: Callable[[pytest.MonkeyPatch], None], temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = 0
    for seed in range(8):
        there = world(seed, masses=(0.5, 1.0))
        request = question("concord", tokens=24, first=2, temperature=temperature)
        try:
            require_true(there, request, answer(there, request))
        except AssertionError:
            found += 1
    assert found >= 2
