"""`crcg`: the device's own documents in one context, without a cloud (METHODS 4; CONCORD's reference)."""

from antiphon.methods.base import Method
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.methods.speculative.device_only import DeviceOnly
from antiphon.models.needs import Need

CRCG = Method(
    "crcg",
    "the device's documents, one context",
    False,
    DeviceOnly,
    None,
    options=MixtureOptions,
    needs=frozenset({Need.DOCUMENTS}),
)
