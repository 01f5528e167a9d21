"""X-CoSD's methods against each other, question by question, so that what the paper says of them is decided by intervals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from antiphon_lab.papers.answers import Ratio, Timing, faster
from antiphon_lab.papers.xcosd.entrants import CHAIN, STREAM, TREE, TREE_STREAM
from antiphon_lab.papers.xcosd.measures import Curve, larger, throughput

NAMED_RATE = 100.0
"""Mbit/s down, for what is told at one rate."""
SPEED, TRIP, UP, DOWN, RATE = "tokens/s", "tokens/s by round trip", "bits up", "bits down", "tokens/s, fast over slow link"
"""What is compared."""
FASTER = {
    "xcosd-e": ("cloud", "dssd", "dsd", "xcosd"),
    "xcosd": ("cloud", "dssd", "dsd"),
    CHAIN.name: ("cloud",),
    TREE.name: ("cloud",),
    STREAM.name: ("cloud",),
    TREE_STREAM.name: ("cloud",),
}
"""Methods, and those that they are held against at every rate: the baselines that the paper names, and for ours the cloud."""
LIGHTER = {DOWN: (("dssd", "xcosd"), ("xcosd", "xcosd-e")), UP: (("dsd", "dssd"), ("u-hlm", "dssd"))}
"""The heavier first."""
FAR = dict.fromkeys(("xcosd-e", CHAIN.name, TREE.name, STREAM.name, TREE_STREAM.name), ("cloud", "cloud-trips"))
DEPENDING = ("xcosd-e", "xcosd")
"""Methods whose speed is held against their own on the slowest link."""


@dataclass(frozen=True, slots=True)
class Along:
    """The answers of each method at each rate or round trip, question by question."""

    timings: Mapping[str, Mapping[float, Sequence[Timing]]]

    def curves(self) -> list[Curve]:
        """Tokens a second of each."""
        return [
            Curve(name, tuple((x, throughput(some)) for x, some in points.items())) for name, points in self.timings.items()
        ]

    def faster(self, what: str, wanted: Mapping[str, Sequence[str]]) -> Iterator[Ratio]:
        """Tokens a second of methods over those of others, everywhere."""
        for name, others in wanted.items():
            for other in others:
                for x, ours in self.timings[name].items():
                    yield Ratio(what, name, other, x, faster(ours, self.timings[other][x]))


def compared(near: Along) -> Iterator[Ratio]:
    """Along the downlink's rate: speed, and bits, which are the same at every rate."""
    yield from near.faster(SPEED, FASTER)
    for what, pairs in LIGHTER.items():
        for name, other in pairs:
            ours, theirs = (near.timings[one][NAMED_RATE] for one in (name, other))
            yield Ratio(what, name, other, NAMED_RATE, larger(ours, theirs, what.removeprefix("bits ")))
    for name in DEPENDING:
        rates = sorted(near.timings[name])
        slow, fast = (near.timings[name][rate] for rate in (rates[0], rates[-1]))
        yield Ratio(RATE, name, name, rates[-1], faster(fast, slow))


def compared_far(far: Along) -> Iterator[Ratio]:
    """Along the round trip: against the stream, and against a trip a token."""
    yield from far.faster(TRIP, FAR)
