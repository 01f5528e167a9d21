"""What is asked for, and what is kept of an answer: its tape, and how it went on a link."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from antiphon.config import Request, SamplingParams
from antiphon.device.answer import Result
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.options import options_of
from antiphon_lab.ends.trials import seed_of
from antiphon_lab.papers.tapes import Tape
from antiphon_lab.stats.intervals import Mean, ratio_of_ratios

Options = tuple[tuple[str, bool | int | str], ...]
"""Of a method, by name, where they are not its defaults; words such as `lockstep` for what they stand for."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One answer to write. question: names its prompt, such as `wmt22 3`. options: of the method, by name, if not its defaults.

    each_asked: a stream for whose every token the device sends a request, a trip a token, as without streaming.
    """

    question: str
    prompt: str
    method: str
    options: Options = ()
    max_tokens: int = 48
    each_asked: bool = False

    @property
    def streamed(self) -> "Ask":
        """The answer whose tape is this one's."""
        return replace(self, each_asked=False)

    @property
    def hangs_on_time(self) -> bool:
        """Whether what both ends do hangs on when messages come, so that no tape is right for another link."""
        return getattr(find(self.method).options_from(self.values), "lockstep", True) is False

    @property
    def values(self) -> dict[str, object]:
        """The options, with what words stand for."""
        known = {one.name: one for one in options_of(find(self.method).options)}
        return {name: known[name].value(str(value)) for name, value in self.options if name in known}

    @property
    def key(self) -> str:
        """Tells it from others in a store."""
        digest = hashlib.sha256(self.prompt.encode()).hexdigest()[:8]
        options = ",".join(f"{name}={value}" for name, value in self.options)
        return " ".join(
            [self.question, digest, self.method, options or "-", str(self.max_tokens), "asked"[: 5 * self.each_asked]]
        )

    def seed(self, run_seed: int) -> int:
        """The same for every method, another for every question, 64 bits."""
        return seed_of(f"{run_seed} {self.question}")

    def request(self, sampling: SamplingParams, run_seed: int) -> Request:
        """What the device is asked for. Raises UsageError for a draft length that is automatic: no tape is right for that."""
        options = find(self.method).options_from(self.values)
        if getattr(options, "draft_length", 1) == 0:
            raise UsageError(f"an answer of {self.method} with an automatic draft length cannot be timed anew: fix the length")
        return Request(self.prompt, self.method, options, sampling, self.max_tokens, seed=self.seed(run_seed))


class Take(msgspec.Struct, frozen=True):
    """A real answer: its tape, and its text."""

    tape: Tape
    text: str


class Timing(msgspec.Struct, frozen=True):
    """An answer on a link. moments: seconds since it was asked for at which tokens came, and how many.

    up, down: bits of the method's own, framing, and by the closed form. opening: bits of the messages that open it, both ways.
    accepted, tested: sets of siblings, in a chain drafts. passes: of the cloud.
    """

    moments: tuple[tuple[float, int], ...]
    up: tuple[int, int, int]
    down: tuple[int, int, int]
    opening: int
    accepted: int
    tested: int
    passes: int

    @classmethod
    def of(cls, result: Result) -> "Timing":
        """From a result, in real or virtual time."""
        answer, form, traffic = result.answer, result.closed_form, result.traffic
        moments = tuple((arrival.time - answer.started, len(arrival.kinds)) for arrival in answer.emissions if arrival.kinds)
        up, down = (form.up, form.down) if form else (0, 0)
        accepted, tested = answer.sets_of_siblings()
        return cls(
            moments=moments,
            up=(traffic.up.payload_bits, traffic.up.framing_bits, up),
            down=(traffic.down.payload_bits, traffic.down.framing_bits, down),
            opening=traffic.setup.bits,
            accepted=accepted,
            tested=tested,
            passes=result.passes,
        )

    @property
    def tokens(self) -> int:
        """Tokens of the answer."""
        return sum(count for _, count in self.moments)

    @property
    def decoding(self) -> tuple[int, float]:
        """The tokens after the first round's, and their seconds: what is left when the prompt is read."""
        return self.tokens - self.moments[0][1], self.moments[-1][0] - self.moments[0][0]

    def shares(self) -> list[float]:
        """For each of these tokens its share of the seconds of its round."""
        rounds = zip(self.moments, self.moments[1:], strict=False)
        return [(after - before) / count for (before, _), (after, count) in rounds for _ in range(count)]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A method's figure over another's, of the same questions; so its interval is paired. x: the rate or the round trip."""

    what: str
    name: str
    other: str
    x: float
    times: Mean


def faster(timings: Sequence[Timing], others: Sequence[Timing]) -> Mean:
    """Tokens a second over those of others."""
    return ratio_of_ratios([timing.decoding for timing in timings], [timing.decoding for timing in others])
