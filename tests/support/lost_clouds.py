"""Answers that are mixed with clouds whose links are cut on the way."""

from typing import Any

from antiphon.config import Request
from antiphon.transport.frames import Transport
from antiphon.wire import messages as m
from support.mixtures import Crossed, Tap, Told, World, question, world

TOKENS = 40
"""Long enough for a cloud to come back in."""


def endless(clouds: int = 1, **more: Any) -> World:
    """Ends whose answers are as long as they may be."""
    return world(4, clouds, end=-99.0, masses=(0.6,) * (clouds + 1), **more)


def cutting(there: World, *places: int, end: int = 0) -> list[list[Crossed]]:
    """Cut the n-th link to a cloud before the frame of the n-th of these numbers, counted from its first session's first.

    The frames of each link.
    """
    links: list[list[Crossed]] = []

    def tapped(transport: Transport, cloud: int, number: int) -> Transport:
        if cloud != end:
            return transport
        frames: list[Crossed] = []
        links.append(frames)
        place = places[number] if number < len(places) else -1
        return Tap(transport, frames, lambda crossed: crossed.session > 0 and len(in_sessions(frames)) == place)

    there.wrap = tapped
    return links


def in_sessions(frames: list[Crossed]) -> list[Crossed]:
    return [one for one in frames if one.session]


def openings(links: list[list[Crossed]]) -> list[m.Open]:
    return [one.message for frames in links for one in frames if isinstance(one.message, m.Open)]


def asked(name: str = "concord", **more: Any) -> Request:
    return question(name, **{"tokens": TOKENS, **more})


def consulted(told: Told) -> list[bool]:
    """Of each token whether a cloud took part in it."""
    return [bool(step.ends) for step in told.steps]
