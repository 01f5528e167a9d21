"""Whether a cloud is well: whether its model really generates, asked so that asking costs the others next to nothing."""

import asyncio
from enum import Enum

from antiphon.cloud.service import Cloud
from antiphon.cloud.told import told
from antiphon.errors import AntiphonError, CapacityError

HEALTH_SECONDS = 30.0
"""How long the model may take."""
KEPT_SECONDS = 5.0
"""How long an answer stands."""


class State(Enum):
    """How a cloud is. One that is full serves those that it has: the model's thread itself said so."""

    OK = "ok"
    FULL = "full"
    FAILING = "failing"


class Health:
    """Asks one question at a time, whoever wants to know, and keeps the answer for a while."""

    def __init__(self, cloud: Cloud, seconds: float = HEALTH_SECONDS, kept_seconds: float = KEPT_SECONDS) -> None:
        self._cloud, self._seconds, self._kept_seconds = cloud, seconds, kept_seconds
        self._asking: asyncio.Task[tuple[State, str]] | None = None
        self._found: tuple[float, tuple[State, str]] | None = None

    async def state(self) -> tuple[State, str]:
        """The state, and why it is no better."""
        now = asyncio.get_running_loop().time()
        if self._found is not None and now - self._found[0] < self._kept_seconds:
            return self._found[1]
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._answered)
        # Waited for and not cancelled where it takes too long: the pass goes on anyway, and the next one who asks must not
        # begin another.
        done, _ = await asyncio.wait([self._asking], timeout=self._seconds)
        return done.pop().result() if done else (State.FAILING, "the model does not answer")

    async def _ask(self) -> tuple[State, str]:
        try:
            await self._cloud.generate_one()
        except CapacityError as error:
            return State.FULL, told(error, self._cloud.model)
        except AntiphonError as error:
            return State.FAILING, told(error, self._cloud.model)
        return State.OK, ""

    def _answered(self, task: "asyncio.Task[tuple[State, str]]") -> None:
        self._asking = None
        if not task.cancelled() and task.exception() is None:
            self._found = asyncio.get_running_loop().time(), task.result()
