"""`xcosd-e`: server resampling with device verification (METHODS 2; X-CoSD 3, SR-DV).

Up: as `dssd`. Down after a rejection: candidates drawn from the target, each with its probability, which the device tests one
after the other. If none passes the device sends `Retry` and gets more; after `iterations` messages of candidates, or where a
whole distribution is smaller, hybrid resampling. The device's choice goes up with its next drafts, as a place in the list.

A candidate's probability crosses rounded to units of a draft probability, at random so that the device's test accepts exactly
as often as one with the value itself (`core.resampling.chance_to_round_up`).

With `as_paper` candidates are the paper's: drawn from the whole target, so the rejected draft, which never passes, may be among
them, and always K, also behind one outside the common vocabulary, which always passes. The distribution is the same, the bits
are more.

With automatic numbers the cloud chooses how many candidates come and when to fall back, by what candidates did before in the
answer. Both ends keep that estimate, and where a lost link made the cloud forget it the device tells it, with its first drafts:
a rejection that a cut interrupted is then settled as it would have been.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from antiphon.core.chance import Place, Role, Stream
from antiphon.core.distributions import Probs
from antiphon.core.resampling import (
    MAX_CANDIDATES,
    CandidateCount,
    candidate_distribution,
    chance_of_candidate,
    chance_to_round_up,
    quantise_lumped,
    usual_floor,
)
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Receive, Send, expect
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Proposed
from antiphon.methods.speculative.options import SplitOptions
from antiphon.methods.speculative.scalar_drafts import ScalarCloud, ScalarDevice
from antiphon.methods.speculative.xcosd import HybridCodec
from antiphon.methods.verifier import Target
from antiphon.options import option, require
from antiphon.vocabulary import bits_for
from antiphon.wire.candidates import Candidate, CandidateCodec
from antiphon.wire.messages import Draft, Resampling, Retry
from antiphon.wire.packing import Reader, Writer


@dataclass(frozen=True, slots=True)
class CandidateOptions(SplitOptions):
    """Options of `xcosd-e`. candidates: K, 0 is auto. iterations: M, messages of candidates before a whole distribution.

    as_paper: candidates are drawn as the paper draws them, all K of a message from the whole target; else without the draft
    that was rejected, and none after one that is sure to pass.
    """

    candidates: int = option(0, f"Candidates a message, 1 to {MAX_CANDIDATES}, or auto.", {"auto": 0})
    iterations: int = option(10, "Messages of candidates at most, then a whole distribution.")
    as_paper: bool = option(False, "Draw candidates from the whole target, as the paper prints it.")

    def __post_init__(self) -> None:
        SplitOptions.__post_init__(self)
        fits = 0 <= self.candidates <= MAX_CANDIDATES
        require(fits, f"candidates must be 1 to {MAX_CANDIDATES}, or 0 (auto), not {self.candidates}")
        require(1 <= self.iterations <= 64, f"iterations must be 1 to 64, not {self.iterations}")


def _is_told(options: CandidateOptions, side: DeviceSide | CloudSide) -> bool:
    """Whether the first drafts tell the estimate: the answer goes on, and the cloud chooses by it."""
    return options.candidates == 0 and side.transcript.position > 0


class XcosdEDevice(ScalarDevice):
    """Tests candidates."""

    def __init__(self, side: DeviceSide, options: CandidateOptions) -> None:
        super().__init__(side, options)
        self._units = 2**options.draft_precision - 1
        self._iterations = options.iterations
        self._codec = CandidateCodec(side.common, options.draft_precision, as_paper=options.as_paper)
        self._hybrid = HybridCodec(side.common, options.precision)
        self._choice: tuple[int, int] | None = None  # the place of the owed token, and of how many
        self._estimate = CandidateCount(*(side.memory.learned or ()))
        self._tells = _is_told(options, side)

    def corrected(self, reader: Reader, drafts: Sequence[Drafted], accepted: int) -> Generator[Any, Any, int]:
        """Test the candidates that came, and more of them, until one passes; else resample as `xcosd`."""
        draft, floor = drafts[accepted], usual_floor(drafts[accepted].prob)
        # One stream for all messages of the rejection and for what follows them: no draw is used twice.
        stream = self.side.chance.at(self.side.transcript.place(accepted), Role.RESAMPLE)
        tries = 0
        while candidates := self._codec.read(reader, draft.number):
            tries += 1
            if tries > self._iterations:
                raise ProtocolError(f"more than {self._iterations} messages of candidates came", "out-of-range")
            self.exchanged.candidates += len(candidates)
            reader.finish()
            if (place := self._first(candidates, draft, stream)) is not None:
                # Here and in the cloud with the same numbers, so that the two estimates never part. So `floor` is the usual
                # one: the real one takes q, which only the cloud knows.
                self._estimate.observe(floor, place + 1, passed=True)
                return self._owe(candidates[place].number, (place, len(candidates)))
            self._estimate.observe(floor, len(candidates), passed=False)
            reader = yield from self._more()
        token = self._hybrid.draw(reader, draft.probs, stream)
        self.exchanged.distributions += 1
        reader.finish()
        return self._owe(token, None)

    def write_owed(self, writer: Writer) -> None:
        """The place of the candidate that passed, or the token that was drawn here; before it the estimate, if it is told."""
        if self._tells:
            writer.array(np.array(self._estimate.known, "<f8"))
            self._tells = False
        if self.owed and self._choice is not None:
            place, count = self._choice
            writer.number(place, bits_for(count))
        else:
            super().write_owed(writer)

    def _first(self, candidates: Sequence[Candidate], draft: Drafted, stream: Stream) -> int | None:
        for place, candidate in enumerate(candidates):
            if stream.bernoulli(self._chance(candidate, draft)):
                return place
        return None

    def _chance(self, candidate: Candidate, draft: Drafted) -> float:
        if candidate.number >= self.side.common.size:
            return 1.0
        return chance_of_candidate(round(draft.probs[candidate.number] * self._units), candidate.units)

    def _owe(self, token: int, choice: tuple[int, int] | None) -> int:
        self.owed, self._choice = [token], choice
        self.side.memory.learned = self._estimate.known
        return token

    def _more(self) -> Generator[Any, Any, Reader]:
        yield Send(Retry(self.round))
        self.exchanged.trips += 1
        return Reader(expect((yield Receive()), Resampling, self.round).payload)


@dataclass(slots=True)
class _Settling:
    """A rejection under way: what was rejected, and what the device was offered for it.

    floor: of the chance that a candidate passes; usual: what the device takes it for.
    """

    target: Probs
    distribution: Probs
    stream: Stream
    floor: float
    usual: float
    offered: list[Candidate]
    failed: int = 0
    messages: int = 0


class XcosdECloud(ScalarCloud):
    """Draws candidates."""

    device_resamples = True

    def __init__(self, side: CloudSide, options: CandidateOptions) -> None:
        super().__init__(side, options)
        self._units = 2**options.draft_precision - 1
        self._count, self._iterations = options.candidates, options.iterations
        self._as_paper = options.as_paper
        self._codec = CandidateCodec(side.common, options.draft_precision, as_paper=options.as_paper)
        self._hybrid = HybridCodec(side.common, options.precision)
        self._bits = side.common.target_bits + options.draft_precision + 2
        self._estimate = CandidateCount()
        self._is_told = _is_told(options, side)
        self._settling: _Settling | None = None
        self.quantise = quantise_lumped(side.common.size, self._hybrid.ratios)

    def correct(self, writer: Writer, target: Target, draft: Proposed, place: Place) -> Generator[Any, Any, None]:
        """Offer the first candidates."""
        yield from ()
        prob, probs = target.prob(draft.number), target.probs
        beyond = 1.0 if self._as_paper else 1.0 - prob
        floor = min(1.0, max(0.0, (draft.prob - prob) / beyond))
        stream = self.side.chance.at(place, Role.CANDIDATE)
        distribution = probs if self._as_paper else candidate_distribution(probs, draft.number)
        self._settling = _Settling(probs, distribution, stream, floor, usual_floor(draft.prob), [])
        self._offer(writer, self._settling)

    def awaited(self) -> Generator[Any, Any, Draft]:
        """The next drafts; until they come, more for a device that needs it."""
        while isinstance(message := (yield Receive()), Retry):
            yield Send(Resampling(self.round - 1, self._again(message)))
        draft: Draft = expect(message, Draft, self.round)
        return draft

    def read_owed(self, reader: Reader) -> list[int]:
        """The candidate that passed, or the token that the device drew; before it the estimate, if it is told."""
        if self._is_told:
            self._estimate, self._is_told = _read_estimate(reader), False
        settling = self._settling
        if not self.owed or settling is None or not settling.offered:
            return super().read_owed(reader)
        offered = settling.offered
        place = reader.number(bits_for(len(offered)), len(offered), "the place of the chosen candidate")
        self._estimate.observe(settling.usual, place + 1, passed=True)
        return [offered[place].number]

    def _again(self, message: Retry) -> bytes:
        settling = self._settling
        if not self.owed or settling is None or not settling.offered:
            raise ProtocolError("Retry came where no candidates were offered", "out-of-turn")
        expect(message, Retry, self.round - 1)
        self._estimate.observe(settling.usual, len(settling.offered), passed=False)
        settling.failed += len(settling.offered)
        writer = Writer()
        self._offer(writer, settling)
        return writer.finish()

    def _offer(self, writer: Writer, settling: _Settling) -> None:
        count = self._how_many(settling)
        settling.offered = self._drawn(settling, count)
        settling.messages += 1
        self._codec.write(writer, settling.offered)
        if not settling.offered:
            self._hybrid.write(writer, settling.target, settling.stream)

    def _how_many(self, settling: _Settling) -> int:
        if settling.messages == self._iterations:
            return 0
        if self._count:
            return self._count
        # By the real floor, which the cloud alone knows: how many come, the device sees when they are there.
        count, cost = self._estimate.best(settling.floor, settling.failed, self._bits)
        return count if cost < self._hybrid.bits(settling.target) else 0

    def _drawn(self, settling: _Settling, count: int) -> list[Candidate]:
        """Draw `count` candidates; one outside the common vocabulary always passes, so none need follow it."""
        drawn: list[Candidate] = []
        size = self.side.common.size
        while len(drawn) < count and (self._as_paper or not (drawn and drawn[-1].number >= size)):
            number = settling.stream.categorical(settling.distribution)
            drawn.append(self._rounded(settling, number) if number < size else Candidate(number))
        return drawn

    def _rounded(self, settling: _Settling, number: int) -> Candidate:
        units = float(settling.target[number]) * self._units
        return Candidate(number, int(units), settling.stream.bernoulli(chance_to_round_up(units)))


def _read_estimate(reader: Reader) -> CandidateCount:
    passed, tested = reader.array("<f8", 2).tolist()
    if not (isfinite(passed) and isfinite(tested) and tested > 0):
        raise ProtocolError("the estimate of how many candidates pass is none", "out-of-range")
    return CandidateCount(passed, tested)


_SUMMARY = "scalars up, candidates down; the device tests them"
XCOSD_E = Method(
    "xcosd-e",
    _SUMMARY,
    True,
    XcosdEDevice,
    XcosdECloud,
    options=CandidateOptions,
    bits=accounting.candidates,
    needs=CHAIN_NEEDS,
)
