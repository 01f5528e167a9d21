"""An answer as it grows: bytes to text at complete characters, stop strings, and the figures of how it went."""

import codecs
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.methods.accounting import Bits, Work
from antiphon.methods.effects import Consulted, Emit, Emitted, Exchanged, Finish, Kind
from antiphon.retrieval.context import Looked
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Closed
from antiphon.wire.session import Ledger


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text to show, and where its last token came from."""

    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arrival:
    """Tokens that were committed together: when, where each came from, and how many drafts were sent for them."""

    time: float
    kinds: tuple[Kind, ...]
    drafted: int


class TextStream:
    """Bytes in, text out at complete UTF-8 characters, held back while it could be the start of a stop string."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stop = stop
        self._held = ""
        self.stopped = False

    def feed(self, data: bytes, *, final: bool = False) -> str:
        """The text that can be shown now. With `final`, what was held back too, broken characters replaced."""
        if self.stopped:
            return ""
        text = self._held + self._decoder.decode(data, final)
        found = [index for stop in self._stop if (index := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = 0 if final else self._held_back(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _held_back(self, text: str) -> int:
        sizes = (size for stop in self._stop for size in range(len(stop) - 1, 0, -1) if text.endswith(stop[:size]))
        return max(sizes, default=0)


class Answer:
    """The tokens, text and times of one answer."""

    def __init__(self, common: CommonVocabulary, stop: Sequence[str], started: float) -> None:
        self.numbers: list[int] = []
        self.text = ""
        self.kinds: Counter[Kind] = Counter()
        self.rounds = 0
        self.resumed = 0
        """How often it went on after the link was lost."""
        self.exchanged = Exchanged()
        self.consulted: list[Consulted] = []
        self.started = started
        self.arrivals: list[Arrival] = []
        self._common = common
        self._stream = TextStream(stop)
        self._times: list[float] = []
        self._last = Kind.LOCAL

    @property
    def stopped(self) -> bool:
        """True once a stop string came."""
        return self._stream.stopped

    def take(self, emit: Emit, now: float) -> list[Piece]:
        """Add the tokens of a round. After a stop string neither its text nor the tokens behind it count."""
        self.rounds += emit.exchanged.trips > 0
        self.exchanged += emit.exchanged
        self.consulted += [] if emit.consulted is None else [emit.consulted]
        pieces: list[Piece] = []
        before = self.committed
        for token in emit.tokens:
            if not self.stopped:
                pieces += self._take(token, now)
        kinds = tuple(token.kind for token in emit.tokens[: self.committed - before])
        self.arrivals.append(Arrival(now, kinds, emit.exchanged.drafted))
        if self.stopped:
            self._trim()
        return pieces

    def work(self) -> Work:
        """What the answer came to, for a method's closed form."""
        kinds = self.kinds
        by_kind = (kinds[Kind.STREAMED], kinds[Kind.CORRECTION], kinds[Kind.BONUS], kinds[Kind.LOCAL])
        return Work(*by_kind, self.exchanged)

    def end(self) -> list[Piece]:
        """The text that was held back, when nothing more comes; it has the mark of the last token."""
        return self._show(b"", self._last, final=True)

    def _take(self, token: Emitted, now: float) -> list[Piece]:
        self.numbers.append(token.number)
        self.kinds[token.kind] += 1
        self._last = token.kind
        self._times.append(now)
        data = b"" if token.number in self._common.ends else self._common.pieces[token.number]
        return self._show(data, token.kind)

    def _trim(self) -> None:
        """Drop the tokens that lie wholly behind the text."""
        size = len(self.text.encode())
        while self.numbers and len(b"".join(map(self._common.pieces.__getitem__, self.numbers[:-1]))) >= size:
            self.numbers.pop()

    def _show(self, data: bytes, kind: Kind, *, final: bool = False) -> list[Piece]:
        text = self._stream.feed(data, final=final)
        self.text += text
        return [Piece(text, kind)] if text else []

    @property
    def committed(self) -> int:
        """Tokens that were committed, those of a stop string included."""
        return len(self._times)

    @property
    def first_token_s(self) -> float:
        """Seconds from the request to the first token."""
        return self._times[0] - self.started

    @property
    def seconds(self) -> float:
        """Seconds from the request to the last token."""
        return self._times[-1] - self.started

    def acceptance_by_depth(self) -> list[tuple[int, int]]:
        """Of the first, second, ... draft of a round: how many stood, and how many were tested."""
        stood = [arrival.kinds.count(Kind.ACCEPTED) for arrival in self.arrivals]
        tested = [count + (Kind.CORRECTION in arrival.kinds) for count, arrival in zip(stood, self.arrivals, strict=True)]
        depths = range(max(tested, default=0))
        return [(sum(count > depth for count in stood), sum(count > depth for count in tested)) for depth in depths]

    def intervals(self) -> list[float]:
        """Seconds between tokens that follow each other; those of one round arrive together, 0 apart."""
        return [after - before for before, after in zip(self._times, self._times[1:], strict=False)]


@dataclass(frozen=True, slots=True)
class Result:
    """An answer and its figures; `as_json` names them as the command line prints them."""

    method: str
    exact: bool
    finish_reason: Finish
    answer: Answer
    token_ids: tuple[int, ...]
    seed: int
    ledger: Ledger
    closed: Closed | None
    prompt_tokens: int | None
    closed_form: Bits | None = None
    looked: Looked | None = None
    """What the device found in its library, if the method reads it."""

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
    def tokens(self) -> int:
        """Tokens of the answer, its end included, a stop string not."""
        return len(self.token_ids)

    @property
    def acceptance_rate(self) -> float | None:
        """The share of tested drafts that stood; drafts behind a rejection are not tested."""
        accepted = self.answer.kinds[Kind.ACCEPTED]
        tested = accepted + self.answer.kinds[Kind.CORRECTION]
        return accepted / tested if tested else None

    @property
    def costs_known(self) -> bool:
        """Whether the cloud told what it all cost. It does at the end of a session, so not where one was lost."""
        opened = self.ledger.setup.frames > 0
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
        committed, exchanged = self.answer.committed, self.answer.exchanged
        rounds = self.answer.rounds or None
        return {
            "tokens": self.tokens,
            "resumed": self.answer.resumed,
            "rounds": rounds,
            "tokens_per_round": committed / rounds if rounds else None,
            "trips_per_round": exchanged.trips / rounds if rounds else None,
            "drafted": exchanged.drafted,
            "accepted": self.answer.kinds[Kind.ACCEPTED],
            "acceptance_rate": self.acceptance_rate,
            "acceptance_by_depth": [stood / tested for stood, tested in self.answer.acceptance_by_depth()],
            "candidates": exchanged.candidates,
            "entries_per_draft_law": exchanged.entries / exchanged.draft_laws if exchanged.draft_laws else None,
            "cut_mass_per_draft_law": exchanged.cut / exchanged.draft_laws if exchanged.draft_laws else None,
            "target_laws": exchanged.laws,
            "rounding_tv": self.closed.rounding if self.closed and self.costs_known else None,
            "cloud_passes_per_token": self.passes / committed if self.costs_known else None,
            "cloud_ms_per_token": self.compute_ms / committed if self.costs_known else None,
        }

    def _mixture(self) -> dict[str, object]:
        """Where the tokens of a mixture came from, and what the evidence took; shares are of all tokens."""
        kinds, tokens = self.answer.kinds, self.answer.committed
        efforts = [consulted.effort for consulted in self.answer.consulted if consulted.effort is not None]
        if not (efforts or kinds[Kind.CERTAIN] or kinds[Kind.LOCAL]):
            return {}
        alone = sum(not (effort.questions or effort.chunks or effort.everything) for effort in efforts)
        return {
            "certain": kinds[Kind.CERTAIN] / tokens,
            "local": kinds[Kind.LOCAL] / tokens,
            "consulted": len(efforts) / tokens,
            "changed": kinds[Kind.CHANGED] / tokens,
            "certified_at_once": alone / len(efforts) if efforts else None,
            "questions": sum(effort.questions for effort in efforts),
            "chunks": sum(effort.chunks for effort in efforts),
            "forced": sum(effort.everything for effort in efforts),
            "drafts_taken": sum(one.drafted for one in self.answer.consulted) / len(efforts) if efforts else None,
            "waited_s": sum(one.waited for one in self.answer.consulted),
        }

    def _bits(self) -> dict[str, object]:
        figures: dict[str, object] = {}
        for name, traffic in (("uplink", self.ledger.up), ("downlink", self.ledger.down)):
            figures[f"{name}_bits_per_token"] = traffic.bits / self.answer.committed
            figures[f"{name}_payload_bits_per_token"] = traffic.payload_bits / self.answer.committed
            figures[f"{name}_framing_bits_per_token"] = traffic.framing_bits / self.answer.committed
        form, committed = self.closed_form, self.answer.committed
        figures["uplink_closed_form_bits_per_token"] = form.up / committed if form else None
        figures["downlink_closed_form_bits_per_token"] = form.down / committed if form else None
        return {**figures, "setup_bits": self.ledger.setup.bits}

    def _times(self) -> dict[str, object]:
        intervals = self.answer.intervals()
        deciles = statistics.quantiles(intervals, n=10, method="inclusive") if len(intervals) > 1 else intervals * 9
        return {
            "ttft_s": self.answer.first_token_s,
            "itl_p50_s": deciles[4] if deciles else None,
            "itl_p90_s": deciles[8] if deciles else None,
            "seconds": self.answer.seconds,
            "tokens_per_s": self.answer.committed / self.answer.seconds if self.answer.seconds > 0 else None,
        }
