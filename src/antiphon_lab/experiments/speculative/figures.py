"""Answers to figures: what a row of `antiphon-lab bench speculative` says, with intervals.

An interval is the middle 95 % over resampled answers (bootstrap): how far the figure would move with other prompts and seeds of
the same kind.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from antiphon.device.answer import Result
from antiphon_lab.stats.bootstrap import Interval, resampled

RESAMPLES = 1000
_SEED = 20251216


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A finished answer, as it is kept.

    arrivals: seconds since the question and tokens, whenever some were committed. depths: of the drafts at the first, second
    and further levels of a round how many stood and how many were tested. cloud_ms: what the cloud's model worked, the prompt
    included. opening: bits of the messages that open an answer, both ways. up_packets, down_packets: of TCP, one frame or more
    each; packet_bits: what TCP/IP and TLS add to them, both ways (`antiphon.wire.packets`). digest: of the tokens, to hold
    answers against each other.
    """

    row: str
    link: str
    profile: str
    temperature: float
    prompt: int
    seed: int
    exact: bool
    arrivals: tuple[tuple[float, int], ...]
    up_payload: int
    up_framing: int
    down_payload: int
    down_framing: int
    opening: int
    up_packets: int
    down_packets: int
    packet_bits: int
    rounds: int
    drafted: int
    depths: tuple[tuple[int, int], ...]
    passes: int
    cloud_ms: float
    digest: str

    @property
    def tokens(self) -> int:
        """Tokens that were committed."""
        return sum(tokens for _, tokens in self.arrivals)

    @property
    def seconds(self) -> float:
        """Until the last of them."""
        return self.arrivals[-1][0]

    def intervals(self) -> list[float]:
        """Seconds between tokens that follow each other; those that arrive together are 0 apart."""
        found: list[float] = []
        for place, (time, tokens) in enumerate(self.arrivals):
            found += [time - self.arrivals[place - 1][0]] if place else []
            found += [0.0] * (tokens - 1)
        return found


def written(result: Result, **where: object) -> Written:
    """What is kept of an answer. where: the fields that tell which one it is."""
    answer, traffic = result.answer, result.traffic
    arrivals = tuple((one.time - answer.started, len(one.kinds)) for one in answer.emissions if one.kinds)
    return Written(
        **where,  # type: ignore[arg-type]
        exact=result.exact,
        arrivals=arrivals,
        up_payload=traffic.up.payload_bits,
        up_framing=traffic.up.framing_bits,
        down_payload=traffic.down.payload_bits,
        down_framing=traffic.down.framing_bits,
        opening=traffic.setup.bits,
        up_packets=traffic.up.packets,
        down_packets=traffic.down.packets,
        packet_bits=traffic.up.packet_bits + traffic.down.packet_bits,
        rounds=answer.rounds,
        drafted=answer.exchanged.drafted,
        depths=tuple(answer.acceptance_by_depth()),
        passes=result.passes,
        cloud_ms=result.compute_ms,
        digest=hashlib.sha256(answer_bytes(result.token_ids)).hexdigest()[:16],
    )


def answer_bytes(token_ids: Sequence[int]) -> bytes:
    """An answer's tokens, as a digest is made of them."""
    return " ".join(map(str, token_ids)).encode()


