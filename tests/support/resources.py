"""What clouds and devices still hold after a test, when everyone has left: nothing."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from antiphon.cloud.connection import CloudConnection
from antiphon.cloud.service import Cloud
from antiphon.device.generate import Device
from antiphon.engine.worker import Worker
from antiphon.models.base import InUse

TURN_SECONDS = 120.0


def flush(worker: Worker) -> None:
    """Wait until the model's thread has come round."""
    turned = threading.Event()
    worker.post(turned.set)
    if not getattr(worker, "_executor", None) or not worker._executor._shutdown:
        assert turned.wait(TURN_SECONDS), "the model's thread does not come round"


def require_nothing_kept(cloud: Cloud) -> None:
    """Every context, cell, leaf, reservation and answer is back."""
    flush(cloud.worker)
    assert cloud._reserved == cloud._reserved_bytes == 0
    assert not cloud._answering
    assert getattr(cloud.model, "in_use", InUse()) == InUse()


def require_forgotten(connection: CloudConnection) -> None:
    """Every session and its task is gone, and what was counted for it."""
    assert not connection._hosts
    assert not connection._wire.counters


@contextmanager
def watched() -> Iterator[None]:
    """Require of every cloud, connection and device made meanwhile that in the end it holds nothing."""
    made: list[Cloud | CloudConnection | Device] = []
    with _noted(Cloud, made), _noted(CloudConnection, made), _noted(Device, made):
        yield
    for one in made:
        match one:
            case Cloud():
                require_nothing_kept(one)
            case CloudConnection():
                require_forgotten(one)
            case Device():
                flush(one.worker)
                assert getattr(one.model, "in_use", InUse()) == InUse()


def _noted(kind: type, made: list) -> patch:
    original = kind.__init__

    def noting(self: object, *arguments: object, **named: object) -> None:
        original(self, *arguments, **named)
        made.append(self)

    return patch.object(kind, "__init__", noting)
