"""Driving a half: its effects are carried out by whoever has what they need, and it is sent the answers.

A half needs no more than its type says, so three drivers take three kinds of hosts: `exchange` a link, `serve` what a cloud
has, `drive` what a device has. A host has whole what its driver takes; the type checker holds both to that.

From a forward pass to the next effect that is none, a half runs where models compute: one hand-over a round instead of one a
pass, and the maths over a whole vocabulary does not block the event loop.
"""

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from antiphon.core.distributions import Logits
from antiphon.errors import AntiphonError
from antiphon.methods.effects import (
    Arrived,
    Came,
    Effect,
    Emit,
    Finish,
    Half,
    LinkHalf,
    Now,
    Provisional,
    Receive,
    ReceiveAny,
    Send,
    ServingEffect,
    ServingHalf,
    Step,
)
from antiphon.wire.messages import Message

Asked = TypeVar("Asked")
"""What a half may ask for."""
Result = TypeVar("Result")


class Link(Protocol):
    """One session with the other end."""

    def send(self, message: Message) -> Awaitable[None]:
        """Send to the other half."""
        ...

    def receive(self, within: float | None) -> Awaitable[Message | None]:
        """The next message of the other half; None if none came in so many seconds."""
        ...


class Links(Protocol):
    """Sessions with any number of clouds."""

    def send(self, message: Message, to: int) -> Awaitable[None]:
        """Send to one of them."""
        ...

    def receive(self, within: float | None) -> Awaitable[Message | None]:
        """The next message of the one cloud; None if none came in so many seconds."""
        ...

    def receive_any(self, within: float | None) -> Awaitable[Arrived | None]:
        """The next message of any cloud, or what went wrong with one; None if nothing came in so many seconds."""
        ...


class Processor(Protocol):
    """Where models compute."""

    def compute(self, call: Callable[[], Result]) -> Awaitable[Result]:
        """Run a call there, without blocking others."""
        ...

    def step(self, step: Step) -> Logits:
        """Run a forward pass; called within `compute`."""
        ...


class PreemptibleProcessor(Processor, Protocol):
    """Gives passes up."""

    def preemptible(self, step: Step) -> Awaitable[Logits | None]:
        """Run a forward pass where models compute, or give it up for what it gives way to."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """The time in seconds."""
        ...

    def came(self) -> float:
        """When the message that was received last had arrived."""
        ...


class Screen(Protocol):
    """Shows the answer."""

    def emit(self, emit: Emit) -> Awaitable[None]:
        """Take committed tokens."""
        ...

    def propose(self, provisional: Provisional) -> Awaitable[None]:
        """Take what follows them for now."""
        ...


class DeviceHost(Links, Processor, Clock, Screen, Protocol):
    """What carries out a device half."""


class CloudHost(Link, PreemptibleProcessor, Clock, Protocol):
    """What carries out a cloud half."""


async def exchange(half: LinkHalf, link: Link) -> Finish:
    """Run a half that only sends and receives to its end."""
    effect = _resume(half, None)
    while not isinstance(effect, Finish):
        effect = await _linked(half, effect, link)
    return effect


async def serve(half: ServingHalf, host: CloudHost) -> Finish:
    """Run a cloud half to its end. Its passes are made one by one: others wait for the model, and get their turns between."""
    effect = _resume(half, None)
    while not isinstance(effect, Finish):
        match effect:
            case Step(gives_way=None):
                effect = await host.compute(partial(_through_one_step, half, effect, host))
            case Step():
                effect = await _preemptible(half, effect, host)
            case Now():
                effect = _resume(half, host.now())
            case Came():
                effect = _resume(half, host.came())
            case _:
                effect = await _linked(half, effect, host)
    return effect


async def drive(half: Half, host: DeviceHost) -> Finish:
    """Run a device half to its end. Passes that follow each other are made in one go, and none is given up."""
    effect = _resume(half, None)
    while not isinstance(effect, Finish):
        match effect:
            case Step():
                effect = await host.compute(partial(_through_steps, half, effect, host))
            case Now():
                effect = _resume(half, host.now())
            case Came():
                effect = _resume(half, host.came())
            case Send(message, to):
                effect = await _answered(half, host.send(message, to))
            case Receive(within):
                effect = await _answered(half, host.receive(within))
            case ReceiveAny(within):
                effect = _resume(half, await host.receive_any(within))
            case Emit():
                await host.emit(effect)
                effect = _resume(half, None)
            case Provisional():
                await host.propose(effect)
                effect = _resume(half, None)
    return effect


async def _linked(half: Generator[Asked, Any, Finish], effect: Send | Receive, link: Link) -> Asked | Finish:
    if isinstance(effect, Send):
        return await _answered(half, link.send(effect.message))
    return await _answered(half, link.receive(effect.within))


async def _answered(half: Generator[Asked, Any, Finish], call: Awaitable[Message | None]) -> Asked | Finish:
    """What the link raises is raised inside the half: some go on without it."""
    try:
        answer = await call
    except AntiphonError as error:
        return _resume(half, None, error)
    return _resume(half, answer)


async def _preemptible(half: ServingHalf, step: Step, host: CloudHost) -> ServingEffect | Finish:
    """A pass of its own, for what was computed behind one that is given up could not be taken back."""
    try:
        logits = await host.preemptible(step)
    except AntiphonError as error:
        return _resume(half, None, error)
    return await host.compute(partial(_on, half, logits, host))


def _on(half: ServingHalf, logits: Logits | None, host: CloudHost) -> ServingEffect | Finish:
    effect = _resume(half, logits)
    if isinstance(effect, Step) and effect.gives_way is None:
        return _through_one_step(half, effect, host)
    return effect


def _resume(half: Generator[Asked, Any, Finish], answer: Any, error: AntiphonError | None = None) -> Asked | Finish:
    try:
        return half.send(answer) if error is None else half.throw(error)
    except StopIteration as stop:
        finish: Finish = stop.value
        return finish


def _through_one_step(half: Generator[Asked, Any, Finish], step: Step, host: Processor) -> Asked | Finish:
    """Run a forward pass. What it raises is raised inside the half."""
    try:
        logits = host.step(step)
    except AntiphonError as error:
        return _resume(half, None, error)
    return _resume(half, logits)


def _through_steps(half: Half, step: Step, host: Processor) -> Effect | Finish:
    """Run forward passes until the half asks for something else."""
    effect: Effect | Finish = step
    # Only here: a device has its model for itself, and each hand-over to the model's thread and back costs part of a
    # millisecond.
    while isinstance(effect, Step):
        effect = _through_one_step(half, effect, host)
    return effect
