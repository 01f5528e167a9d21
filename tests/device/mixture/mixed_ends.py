"""Devices and clouds with documents, and what their answers cost."""

from typing import Any

import pytest

from antiphon.errors import AntiphonError, UsageError
from antiphon.methods import WITH_DOCUMENTS
from antiphon.wire.session import Life
from support.mixtures import (
    World,
    virtually,
)

WITH_A_CLOUD = [name for name, method in WITH_DOCUMENTS.items() if method.cloud is not None]


def refused(there: World, request: Any, kind: type[AntiphonError] = UsageError) -> str:
    """The one sentence that an answer ends with before it begins."""

    async def run() -> str:
        async with there.ends() as (device, connections):
            with pytest.raises(kind) as caught:
                await device.generate(request, connections)
            for connection in connections:
                assert connection.wire.life(1) in (Life.IDLE, Life.ENDED), "nothing was opened that is not closed"
            return str(caught.value)

    sentence = virtually(run())
    assert "\n" not in sentence
    return sentence
