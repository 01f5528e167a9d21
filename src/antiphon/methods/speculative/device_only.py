"""`device`: the device's model alone, without a cloud (METHODS 2). Not exact: it is the small model's answer."""

from antiphon.core.rounding import exactly
from antiphon.errors import CapacityError
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.effects import Emit, Emitted, Half, Kind
from antiphon.options import NoOptions


class DeviceOnly:
    """Samples token after token from the device's model; wire numbers are its own ids."""

    def __init__(self, side: DeviceSide, options: NoOptions) -> None:
        if side.drafter is None:
            raise ValueError("this method needs a model on the device")
        self._side, self._drafter = side, side.drafter

    def run(self) -> Half:
        """One pass a token."""
        side, transcript = self._side, self._side.transcript
        while transcript.finish is None:
            draft = yield from self._drafter.draft([], transcript.position, side.chance, exactly)
            if draft is None:
                raise CapacityError("the device's context is full: ask for fewer tokens or give --context more")
            transcript.commit(draft.number)
            self._drafter.commit([draft.number])
            yield Emit((Emitted(draft.number, Kind.LOCAL),))
        return transcript.finish


DEVICE = Method("device", "the device's model alone", False, DeviceOnly, None, options=NoOptions, needs=frozenset())
