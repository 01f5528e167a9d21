"""Mixtures whose lines are rolled back, seen on the wire."""

from support.mixtures import (
    Crossed,
    Tap,
    World,
)

STEPWISE = ["concord", "concord-nosystem", "concord-nocomm", "dragon", "drdg-tw"]


def tapped(there: World) -> list[Crossed]:
    frames: list[Crossed] = []
    there.wrap = lambda transport, end, number: Tap(transport, frames)
    return frames
