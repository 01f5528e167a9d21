"""Who computed, what was on the wire, and when tokens came: one answer in virtual time, watched from outside.

The models and the link are wrapped, so that the ends run as always: a pass is noted where a model is asked for it, a frame
where the link says when it arrives.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from antiphon.core.distributions import Logits
from antiphon.device.answer import Result
from antiphon.methods.effects import Kind
from antiphon.models.base import Context, Model, Stop
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.ends.wrapped_model import WrappedModel
from antiphon_lab.hardware.profiles import PassCost
from antiphon_lab.links.link import Channel, Link


@dataclass(frozen=True, slots=True)
class Pass:
    """A forward pass, from `start` to `end` in seconds since the question."""

    start: float
    end: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on the wire."""

    sent: float
    arrived: float
    up: bool
    size: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Tokens that the device committed together, by where they came from."""

    time: float
    kinds: tuple[tuple[Kind, int], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened, in seconds since the question."""

    trial: Trial
    device: tuple[Pass, ...]
    cloud: tuple[Pass, ...]
    frames: tuple[Frame, ...]
    commits: tuple[Commit, ...]

    @property
    def seconds(self) -> float:
        """Until the last token."""
        return self.commits[-1].time


def watch(trial: Trial, cloud_model: Model, device_model: Model, prompt: str, seed: int) -> Timeline:
    """Write one answer and note what happens."""
    cloud, device = WatchedModel(cloud_model, trial.compute.verify), WatchedModel(device_model, trial.compute.draft)
    link = WatchedLink.of(trial.link)
    (result,) = attempt(replace(trial, link=link), cloud, device, [prompt], seed)
    started = result.answer.started
    return Timeline(
        trial,
        tuple(_since(started, device.passes)),
        tuple(_since(started, cloud.passes)),
        tuple(
            replace(frame, sent=frame.sent - started, arrived=frame.arrived - started)
            for frame in link.frames
            if frame.sent >= started
        ),
        tuple(commits(result)),
    )


def _since(started: float, passes: Sequence[Pass]) -> list[Pass]:
    return [replace(one, start=one.start - started, end=one.end - started) for one in passes]


def commits(result: Result) -> list[Commit]:
    """When tokens came."""
    answer = result.answer
    return [Commit(one.time - answer.started, tuple(Counter(one.kinds).items())) for one in answer.emissions]


class WatchedModel(WrappedModel):
    """Another model, and the passes that were asked of it."""

    def __init__(self, model: Model, cost: PassCost) -> None:
        super().__init__(model)
        self.passes: list[Pass] = []
        self._cost = cost

    def open(self) -> "_WatchedContext":
        """An empty context."""
        return _WatchedContext(self, self._model.open())

    def note(self, tokens: int, length: int) -> None:
        """A pass begins: now, or behind the one before in the same call, for which the clock has not moved yet."""
        now = asyncio.get_running_loop().time()
        start = max(now, self.passes[-1].end if self.passes else now)
        self.passes.append(Pass(start, start + self._cost.seconds(tokens, length), tokens))


class _WatchedContext:
    """Another model's context, and the passes that are asked of it."""

    def __init__(self, model: WatchedModel, context: Context) -> None:
        self._model, self._context = model, context
        self.settle, self.rewind, self.close = context.settle, context.rewind, context.close

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self._context.length

    def extend(self, tokens: Sequence[int], rows: int = 1, stop: Stop | None = None) -> Logits:
        """Note it, then read."""
        self._model.note(len(tokens), self.length + len(tokens))
        return self._context.extend(tokens, rows, stop)

    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Note it, then read."""
        self._model.note(len(tokens), self.length + len(tokens))
        return self._context.grow(tokens, parents)

    def fork(self) -> "_WatchedContext":
        """A copy, watched too."""
        return _WatchedContext(self._model, self._context.fork())


@dataclass(frozen=True)
class WatchedLink(Link):
    """A link, and the frames that crossed it."""

    inner: Link = field(kw_only=True)
    frames: list[Frame] = field(default_factory=list)

    @classmethod
    def of(cls, link: Link) -> "WatchedLink":
        """`link`, watched."""
        return cls(link.name, link.up, link.down, link.source, link.handshakes, inner=link)

    def channels(self, seed: int, start: float = 0.0, dialled: float | None = None) -> tuple[Channel, Channel]:
        """Watched ones."""
        up, down = self.inner.channels(seed, start, dialled)
        return _WatchedChannel(up, self.frames, up=True), _WatchedChannel(down, self.frames, up=False)


class _WatchedChannel(Channel):
    """A channel as it stands, and the frames that it is given."""

    def __init__(self, channel: Channel, frames: list[Frame], *, up: bool) -> None:
        self.__dict__.update(vars(channel))
        self._frames, self._up = frames, up

    def arrival(self, size: int, now: float) -> float:
        """When a frame arrives, noted."""
        arrived = super().arrival(size, now)
        self._frames.append(Frame(now, arrived, self._up, size))
        return arrived
