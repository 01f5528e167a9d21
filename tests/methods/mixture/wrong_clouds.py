"""Clouds that are silent, slow, wrong, flooding or cut off."""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.effects import Half, Receive, Send
from antiphon.methods.mixture.options import LONGEST_WAIT
from antiphon.wire import messages as m
from antiphon.wire.messages import Message
from support.mixtures import (
    Crossed,
    Tap,
    Told,
    World,
    question,
    require_true,
    require_whole,
)

STEPWISE = ["concord", "concord-nosystem", "concord-nocomm", "dragon", "drdg-tw"]


METHODS = [*STEPWISE, "drdg-sw"]


IN_TIME = LONGEST_WAIT + 15.0
"""Virtual seconds that any of these answers may take: one cloud is waited for in vain once, and it does not say goodbye."""


def wrong(name: str, spoil: Callable[[int, Message], "list[Message] | None"], *, deaf: bool = False) -> type:
    """The cloud half of a method, of whose messages each is replaced: spoil(its number, it); None: nothing more is sent.

    deaf: what the device says does not reach it either.
    """

    class Wrong(WITH_DOCUMENTS[name].cloud):  # type: ignore[misc,name-defined]
        def run(self) -> Half:
            half, number, muted, effect, told = super().run(), 0, False, None, None
            effect = next(half)
            while True:
                if isinstance(effect, Send):
                    messages = None if muted else spoil(number, effect.message)
                    muted, number = messages is None, number + 1
                    for message in messages or []:
                        yield Send(message)
                    effect = half.send(None)
                    continue
                if muted and isinstance(effect, Receive):
                    while True:
                        yield Receive()
                told = yield effect
                effect = half.send(told)

    return Wrong


def at(place: int, *messages: Message) -> Callable[[int, Message], list[Message]]:
    """These in place of the message of this number; every other one as it is."""
    return lambda number, message: list(messages) if number == place else [message]


def changed(place: int, **fields: Callable[[Any], Any]) -> Callable[[int, Message], list[Message]]:
    """Other values in these fields of the messages from this number on."""

    def spoil(number: int, message: Message) -> list[Message]:
        if number < place:
            return [message]
        return [msgspec.structs.replace(message, **{key: make(getattr(message, key)) for key, make in fields.items()})]

    return spoil


def silent_from(place: int) -> Callable[[int, Message], "list[Message] | None"]:
    return lambda number, message: None if number >= place else [message]


def require_in_time(there: World, name: str, told: Told, tokens: int = 12, *, honest: bool = True) -> None:
    """honest: what is well-formed of the cloud's messages is also true."""
    request = question(name, tokens=tokens)
    require_whole(there, request, told)
    if honest and name in STEPWISE:
        require_true(there, request, told)
    assert told.seconds < IN_TIME, told.seconds


def other_step(by: int) -> dict[str, Callable[[int], int]]:
    return {"step": lambda step: step + by}


FAULTS: dict[str, Callable[[int, Message], "list[Message] | None"]] = {
    "weight that is no number": at(0, m.Retrieved(2, math.nan, 0)),
    "weight beyond all numbers": at(0, m.Retrieved(2, math.inf, 0)),
    "weight twice": at(1, m.Retrieved(2, 0.0, 0)),
    "evidence before the weight": at(0, m.Evidence(0, 0, bytes(40)), m.Retrieved(2, 0.0, 0)),
    "an epoch to come": changed(3, epoch=lambda epoch: epoch + 1),
    "epochs to come for ever": lambda number, message: [
        m.Evidence(message.epoch + 7, message.step, message.payload) if isinstance(message, m.Evidence) else message
    ],
    "a step left out": changed(3, **other_step(1)),
    "a step again": changed(3, **other_step(-1)),
    "the steps of the end": changed(1, **other_step(1000)),
    "no bytes": changed(2, payload=lambda payload: b""),
    "a byte too many": changed(2, payload=lambda payload: payload + b"\0"),
    "a byte too few": changed(2, payload=lambda payload: payload[:-1]),
    "ones": changed(2, payload=lambda payload: b"\xff" * len(payload)),
    "noise": changed(2, payload=lambda payload: bytes((37 * place + 11) % 256 for place in range(len(payload)))),
    "no scores": changed(2, payload=lambda payload: bytes(4)),
    "a token twice": changed(2, payload=lambda payload: bytes([2, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    "another message": at(2, m.Tokens(b"\0")),
    "a verdict": at(2, m.Verdict(0, 0, b"")),
    "passages": at(2, m.Passages(("public",))),
    "an answer to no question": at(2, m.Supplement(0, 0, b"")),
    "a large payload": at(2, m.Evidence(0, 1, bytes(2**20))),
}


def cutting(there: World, place: int, end: int = 0) -> list[Crossed]:
    """Cut the first link to a cloud before the frame of this number, counted from the first of the first session."""
    frames: list[Crossed] = []

    def act(crossed: Crossed) -> bool:
        return crossed.session > 0 and len([one for one in frames if one.session]) == place

    there.wrap = lambda transport, cloud, number: Tap(transport, frames, act) if (cloud, number) == (end, 0) else transport
    return frames
