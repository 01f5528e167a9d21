"""Tapes: what the halves of an answer asked for, written down, and played again on other links and other hardware.

On a tape are the widths of forward passes, the sizes of messages and the tokens that were emitted. To play it is to run the
real device and cloud code in virtual time with halves that ask for the same once more: frames, queues, handshakes and charges
are those of a direct run, only no model computes. So one real answer can be timed on every link.

That is right as long as the halves would ask for the same. In lockstep, with a fixed draft length, they always would. A half
that looks whether something has come (`coupled` with `ahead`) would as long as each look finds what it found before; where one
does not, the tape *drifts*: the play ends with the error `DRIFTED`, and the answer must be written anew. Automatic draft
lengths are not taped.

Models that remember (`antiphon_lab.ends.remembering_model`) would do with less code, and too slowly: they spare the passes, but
not the maths over whole vocabularies. Of gemma3-270m and smollm2-135m on one core, four answers of 16 tokens took on one more
link .4 s when they were played, nearly all of it to connect; remembered .6 s (`dsd`), .8 s (`xcosd-e`, `coupled`) and 8 s
(`tslt-tree`); and a page holds thousands of answers on links. A tape also fits into the file of results, as logits do not, so
that another rate or another profile needs no model at all.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import msgspec
import numpy as np

from antiphon.core.distributions import Logits
from antiphon.errors import AntiphonError, ProtocolError
from antiphon.methods import ALL_METHODS
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import (
    Came,
    Emit,
    Emitted,
    Exchanged,
    Finish,
    Half,
    Kind,
    Now,
    Provisional,
    Receive,
    ReceiveAny,
    Send,
    ServingEffect,
    Step,
)
from antiphon.methods.outcome import Outcome
from antiphon.models.base import Context
from antiphon.wire.messages import Draft, Message, Resampling, Retry, Tokens, Verdict

DRIFTED = "drifted"
"""The code of the error that ends a played half where a look finds something else than it found before."""

_SENT: dict[str, Any] = {kind.__name__: kind for kind in (Draft, Resampling, Retry, Tokens, Verdict)}


class Pass(msgspec.Struct, frozen=True, array_like=True, tag="pass"):
    """A forward pass."""

    keep: int
    width: int
    rows: int


class Sent(msgspec.Struct, frozen=True, array_like=True, tag="send"):
    """A message: its numbers, and the bytes of its payload if it has one. Zeros stand for them; the frame is as long."""

    kind: str
    numbers: tuple[int, ...]
    size: int | None

    def message(self) -> Message:
        """It, or one as long."""
        payload = () if self.size is None else (bytes(self.size),)
        message: Message = _SENT[self.kind](*self.numbers, *payload)
        return message


class Waited(msgspec.Struct, frozen=True, array_like=True, tag="wait"):
    """A wait for a message, for at most so many seconds, and whether one came."""

    within: float | None
    came: bool


class Looked(msgspec.Struct, frozen=True, array_like=True, tag="now"):
    """A look at the clock."""


class Wrote(msgspec.Struct, frozen=True, array_like=True, tag="emit"):
    """Tokens for the reader: their numbers, where they came from, and the fields of `Exchanged` and of `Outcome`."""

    numbers: tuple[int, ...]
    kinds: tuple[Kind, ...]
    exchanged: tuple[int | float, ...]
    tested: tuple[tuple[int, ...], int]


Event: TypeAlias = Pass | Sent | Waited | Looked | Wrote


class Reel(msgspec.Struct, array_like=True):
    """What one half asked for. finish: None unless it came to its end."""

    events: list[Event]
    finish: Finish | None = None


class Tape(msgspec.Struct, array_like=True):
    """Both halves of an answer. rounding: see `Closed`."""

    device: Reel
    cloud: Reel
    rounding: float = 0.0

    @property
    def complete(self) -> bool:
        """True if both halves came to their end."""
        return self.device.finish is not None and self.cloud.finish is not None


class Recorder:
    """Methods that work as ever, while `tape` takes down what the halves of the newest answer ask for."""

    def __init__(self, methods: Mapping[str, Method] = ALL_METHODS) -> None:
        self.tape = Tape(Reel([]), Reel([]))
        self.methods = {name: _recording(method, self) for name, method in methods.items() if method.cloud is not None}


def _recording(method: Method, recorder: Recorder) -> Method:
    of_cloud: Any = method.cloud

    class Device:
        def __init__(self, side: DeviceSide, options: Any) -> None:
            recorder.tape = Tape(Reel([]), Reel([]))
            self._half = method.device(side, options)

        def run(self) -> Half:
            return _recorded(self._half.run(), recorder.tape.device)

    class Cloud:
        def __init__(self, side: CloudSide, options: Any) -> None:
            self._verifier, self._half = side.verifier, of_cloud(side, options)

        def run(self) -> Half:
            finish = yield from _recorded(self._half.run(), recorder.tape.cloud)
            recorder.tape.rounding = self._verifier.rounding
            return finish

    return _with_halves(method, Device, Cloud)


def _recorded(half: Half, reel: Reel) -> Half:
    """The same half; what it asks for goes onto `reel`."""
    answer: Any = None
    resume = partial(half.send, None)
    while True:
        try:
            effect = resume()
        except StopIteration as stop:
            reel.finish = stop.value
            return reel.finish or Finish.CANCELLED
        try:
            answer = yield effect
        except AntiphonError as error:
            answer, resume = None, partial(half.throw, error)
        else:
            resume = partial(half.send, answer)
        if not isinstance(effect, Provisional):  # shown, and of no weight for what follows
            reel.events.append(_event(effect, answer))


def _event(effect: ServingEffect | ReceiveAny | Emit, answer: Any) -> Event:
    match effect:
        case Step():
            return Pass(effect.keep, len(effect.tokens), effect.rows)
        case Send(message):
            return _sent(message)
        case Receive(within):
            return Waited(within, answer is not None)
        case Now() | Came():
            return Looked()
        case Emit(tokens, exchanged, _, tested):
            figures = tuple(getattr(exchanged, name) for name in Exchanged.__slots__)
            numbers, kinds = tuple(token.number for token in tokens), tuple(token.kind for token in tokens)
            return Wrote(numbers, kinds, figures, (tested.drafts, tested.stood))
        case ReceiveAny():
            raise ValueError("an answer that is mixed with several clouds cannot be taped")


def _sent(message: Message) -> Sent:
    *numbers, last = msgspec.structs.astuple(message)
    if isinstance(last, bytes):
        return Sent(type(message).__name__, tuple(numbers), len(last))
    return Sent(type(message).__name__, (*numbers, last), None)


class Player:
    """Methods of the same names whose halves play `tape`, which is set before each answer."""

    def __init__(self, methods: Mapping[str, Method] = ALL_METHODS) -> None:
        self.tape = Tape(Reel([]), Reel([]))
        self.methods = {name: _playing(method, self) for name, method in methods.items() if method.cloud is not None}


def _playing(method: Method, player: Player) -> Method:
    class Device:
        def __init__(self, side: DeviceSide, options: Any) -> None:
            pass

        def run(self) -> Half:
            return _played(player.tape.device)

    class Cloud:
        def __init__(self, side: CloudSide, options: Any) -> None:
            side.verifier.rounding = player.tape.rounding

        def run(self) -> Half:
            return _played(player.tape.cloud)

    return _with_halves(method, Device, Cloud)


def _with_halves(method: Method, device: type[Any], cloud: type[Any]) -> Method:
    return replace(method, device=device, cloud=cloud)


def _played(reel: Reel) -> Half:
    """A half that asks for what is on `reel`. Raises ProtocolError where it drifts."""
    for event in reel.events:
        match event:
            case Pass(keep, width, rows):
                yield Step(cast(Context, _Asleep()), keep, range(width), rows, node=None)  # only extends
            case Sent():
                yield Send(event.message())
            case Waited(within, came):
                if ((yield Receive(within)) is not None) != came:
                    raise ProtocolError("a look found something else than when the tape was made", DRIFTED)
            case Looked():
                yield Now()
            case Wrote(numbers, kinds, exchanged, tested):
                yield Emit(tuple(map(Emitted, numbers, kinds)), _exchanged(exchanged), tested=Outcome(*tested))
    return reel.finish or Finish.CANCELLED


def _exchanged(figures: tuple[int | float, ...]) -> Exchanged:
    exchanged = Exchanged()
    for name, figure in zip(Exchanged.__slots__, figures, strict=True):
        setattr(exchanged, name, figure)
    return exchanged


class _Asleep:
    """What a played pass reads with: nothing."""

    def extend(self, tokens: Any, rows: int) -> Logits:
        return np.empty((0, 0), dtype=np.float32)
