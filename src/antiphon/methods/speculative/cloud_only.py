"""`cloud`: the cloud's model alone, its tokens streamed: one trip for the whole answer (METHODS 2, cloud)."""

from antiphon.core.rounding import exactly
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Emit, Emitted, Half, Kind, Receive, Send, ServingHalf, expect
from antiphon.models.needs import Need
from antiphon.options import NoOptions
from antiphon.wire.messages import Tokens
from antiphon.wire.packing import Reader, Writer


class CloudOnlyDevice:
    """Reads the stream."""

    def __init__(self, side: DeviceSide, options: NoOptions) -> None:
        self._side = side

    def run(self) -> Half:
        """Commit each token as it comes."""
        transcript, common = self._side.transcript, self._side.common
        while transcript.finish is None:
            reader = Reader(expect((yield Receive()), Tokens).payload)
            number = reader.number(common.target_bits, common.target_size, "the token")
            reader.finish()
            transcript.commit(number)
            yield Emit((Emitted(number, Kind.STREAMED),))
        return transcript.finish


class CloudOnlyCloud:
    """Samples token after token."""

    def __init__(self, side: CloudSide, options: NoOptions) -> None:
        self._side = side

    def run(self) -> ServingHalf:
        """One pass and one message a token."""
        side, transcript = self._side, self._side.transcript
        yield from side.verifier.prefill()
        while transcript.finish is None:
            targets = yield from side.verifier.score([], exactly)
            # By the race and not by a stream of its own: so `coupled` with the same seed can be checked against it, token for
            # token.
            number = targets.at(0).winner(side.chance.race(transcript.position, side.common.cloud_ids))
            transcript.commit(number)
            side.verifier.commit([number])
            writer = Writer()
            writer.number(number, side.common.target_bits)
            yield Send(Tokens(writer.finish()))
        return transcript.finish


CLOUD = Method(
    "cloud",
    "the cloud's model alone, streamed",
    True,
    CloudOnlyDevice,
    CloudOnlyCloud,
    drafts=False,
    options=NoOptions,
    bits=accounting.streamed,
    needs=frozenset({Need.WINNERS}),
)
