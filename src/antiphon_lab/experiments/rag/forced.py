"""Perplexity of a text under a mixture: of the dense one, and with the policy in the loop (METHODS 4).

For the second the method itself goes along the text: it waits, asks and times out as ever, but what is committed is the text's
token. A step that it committed without evidence is scored by the device's distribution alone, any other one by the mixture.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.core.distributions import Probs
from antiphon.core.mixture.certificate import Certificate
from antiphon.methods import find
from antiphon.methods.base import DeviceHalf, Method
from antiphon.methods.effects import Consulted, Kind
from antiphon.methods.mixture.cloud_stream import CloudStream
from antiphon.methods.mixture.device import MixtureDevice
from antiphon_lab.experiments.rag.dense import Reference

ALONE = {Kind.LOCAL, Kind.CERTAIN}
"""Tokens that were committed without evidence."""


class _Forced(MixtureDevice):
    text: Sequence[int] = ()

    def chosen(
        self, certificate: Certificate, distribution: Probs, lines: Sequence[CloudStream], position: int
    ) -> Generator[Any, Any, tuple[int, Kind, Consulted | None]]:
        """What the method would say, and the text's token in its place."""
        _, kind, consulted = yield from super().chosen(certificate, distribution, lines, position)
        return self.text[position], kind, consulted


def stepwise(method: str) -> bool:
    """Whether a method decides step by step whether it consults, and so has to be led along a text."""
    device = find(method).device
    return issubclass(device, MixtureDevice) and (device.gates or not device.patient)


def forced(method: str, text: Sequence[int]) -> Method:
    """The method, led along a text (wire numbers). For the device only: a cloud does as ever, and cannot tell."""
    found = find(method)
    device = type("Forced", (_Forced, found.device), {"text": tuple(text)})
    return replace(found, exact=False, device=cast(type[DeviceHalf], device))


def nats(reference: Reference, method: str, text: Sequence[int], kinds: Sequence[Kind]) -> tuple[float, float]:
    """What the text costs in nats: teacher-forced, and by the distribution of each step as it was decided.

    kinds: of the steps of the forced answer; none for a method that consults always, or never.
    """
    forced_nats = policy_nats = 0.0
    for position, token in enumerate(text):
        distribution = _distribution(reference, method, text[:position])
        alone = bool(kinds) and kinds[position] in ALONE
        policy = reference.device_distribution(text[:position]) if alone else distribution
        forced_nats -= math.log(distribution[token])
        policy_nats -= math.log(policy[token])
    return forced_nats, policy_nats


def _distribution(reference: Reference, method: str, numbers: Sequence[int]) -> Probs:
    match method:
        case "crcg":
            return reference.device_distribution(numbers)
        case "drcg":
            return reference.joined_distribution(numbers)
        case _:
            return reference.mixture(numbers)
