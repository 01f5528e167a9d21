"""What a device takes for a verdict of `coupled`, and what such a verdict brings."""

from collections.abc import Sequence

from antiphon.errors import ProtocolError
from antiphon.methods.base import DeviceSide
from antiphon.methods.effects import expect
from antiphon.wire.messages import Message, Verdict
from antiphon.wire.packing import Reader


def next_verdict(message: Message, least: int, sent: int) -> Verdict:
    """`message` as a verdict that was made when `least` to `sent` of the device's messages were heard. Raises ProtocolError."""
    verdict: Verdict = expect(message, Verdict)
    if not least <= verdict.round <= sent:
        sentence = f"a verdict was made when {verdict.round} messages were heard, but it must be {least} to {sent}"
        raise ProtocolError(sentence, "out-of-turn")
    return verdict


def numbers_of(verdict: Verdict, sent: Sequence[int], side: DeviceSide) -> list[int]:
    """The tokens that a verdict commits: drafts, and one of the cloud's unless the last of them ends the answer.

    sent: the line's drafts that the cloud can have heard of by then. Raises ProtocolError.
    """
    accepted, reader, common = verdict.accepted, Reader(verdict.payload), side.common
    if accepted > len(sent):
        raise ProtocolError(f"{accepted} drafts were accepted, but only {len(sent)} were sent by then", "out-of-range")
    numbers = [*sent[:accepted]]
    if not (numbers and side.transcript.is_end(numbers[-1])):
        numbers.append(reader.number(common.target_bits, common.target_size, "the token after the accepted ones"))
    reader.finish()
    return numbers
