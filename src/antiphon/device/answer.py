"""An answer as it grows, and the figures of how it went."""

import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.device.output.emission import Emission, Emissions
from antiphon.device.output.text import TextStream, bytes_of
from antiphon.device.output.unsettled import Unsettled
from antiphon.methods.closed_forms import Bits, Work
from antiphon.methods.effects import Emit, Emitted, Exchanged, Finish, Kind, Provisional
from antiphon.retrieval.context import Looked
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Closed
from antiphon.wire.session import TrafficCounter


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an answer as it comes: its text, the tokens that begin in it, and where the last of them came from.

    tokens: ids of the model whose answer it is, the cloud's unless the device writes alone. Joined, the texts and the tokens of
    all pieces are those of the answer; either may be empty, for a token may bring no text yet, or its end nothing but text.
    provisional: it is no part of the answer, but how the answer goes on for now, as the device alone would have it; each next
    piece, of either kind, takes its place, and one without text shows that nothing is provisional any more.
    """

    text: str
    tokens: tuple[int, ...]
    origin: Kind
    provisional: bool = False


class Answer(Emissions):
    """The tokens, text and times of one answer: of what is shown, so neither a stop string nor what lies behind it counts."""

    def __init__(self, common: CommonVocabulary, stop: Sequence[str], started: float) -> None:
        super().__init__(started)
        self.numbers: list[int] = []
        self.written: list[int] = []
        """Its tokens with those of a stop string, up to the one that completes it."""
        self.text = ""
        self.exact: bool | None = None
        """Whether it is what an exact method would have written; None where that is a matter of the method alone."""
        self.crossed: Counter[Kind] = Counter()
        """Where tokens came from, those of a stop string and behind it included."""
        self.rounds = 0
        self.resumed = 0
        """How often it went on after the link was lost."""
        self.exchanged = Exchanged()
        self.unsettled = Unsettled()
        """What follows it for now."""
        self._common = common
        self._stream = TextStream(stop)
        self._last = Kind.LOCAL
        self._begins: list[int] = []
        """Where each token begins, in bytes of them all."""
        self._size = self._shown = self._given = 0
        """Bytes of all tokens, bytes of them that are shown, and tokens that pieces had."""
        self._unshown = b""

    @property
    def stopped(self) -> bool:
        """True once a stop string came."""
        return self._stream.stopped

    def take(self, emit: Emit, now: float) -> list[Piece]:
        """Add the tokens of a round. After a stop string neither its text nor the tokens behind it count."""
        self.rounds += emit.exchanged.trips > 0
        self.exchanged += emit.exchanged
        # Once false it stays so: one token that was guessed makes the answer a guess.
        self.exact = emit.exact if self.exact is None else self.exact and emit.exact is not False
        kinds = tuple(token.kind for token in emit.tokens)
        self.crossed.update(kinds)
        self.emissions.append(Emission(now, kinds, emit.exchanged.drafted, emit.tested, emit.consulted))
        follows = self.unsettled.numbers != []
        pieces = [piece for token in emit.tokens for piece in self._take(token)]
        if self.stopped:
            self._trim()
            self.unsettled.show([])
        # What is left of it comes again, for the pieces of what was settled took its place.
        return [*pieces, self._glimpse()[0]] if follows else pieces

    def propose(self, provisional: Provisional) -> tuple[list[Piece], bool]:
        """Let these tokens follow for now; whether there is a stop string among them, so that more would not be shown."""
        follows = self.unsettled.numbers != [] or provisional.numbers != ()
        self.unsettled.show(provisional.numbers)
        piece, stopped = self._glimpse()
        return [piece] if follows else [], stopped

    def work(self) -> Work:
        """What the answer came to, for a method's closed form: with what came behind a stop string, for it crossed too."""
        kinds = self.crossed
        by_kind = (kinds[Kind.STREAMED], kinds[Kind.CORRECTION], kinds[Kind.BONUS], kinds[Kind.LOCAL])
        return Work(*by_kind, self.exchanged)

    def end(self) -> list[Piece]:
        """The text that was held back and the tokens without any, when nothing more comes; with the mark of the last token."""
        text = self._feed(b"", final=True)
        if self.stopped:
            self._trim()
        piece = self._piece(text, len(self.numbers), self._last)
        return [piece] if piece.text or piece.tokens else []

    def _take(self, token: Emitted) -> list[Piece]:
        data = self._bytes(token.number)
        self.numbers.append(token.number)
        self.unsettled.settle(token.number)
        self._begins.append(self._size)
        self._size += len(data)
        if not self.stopped:
            self.written.append(token.number)
        self._last = token.kind
        text = self._feed(data)
        return [self._piece(text, self._begun, token.kind)] if text else []

    def _bytes(self, number: int) -> bytes:
        # Whatever bytes a vocabulary gives to its end, they are no text of the answer.
        return b"" if number in self._common.ends else self._common.pieces[number]

    def _feed(self, data: bytes, *, final: bool = False) -> str:
        """The text that can be shown now."""
        text = self._stream.feed(data, final=final)
        self.text += text
        self._unshown += data
        size = bytes_of(text, self._unshown)
        self._shown, self._unshown = self._shown + size, self._unshown[size:]
        return text

    def _glimpse(self) -> tuple[Piece, bool]:
        numbers = self.unsettled.numbers
        text, stopped = self._stream.glimpse(b"".join(map(self._bytes, numbers))) if numbers else ("", False)
        return Piece(text, tuple(self._common.cloud_ids[numbers].tolist()), Kind.LOCAL, provisional=True), stopped

    @property
    def _begun(self) -> int:
        """Tokens that do not lie wholly behind what is shown."""
        return bisect_left(self._begins, self._shown)

    def _piece(self, text: str, until: int, origin: Kind) -> Piece:
        numbers, self._given = self.numbers[self._given : until], until
        return Piece(text, tuple(self._common.cloud_ids[numbers].tolist()), origin)

    def _trim(self) -> None:
        """Drop the tokens that lie wholly behind the text, and what came with them."""
        kept = self._begun
        del self.numbers[kept:], self._begins[kept:]
        # Figures are of what is shown: an answer that was cut at a stop string must not look faster for tokens that nobody saw.
        for index, emission in enumerate(self.emissions):
            self.emissions[index] = emission.first(kept)
            kept -= len(self.emissions[index].kinds)

    @property
    def committed(self) -> int:
        """Tokens that were committed and are shown."""
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Result:
    """An answer and its figures; `as_json` names them as the command line prints them."""

    method: str
    promised: bool
    """Whether the method says of all its answers that they are exact."""
    finish_reason: Finish
    answer: Answer
    token_ids: tuple[int, ...]
    seed: int
    traffic: TrafficCounter
    closed: Closed | None
    prompt_tokens: int | None
    closed_form: Bits | None = None
    looked: Looked | None = None
    """What the device found in its library, if the method reads it."""
    session: int = 0
    """The session with the cloud that wrote the end of it; 0 for none, or for several."""

    def as_json(self) -> dict[str, object]:
        """The figures by name; None where a figure does not exist for the method."""
        return {
            "method": self.method,
            "exact": self.exact,
            "finish_reason": self.finish_reason.value,
            "text": self.answer.text,
            "seed": self.seed,
            "prompt_tokens": self.prompt_tokens,
            "token_ids": list(self.token_ids),
            **self._work(),
            **self._mixture(),
            **self._bits(),
            **self._times(),
        }

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.answer.text

    @property
    def exact(self) -> bool:
        """Whether this answer is what an exact method writes: no token was guessed, or decided without the word of an end."""
        return self.promised if self.answer.exact is None else self.answer.exact

    @property
    def tokens(self) -> int:
        """Tokens of the answer, its end included, a stop string not."""
        return len(self.token_ids)

    @property
    def drafts(self) -> tuple[int, int]:
        """Drafts that stood, and drafts that were tested: those behind one that fell are not."""
        counts = self.answer.acceptance_by_depth()
        return sum(stood for stood, _ in counts), sum(tested for _, tested in counts)

    @property
    def acceptance_rate(self) -> float | None:
        """The share of tested drafts that stood."""
        return _share(*self.drafts)

    @property
    def kept(self) -> int:
        """Tokens that are the device's own though the method promises the cloud's: the link was lost, and they were kept."""
        return self.answer.kinds[Kind.LOCAL] if self.promised else 0

    @property
    def costs_known(self) -> bool:
        """Whether the cloud told what it all cost. It does at the end of a session, so not where one was lost."""
        opened = self.traffic.setup.frames > 0
        return not opened or (self.closed is not None and not self.answer.resumed)

    @property
    def passes(self) -> int:
        """Forward passes of the cloud that it told of, reading the prompt apart."""
        return self.closed.passes if self.closed else 0

    @property
    def shared(self) -> bool:
        """True if the cloud served others at the same time."""
        return self.closed is not None and self.closed.shared

    @property
    def compute_ms(self) -> float:
        """Milliseconds that the cloud's model worked, as far as it told, reading the prompt included."""
        return self.closed.compute_ms if self.closed else 0.0

    def _work(self) -> dict[str, object]:
        exchanged, rounds, (accepted, tested) = self.answer.exchanged, self.answer.rounds or None, self.drafts
        return {
            "tokens": self.tokens,
            "resumed": self.answer.resumed,
            "provisional": self.answer.unsettled.written,
            "revised": self.answer.unsettled.revised,
            "kept": self.kept,
            "rounds": rounds,
            "tokens_per_round": self.tokens / rounds if rounds else None,
            "trips_per_round": exchanged.trips / rounds if rounds else None,
            "drafted": exchanged.drafted,
            "tested": tested,
            "accepted": accepted,
            "acceptance_rate": self.acceptance_rate,
            "sibling_acceptance_rate": _share(*self.answer.sets_of_siblings()),
            "acceptance_by_depth": [stood / tested for stood, tested in self.answer.acceptance_by_depth()],
            "candidates": exchanged.candidates,
            "entries_per_draft_distribution": exchanged.entries / exchanged.draft_distributions
            if exchanged.draft_distributions
            else None,
            "cut_mass_per_draft_distribution": exchanged.cut / exchanged.draft_distributions
            if exchanged.draft_distributions
            else None,
            "target_distributions": exchanged.distributions,
            "rounding_tv": self.closed.rounding if self.closed and self.costs_known else None,
            "cloud_passes_per_token": self._per_token(self.passes) if self.costs_known else None,
            "cloud_ms_per_token": self._per_token(self.compute_ms) if self.costs_known else None,
        }

    def _mixture(self) -> dict[str, object]:
        """Where the tokens of a mixture came from, and what the evidence took; shares are of all tokens."""
        answer, kinds = self.answer, self.answer.kinds
        efforts = [consulted.effort for consulted in answer.consulted if consulted.effort is not None]
        if not (efforts or answer.crossed[Kind.CERTAIN] or answer.crossed[Kind.LOCAL]):
            return {}
        alone = sum(not (effort.questions or effort.chunks or effort.everything) for effort in efforts)
        return {
            "certain": self._per_token(kinds[Kind.CERTAIN]),
            "local": self._per_token(kinds[Kind.LOCAL]),
            "consulted": self._per_token(answer.decided),
            "changed": self._per_token(kinds[Kind.CHANGED]),
            "certified_at_once": alone / len(efforts) if efforts else None,
            "questions": sum(effort.questions for effort in efforts),
            "chunks": sum(effort.chunks for effort in efforts),
            "forced": sum(effort.everything for effort in efforts),
            "drafts_taken": sum(one.drafted for one in answer.consulted) / len(efforts) if efforts else None,
            "waited_s": sum(one.waited for one in answer.consulted),
        }

    def _bits(self) -> dict[str, object]:
        figures: dict[str, object] = {}
        for name, traffic in (("uplink", self.traffic.up), ("downlink", self.traffic.down)):
            figures[f"{name}_bits_per_token"] = self._per_token(traffic.bits)
            figures[f"{name}_payload_bits_per_token"] = self._per_token(traffic.payload_bits)
            figures[f"{name}_framing_bits_per_token"] = self._per_token(traffic.framing_bits)
        form = self.closed_form
        figures["uplink_closed_form_bits_per_token"] = self._per_token(form.up) if form else None
        figures["downlink_closed_form_bits_per_token"] = self._per_token(form.down) if form else None
        return {**figures, "setup_bits": self.traffic.setup.bits}

    def _times(self) -> dict[str, object]:
        answer, intervals = self.answer, self.answer.intervals()
        seconds = answer.seconds if self.tokens else None
        deciles = statistics.quantiles(intervals, n=10, method="inclusive") if len(intervals) > 1 else intervals * 9
        return {
            "ttft_s": answer.first_token_s if self.tokens else None,
            "itl_p50_s": deciles[4] if deciles else None,
            "itl_p90_s": deciles[8] if deciles else None,
            "seconds": seconds,
            "tokens_per_s": _share(self.tokens, seconds or 0.0),
        }

    def _per_token(self, total: float) -> float | None:
        return _share(total, self.tokens)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
