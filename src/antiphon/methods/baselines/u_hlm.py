"""`u-hlm`: uncertainty-aware hybrid inference, a lossy baseline of X-CoSD (METHODS 2).

The device drafts one token. If it is certain of it, the token is committed without the cloud; else the round of `dsd` with one
draft. Certain: fewer than half of 20 draws from the same logits, at temperatures spread evenly over (0, 2], differ from the
draft. What was committed alone goes up with the next draft, ids only. Not exact: those tokens are the small model's.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.config import SamplingParams
from antiphon.core.chance import Role
from antiphon.core.distributions import process
from antiphon.core.rounding import quantise_fixed
from antiphon.errors import ProtocolError
from antiphon.methods import closed_forms as accounting
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.drafter import Drafted
from antiphon.methods.effects import Emitted, Exchanged, Kind
from antiphon.methods.outcome import UNTESTED
from antiphon.methods.speculative.chain import CHAIN_NEEDS, Begun, ChainDevice
from antiphon.methods.speculative.dsd import DsdCloud
from antiphon.methods.speculative.options import Verification, require_bits
from antiphon.options import option, require
from antiphon.vocabulary import bits_for
from antiphon.wire.packing import Reader, Writer

HOTTEST = 2.0
"""The highest temperature of the draws that judge a draft."""


@dataclass(frozen=True, slots=True)
class UncertaintyOptions:
    """Options of `u-hlm`: draws that judge a draft, and the share of other tokens from which on it is uncertain."""

    draft_precision: int = option(16, "Bits of a draft probability on the wire: 16 or 32.")
    draws: int = option(20, "Draws that judge a draft.")
    uncertain: float = option(0.5, "Share of other draws from which on a draft counts as uncertain.")

    @property
    def max_drafts(self) -> int:
        """One draft a round, always."""
        return 1

    @property
    def draft_length(self) -> int:
        """The same."""
        return 1

    @property
    def verification(self) -> Verification:
        """Of one draft both ways are the same."""
        return "token"

    def __post_init__(self) -> None:
        require_bits("draft precision", self.draft_precision, 16, 32)
        require(1 <= self.draws <= 1000, f"draws must be 1 to 1000, not {self.draws}")
        require(0 <= self.uncertain <= 1, f"uncertain must be a share from 0 to 1, not {self.uncertain}")


class UncertaintyDevice(ChainDevice):
    """Asks the cloud only about drafts of which it is uncertain."""

    def __init__(self, side: DeviceSide, options: UncertaintyOptions) -> None:
        super().__init__(side, options)
        self.precision = options.draft_precision
        self.quantise = quantise_fixed(self.precision)
        self._draws, self._uncertain = options.draws, options.uncertain
        self._unsent = self.side.transcript.remaining  # what the cloud knows to remain

    def write_owed(self, writer: Writer) -> None:
        """The tokens that were committed alone."""
        writer.number(len(self.owed), bits_for(self._unsent + 1))
        for number in self.owed:
            writer.number(number, self.side.common.common_bits)

    def _round(self) -> Generator[Any, Any, None]:
        drafts = yield from self.drafts(1)
        if drafts and self._is_certain(drafts[0]):
            self.exchanged = Exchanged(drafted=1)
            self.owed.append(drafts[0].number)
            yield self.commit([Emitted(drafts[0].number, Kind.LOCAL)], UNTESTED)
            return
        # With one token left the cloud's own is it: a draft would need another one behind it.
        asked = drafts if self.side.transcript.remaining > 1 else []
        yield from self.exchange(Begun(asked, told=Exchanged(drafted=len(asked))))
        self._unsent = self.side.transcript.remaining

    def _is_certain(self, draft: Drafted) -> bool:
        stream = self.side.chance.at(self.side.transcript.place(), Role.UNCERTAINTY)
        temperatures = (HOTTEST * (index + 1) / self._draws for index in range(self._draws))
        distributions = (process(draft.logits, SamplingParams(temperature=temperature)) for temperature in temperatures)
        # A coin with the probability that the draw differs: which other token it would be says nothing.
        differing = sum(stream.bernoulli(1.0 - float(distribution[draft.number])) for distribution in distributions)
        return differing < self._uncertain * self._draws


class UHlmDevice(UncertaintyDevice):
    """Sends the whole distribution of an uncertain draft."""

    def pack(self, writer: Writer, drafts: Sequence[Drafted]) -> None:
        """One distribution a draft, as `dsd`."""
        for draft in drafts:
            writer.probabilities(draft.probs, self.precision)


class UncertaintyCloud(DsdCloud):
    """Takes what the device committed alone."""

    def __init__(self, side: CloudSide, options: UncertaintyOptions) -> None:
        super().__init__(side, options)

    def read_owed(self, reader: Reader) -> list[int]:
        """The tokens that the device committed alone."""
        remaining, common = self.side.transcript.remaining, self.side.common
        count = reader.number(bits_for(remaining + 1), remaining + 1, "the count of tokens that were committed alone")
        numbers = [reader.number(common.common_bits, common.size, "a token that was committed alone") for _ in range(count)]
        if any(map(self.side.transcript.is_end, numbers[:-1])):
            raise ProtocolError("tokens follow the end of the answer", "out-of-range")
        return numbers


_SUMMARY = "certain drafts stand unseen; of others the whole draft distribution up, one token down"
U_HLM = Method(
    "u-hlm",
    _SUMMARY,
    False,
    UHlmDevice,
    UncertaintyCloud,
    options=UncertaintyOptions,
    bits=accounting.dense_drafts,
    needs=CHAIN_NEEDS,
)
