"""What is measured of a method in X-CoSD's comparison: bits, tokens a second, latency."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon_lab.papers.answers import Timing
from antiphon_lab.stats.intervals import Mean, ratio, ratio_of_ratios


@dataclass(frozen=True, slots=True)
class Load:
    """Bits a token. task: `all` for all of them. framing: what wraps the methods' own. form: by the closed form.

    opening: of the messages that open an answer, both ways, shared out among its tokens.
    """

    name: str
    task: str
    up: Mean
    down: Mean
    framing_up: float
    framing_down: float
    form_up: float
    form_down: float
    opening: float
    tokens_a_round: float
    passes_a_token: float
    accepted: float | None


@dataclass(frozen=True, slots=True)
class ByLength:
    """A method with so many drafts a round: bits a token, and tokens/s at one rate."""

    name: str
    drafts: int
    load: Load
    throughput: Mean


@dataclass(frozen=True, slots=True)
class Curve:
    """Tokens/s over the downlink's rate or over the round trip. Prompts are read before."""

    name: str
    points: tuple[tuple[float, Mean], ...]

    def at(self, x: float) -> Mean:
        """The point nearest to x."""
        return min(self.points, key=lambda point: abs(point[0] - x))[1]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds a token, each token its share of its round; and until the first token."""

    name: str
    mean: Mean
    p50: float
    p90: float
    first: float


def load(name: str, task: str, timings: Sequence[Timing]) -> Load:
    """A method's bits over some answers."""
    tokens = sum(timing.tokens for timing in timings)
    tested = sum(timing.tested for timing in timings)

    def each(of: Callable[[Timing], float]) -> float:
        return sum(map(of, timings)) / tokens

    return Load(
        name,
        task,
        up=ratio([(timing.up[0], timing.tokens) for timing in timings]),
        down=ratio([(timing.down[0], timing.tokens) for timing in timings]),
        framing_up=each(lambda timing: timing.up[1]),
        framing_down=each(lambda timing: timing.down[1]),
        form_up=each(lambda timing: timing.up[2]),
        form_down=each(lambda timing: timing.down[2]),
        opening=each(lambda timing: timing.opening),
        tokens_a_round=tokens / sum(len(timing.moments) for timing in timings),
        passes_a_token=each(lambda timing: timing.passes),
        accepted=sum(timing.accepted for timing in timings) / tested if tested else None,
    )


def throughput(timings: Sequence[Timing]) -> Mean:
    """Tokens a second, the prompts read before."""
    return ratio([timing.decoding for timing in timings])


def larger(timings: Sequence[Timing], others: Sequence[Timing], way: str) -> Mean:
    """Bits a token of a method's own, `up` or `down`, over those of others."""
    ours, theirs = ([(getattr(one, way)[0], one.tokens) for one in some] for some in (timings, others))
    return ratio_of_ratios(ours, theirs)


def latency(name: str, timings: Sequence[Timing]) -> Latency:
    """Of a method over some answers."""
    shares = [1000 * share for timing in timings for share in timing.shares()]
    deciles = statistics.quantiles(shares, n=10, method="inclusive")
    first = 1000 * statistics.mean(timing.moments[0][0] for timing in timings)
    mean = ratio([(1000 * seconds, tokens) for tokens, seconds in (timing.decoding for timing in timings)])
    return Latency(name, mean, deciles[4], deciles[8], first)
