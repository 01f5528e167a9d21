"""Links that are lost while somebody reads along."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from antiphon.config import Request, SamplingParams
from antiphon.device.answer import Piece, Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import AntiphonError
from antiphon.methods.effects import Kind
from device.resume.cuts import TOYS
from support.broken_links import Cut, Network, broken

ENDLESS = SamplingParams(temperature=1.0, logit_bias=tuple((end, -1e3) for end in TOYS[1].vocabulary.ends))


@dataclass
class Told:
    """What an answer came to, as who reads along sees it."""

    network: Network
    result: Result | None = None
    error: AntiphonError | None = None
    settled: str = ""
    provisional: str = ""
    most: str = ""
    """The longest text that was provisional."""
    line: tuple[int, ...] = ()
    """The tokens of the longest."""
    since: float = 0.0
    """Seconds from the loss to the end."""
    kinds: list[Kind] = field(default_factory=list)

    def show(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if piece.provisional:
                self.provisional = piece.text
            else:
                self.settled, self.provisional = self.settled + piece.text, ""
                self.kinds.append(piece.origin)
            self.most = max(self.most, self.provisional, key=len)
            self.line = max(self.line, piece.tokens if piece.provisional else (), key=len)


def told(what: Request, *cuts: Cut, away: float | None = None, prepare: Any = lambda network: None, **link: Any) -> Told:
    """An answer whose link is cut there; the cloud stays away for so many seconds then, or for good."""

    async def test(device: Device, connection: Connection, network: Network) -> Told:
        seen, loop = Told(network), asyncio.get_running_loop()
        prepare(network)
        network.arm(*cuts)
        cut = network.cut

        def leave(end: Any = None) -> None:
            cut(end)
            network.refuse = True
            if away is not None:
                loop.call_later(away, setattr, network, "refuse", False)

        network.cut = leave  # type: ignore[method-assign]
        try:
            seen.result = await device.generate(what, connection, seen.show)
        except AntiphonError as error:
            seen.error = error
        seen.since = loop.time() - network.cut_at
        return seen

    return broken(test, **{"models": lambda: TOYS, **link})


def result(what: Request, *cuts: Cut, **more: Any) -> Result:
    """The same where it comes to its end."""
    seen = told(what, *cuts, **more)
    assert seen.result is not None, seen.error
    return seen.result