@dataclass(frozen=True)
class Figures:
    """The figures of a row's answers. reference: those of `cloud` to the same prompts with the same seeds, in order."""

    answers: tuple[Written, ...]
    reference: tuple[Written, ...]

    @cached_property
    def tokens(self) -> int:
        """Of all answers."""
        return sum(one.tokens for one in self.answers)

    @cached_property
    def tokens_per_s(self) -> float:
        """Tokens of all answers over the seconds of all answers."""
        return self.tokens / sum(one.seconds for one in self.answers)

    @cached_property
    def tokens_per_s_interval(self) -> Interval | None:
        """Its interval; None of too few answers."""
        return resampled(_speeds(self.answers), lambda sums: sums[:, 0] / sums[:, 1], _SEED, RESAMPLES)

    @cached_property
    def speedup(self) -> float:
        """Tokens a second over those of `cloud`, which streams."""
        theirs = sum(one.tokens for one in self.reference) / sum(one.seconds for one in self.reference)
        return self.tokens_per_s / theirs

    @cached_property
    def speedup_interval(self) -> Interval | None:
        """Its interval, answers resampled in pairs; None of too few."""
        paired = np.hstack([_speeds(self.answers), _speeds(self.reference)])
        return resampled(paired, lambda sums: sums[:, 0] * sums[:, 3] / (sums[:, 1] * sums[:, 2]), _SEED, RESAMPLES)

    @cached_property
    def ttft_s(self) -> float:
        """Seconds to the first token, on average."""
        return float(np.mean([one.arrivals[0][0] for one in self.answers]))

    def itl_s(self, percent: float) -> float | None:
        """A percentile of the seconds between tokens, over all answers."""
        found = [seconds for one in self.answers for seconds in one.intervals()]
        return float(np.percentile(found, percent)) if found else None

    @cached_property
    def tokens_per_round(self) -> float | None:
        """Tokens of a round; None for a method without rounds, and in a stream."""
        rounds = sum(one.rounds for one in self.answers)
        return self.tokens / rounds if rounds else None

    @cached_property
    def acceptance(self) -> list[float]:
        """The share that stood of the drafts at the first, second, ... level of a round that were tested.

        Only as deep as drafts ever stood.
        """
        deepest = max(len(one.depths) for one in self.answers)
        columns = [[one.depths[depth] for one in self.answers if len(one.depths) > depth] for depth in range(deepest)]
        rates = [sum(stood for stood, _ in column) / sum(tested for _, tested in column) for column in columns]
        while len(rates) > 1 and rates[-1] == 0:
            rates.pop()
        return rates

    def per_token(self, of: Callable[[Written], float]) -> float:
        """A sum over the answers, for each token."""
        return sum(of(one) for one in self.answers) / self.tokens

    @cached_property
    def bits(self) -> dict[str, float]:
        """Bits a token: payload and framing, each way, and the opening of the answer, shared out among its tokens."""
        names = ("up_payload", "up_framing", "down_payload", "down_framing", "opening")
        return {name: self.per_token(lambda one, name=name: getattr(one, name)) for name in names}  # type: ignore[misc]

    @cached_property
    def packets(self) -> dict[str, float]:
        """Packets a token each way, and the bits a token that TCP/IP and TLS add to them."""
        names = ("up_packets", "down_packets", "packet_bits")
        return {name: self.per_token(lambda one, name=name: getattr(one, name)) for name in names}  # type: ignore[misc]

    def as_json(self) -> dict[str, object]:
        """The figures by name."""
        return {
            "exact": all(one.exact for one in self.answers),
            "answers": len(self.answers),
            "tokens": self.tokens,
            "same_as_cloud": self.same,
            "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_interval": self.tokens_per_s_interval,
            "speedup": self.speedup,
            "speedup_interval": self.speedup_interval,
            "ttft_s": self.ttft_s,
            "itl_p50_s": self.itl_s(50),
            "itl_p90_s": self.itl_s(90),
            **{f"{name}_bits_per_token": value for name, value in self.bits.items()},
            **{f"{name}_per_token": value for name, value in self.packets.items()},
            "tokens_per_round": self.tokens_per_round,
            "drafts_per_round": self._drafts_per_round(),
            "cloud_passes_per_token": self.per_token(lambda one: one.passes),
            "cloud_ms_per_token": self.per_token(lambda one: one.cloud_ms),
            "acceptance_by_depth": self.acceptance,
        }

    @property
    def same(self) -> int:
        """Answers that are token for token those of `cloud` with the same seed."""
        return sum(one.digest == other.digest for one, other in zip(self.answers, self.reference, strict=True))

    def _drafts_per_round(self) -> float | None:
        rounds = sum(one.rounds for one in self.answers)
        return sum(one.drafted for one in self.answers) / rounds if rounds else None


def _speeds(answers: Sequence[Written]) -> NDArray[np.float64]:
    return np.array([(one.tokens, one.seconds) for one in answers], dtype=np.float64)
