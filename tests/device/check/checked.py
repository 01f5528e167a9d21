"""Answers that are checked, with noise and faults planted."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from antiphon.config import Request, SamplingParams
from antiphon.core.distributions import Logits
from antiphon.core.stream import LOCKSTEP
from antiphon.device.answer import Result
from antiphon.device.check import Check, check
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.models.toy import ToyContext
from support.links import linked, request

SHIFT = 0.2
"""Logits by which noise and faults move the toys, the even tokens up and the others down."""


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
    """In lockstep, where a method can be out of it: then most passes are wide."""

    def ask(seed: int) -> Request:
        asked = request(method, tokens=30, prompt=f"{seed} the{text}", seed=seed, draft_length=drafts, patience=LOCKSTEP)
        return replace(asked, sampling=sampling)

    return ask


def differing(found: list[Check], least: int = 3) -> list[Check]:
    different = [one for one in found if not one.equal]
    assert len(different) >= least, "what was planted must flip tokens, or this test shows nothing"
    return different


GREEDY = SamplingParams(temperature=0)
