"""The event loop that emulated links run on in real time."""

import asyncio
import time

import pytest

from antiphon_lab.links.emulated import precise_loop


@pytest.mark.slow
def test_fine_timers_are_fine() -> None:
    async def least_lateness() -> float:
        found = []
        for _ in range(50):
            due = time.monotonic() + 0.0103
            await asyncio.sleep(0.0103)
            found.append(time.monotonic() - due)
        return min(found)

    with asyncio.Runner(loop_factory=precise_loop) as runner:
        assert 0 <= runner.run(least_lateness()) < 4e-4  # whole milliseconds would make it 7e-4
