"""Both halves of a method on a clock, without ends: passes and messages take time, so what hangs on time can be enumerated."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance
from antiphon.core.distributions import Logits
from antiphon.core.pass_costs import PassCosts
from antiphon.methods.base import Method
from antiphon.methods.drive import drive, serve
from antiphon.methods.effects import Emit, Emitted, Half, Provisional, ServingHalf, Step
from antiphon.testing.distributions import Distribution, Pair
from antiphon.testing.enumeration import output_distribution
from antiphon.transport.frames import Inbox, next_within
from antiphon.wire.messages import Message
from antiphon_lab.links.virtual_time import run_virtual

Result = TypeVar("Result")


@dataclass(frozen=True)
class Times:
    """Seconds of a draft, of a token of the cloud's pass on top of its first, of that pass, and of a message's way."""

    draft: float = 0.004
    further: float = 0.001
    verify: float = 0.03
    way: float = 0.01


class _Host:
    """One half's model and its end of the link."""

    def __init__(self, first: float, further: float, way: float, known: PassCosts) -> None:
        self.inbox: Inbox[Message] = Inbox(4096, 2**20)
        self.other: _Host
        self.emitted: list[Emitted] = []
        self._costs, self._way, self._charged, self._arrives = (first, further), way, 0.0, 0.0
        self._known = known
        self.passes = 0

    async def compute(self, call: Callable[[], Result]) -> Result:
        self._charged = 0.0
        effect = call()
        await asyncio.sleep(self._charged)
        return effect

    def step(self, step: Step) -> Logits:
        seconds = self._costs[0] + self._costs[1] * (len(step.tokens) - 1)
        self._charged += seconds
        if step.rows > 0:
            self.passes += 1
            self._known.observe(len(step.tokens), seconds)
        return step.run()

    async def send(self, message: Message, to: int = 0) -> None:
        self._arrives = max(self._arrives + 1e-9, self.now() + self._way)
        asyncio.get_running_loop().call_at(self._arrives, self.other.inbox.offer, message, 0)

    async def receive(self, within: float | None) -> Message | None:
        return await next_within(self.inbox, within)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def came(self) -> float:
        return self.inbox.came

    async def emit(self, emit: Emit) -> None:
        self.emitted += emit.tokens

    async def propose(self, provisional: Provisional) -> None:
        """Nobody reads along."""


@dataclass(frozen=True)
class Timed:
    """The tokens that the device commits, and when they were all there; the passes of each end."""

    emitted: list[Emitted]
    seconds: float
    drafts: int
    passes: int


def run_timed(device: Half, cloud: ServingHalf, times: Times, costs: PassCosts | None = None) -> Timed:
    """Both halves to their end. costs: learns what the cloud's passes cost."""

    async def run() -> Timed:
        ours = _Host(times.draft, 0.0, times.way, PassCosts())
        theirs = _Host(times.verify, times.further, times.way, costs or PassCosts())
        ours.other, theirs.other = theirs, ours
        began = ours.now()
        await asyncio.gather(drive(device, ours), serve(cloud, theirs))
        return Timed(ours.emitted, ours.now() - began, ours.passes, theirs.passes)

    return run_virtual(run())


def timed_distribution(
    pair: Pair, method: Method, options: object, sampling: SamplingParams, tokens: int, times: Times
) -> Distribution:
    """As `distributions.method_distribution`, on a clock."""

    def run(chance: Chance) -> tuple[int, ...]:
        device, cloud = pair.sides(tokens, sampling, chance)
        assert method.cloud is not None
        timed = run_timed(method.device(device, options).run(), method.cloud(cloud, options).run(), times, cloud.costs)
        assert [token.number for token in timed.emitted] == device.transcript.numbers == cloud.transcript.numbers
        return tuple(device.transcript.numbers)

    return output_distribution(run)
