"""Reading the frames of one direction as they pass."""

from antiphon.wire import messages as m
from antiphon.wire.lean import Frames


class Passing:
    """Reads frames in the order in which they pass, lean or not."""

    def __init__(self) -> None:
        self._frames = Frames()

    def read(self, frame: bytes) -> m.Envelope:
        envelope = self._frames.unpack(frame)
        self._frames.crossed(envelope)
        return envelope
