"""Antiphon: a small model on a device and a large one in the cloud write one answer together.

`__all__` is what people import; docs/library-api.md shows it at work, and `antiphon.testing` is for whoever writes a method.
Importing this package loads nothing and opens nothing: each name is fetched when it is first asked for, a model when a `Device`
or a `Cloud` is told to use one.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antiphon.cloud.service import Cloud
    from antiphon.config import Limits, ModelConfig, Request, SamplingParams, Timeouts
    from antiphon.device.answer import Answer, Piece, Result
    from antiphon.device.blocking import generate
    from antiphon.device.generate import Device
    from antiphon.device.stream import Stream
    from antiphon.errors import (
        AntiphonError,
        CacheError,
        CapacityError,
        LinkError,
        ModelError,
        ProtocolError,
        RemoteError,
        UsageError,
    )
    from antiphon.methods.effects import Finish, Kind

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AntiphonError",
    "CacheError",
    "CapacityError",
    "Cloud",
    "Device",
    "Finish",
    "Kind",
    "Limits",
    "LinkError",
    "ModelConfig",
    "ModelError",
    "Piece",
    "ProtocolError",
    "RemoteError",
    "Request",
    "Result",
    "SamplingParams",
    "Stream",
    "Timeouts",
    "UsageError",
    "__version__",
    "generate",
]

_ERRORS = (
    "AntiphonError",
    "CacheError",
    "CapacityError",
    "LinkError",
    "ModelError",
    "ProtocolError",
    "RemoteError",
    "UsageError",
)
_HOMES = {
    **dict.fromkeys(_ERRORS, "antiphon.errors"),
    **dict.fromkeys(("Limits", "ModelConfig", "Request", "SamplingParams", "Timeouts"), "antiphon.config"),
    **dict.fromkeys(("Answer", "Piece", "Result"), "antiphon.device.answer"),
    **dict.fromkeys(("Finish", "Kind"), "antiphon.methods.effects"),
    "Cloud": "antiphon.cloud.service",
    "Device": "antiphon.device.generate",
    "Stream": "antiphon.device.stream",
    "generate": "antiphon.device.blocking",
}

if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
        globals()[name] = found = getattr(importlib.import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
