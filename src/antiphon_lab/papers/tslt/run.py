"""TSLT's figures with our models: retained mass, acceptance, and speed-up against the uplink's rate (TSLT 5).

Answers go through the whole stack in virtual time, on the paper's link (an uplink of some rate, nothing else) and hardware like
the paper's. Beside each speed-up stands the paper's closed form, by the acceptance that was measured along texts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from antiphon_lab.papers.answers import Ask, Options, Ratio, Timing, faster
from antiphon_lab.papers.lab import Lab
from antiphon_lab.papers.plans import Plan, working
from antiphon_lab.papers.plans import Report as PaperReport
from antiphon_lab.papers.tslt.cuts import Cuts, measure
from antiphon_lab.papers.tslt.forms import SpeedUp
from antiphon_lab.stats.intervals import Mean, ratio, ratio_of_ratios
from antiphon_lab.workloads.texts import read_prompts

Timed = Mapping[tuple[Ask, str], Timing]
"""Answers on links."""
TEXT = "wikitext2_test.raw"
DRAFTS = 3
EXPANSION, LAWS = "2,2,2", 7
"""The paper's tree, and its nodes with children: each has a distribution."""


@dataclass(frozen=True, slots=True)
class Size:
    """texts, positions: of truncation. prompts, tokens: answers of each method. rates: uplinks, in Mbit/s.

    deciding: answers that are to decide between K = 32 and K = 320: about 1,800 tokens each, for they are near.
    """

    texts: int
    positions: int
    prompts: int
    tokens: int
    deciding: int
    rates: tuple[float, ...] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


SIZES: Mapping[str, Size] = {
    "smoke": Size(2, 2, 2, 12, 2, (1, 30, 1000)),
    "small": Size(20, 8, 12, 32, 56),
    "full": Size(60, 16, 24, 96, 38),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A line of figures 5 and 6. kept: tokens of probs on the wire; 0 is all, None none. paper: whether the paper has it."""

    name: str
    method: str
    options: Options
    kept: int | None
    tree: bool
    paper: bool = True

    @property
    def full_name(self) -> str:
        """What tells it from all others."""
        return f"{'tree' if self.tree else 'chain'}, {self.name}"


def _paper_chain(kept: int) -> Kind:
    options: Options = (("draft_length", DRAFTS), ("draft_precision", 16), ("truncate", f"k={kept}"), ("wire", "plain"))
    return Kind(f"k = {kept:,}", "tslt", options, kept, False)


def _paper_tree(kept: int) -> Kind:
    cut: Options = (("truncate", f"k={kept}"), ("wire", "plain")) if kept else (("truncate", "off"), ("wire", "delta"))
    options: Options = (("draft_precision", 16), ("expansion", EXPANSION), ("replacement", True), *cut)
    return Kind(f"k = {kept:,}" if kept else "whole distributions", "tslt-tree", options, kept, True)


KINDS = (
    Kind("whole distributions", "dsd", (("draft_length", DRAFTS), ("draft_precision", 16)), 0, False),
    *(_paper_chain(kept) for kept in (3200, 320, 32)),
    Kind("k = 320, packed", "tslt", (("draft_length", DRAFTS), ("truncate", "k=320")), 320, False, paper=False),
    Kind("coupled, lockstep", "coupled", (("draft_length", DRAFTS), ("patience", "lockstep")), None, False, paper=False),
    Kind("coupled", "coupled", (), None, False, paper=False),
    *(_paper_tree(kept) for kept in (0, 3200, 320, 32)),
    Kind("k = 320, packed, without replacement", "tslt-tree", (("expansion", EXPANSION),), 320, True, paper=False),
    Kind("coupled, lockstep", "coupled-tree", (("expansion", EXPANSION), ("patience", "lockstep")), None, True, paper=False),
    Kind("coupled", "coupled-tree", (), None, True, paper=False),
)


Asked = Mapping[Kind, Sequence[Ask]]
"""The answers of each line, prompt by prompt."""


@dataclass(frozen=True, slots=True)
class Point:
    """A speed-up over the cloud alone on the same link. rate: of the uplink, in Mbit/s.

    form: the paper's closed form, by the acceptance along texts. own_form: by that of these answers and the bits of their
    distributions.
    """

    rate: float
    speed_up: Mean
    form: float | None
    own_form: float | None


@dataclass(frozen=True, slots=True)
class Speed:
    """A line. accepted: drafts that stood of those tested. distribution_bits: up, probs; without distributions a round."""

    kind: Kind
    accepted: Mean
    tokens_a_round: Mean
    distribution_bits: float
    points: tuple[Point, ...]

    def at(self, rate: float) -> Point:
        """The point nearest to a rate."""
        return min(self.points, key=lambda point: abs(point.rate - rate))


@dataclass(frozen=True, slots=True)
class Extreme:
    """K = 32 over K = 320, a chain each, at the fastest rate: speed, over so many answers of so many tokens in all."""

    answers: int
    tokens: tuple[int, int]
    rate: float
    speed: Mean


@dataclass(frozen=True, slots=True)
class Report(PaperReport):
    """What was found. alone: tokens/s of the cloud alone, streamed, on the fastest link. prompts, tokens: of each line."""

    paper = "TSLT, arXiv 2512.16273"
    prompts: int
    tokens: int
    truncation: Cuts
    speeds: tuple[Speed, ...]
    ratios: tuple[Ratio, ...]
    extreme: Extreme
    alone: float

    def speed(self, name: str, *, tree: bool) -> Speed:
        """The line of this name."""
        return next(speed for speed in self.speeds if speed.kind.name == name and speed.kind.tree == tree)

    def ratio(self, name: str, other: str, rate: float) -> Mean:
        """How many times as fast one line is as another."""
        return next(one.times for one in self.ratios if (one.name, one.other, one.x) == (name, other, rate))


def run(plan: Plan) -> Report:
    """Measure what is not kept yet. Raises one of `antiphon.errors`."""
    size, settings = SIZES[plan.scale], plan.settings("tslt")  # now, for the code may be another when all is done
    prompts = read_prompts(plan.data / TEXT, size.prompts)
    with working(plan) as lab:
        cuts = measure(lab, plan.data / TEXT, size.texts, size.positions)
        alone = [_ask(f"text {place}", prompt, "cloud", (), size) for place, prompt in enumerate(prompts)]
        asks = {kind: [_ask(one.question, one.prompt, kind.method, kind.options, size) for one in alone] for kind in KINDS}
        links = [f"tslt@{rate:g}" for rate in size.rates]
        timings = lab.timings([*alone, *(ask for some in asks.values() for ask in some)], links)
        speeds = tuple(_Line(lab, cuts, kind, some, alone, timings).speed(size.rates) for kind, some in asks.items())
        fastest = ratio([timings[ask, links[-1]].decoding for ask in alone]).mean
        ratios = tuple(_ratios(asks, timings, size.rates))
        extreme = _extreme(lab, read_prompts(plan.data / TEXT, size.deciding), size)
    return Report(settings, size.prompts, size.tokens, cuts, speeds, ratios, extreme, fastest)


def _ratios(asks: Asked, timings: Timed, rates: Sequence[float]) -> Iterator[Ratio]:
    """Truncated distributions over whole ones, and trees over chains of the same K, at every rate."""
    kinds = {kind.full_name: kind for kind in asks if kind.paper}
    pairs = [(f"{shape}, k = 320", f"{shape}, whole distributions") for shape in ("chain", "tree")]
    pairs += [(f"tree, {name}", f"chain, {name}") for name in ("whole distributions", "k = 3,200", "k = 320", "k = 32")]
    for rate in rates:
        for pair in pairs:
            ours, theirs = ([timings[ask, f"tslt@{rate:g}"] for ask in asks[kinds[name]]] for name in pair)
            yield Ratio("tokens/s", *pair, rate, faster(ours, theirs))


def _extreme(lab: Lab, prompts: Sequence[str], size: Size) -> Extreme:
    rate = size.rates[-1]
    kinds = [_paper_chain(kept) for kept in (32, 320)]
    asks = [
        [_ask(f"deciding {place}", prompt, kind.method, kind.options, size) for place, prompt in enumerate(prompts)]
        for kind in kinds
    ]
    timings = lab.timings([ask for some in asks for ask in some], [f"tslt@{rate:g}"])
    few, usual = ([timings[ask, f"tslt@{rate:g}"] for ask in some] for some in asks)
    tokens = sum(one.tokens for one in few), sum(one.tokens for one in usual)
    return Extreme(len(prompts), tokens, rate, faster(few, usual))


def _ask(question: str, prompt: str, method: str, options: Options, size: Size) -> Ask:
    return Ask(question, prompt, method, options, size.tokens)


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line is made from."""

    lab: Lab
    cuts: Cuts
    kind: Kind
    asks: Sequence[Ask]
    alone: Sequence[Ask]
    timings: Timed

    def speed(self, rates: Sequence[float]) -> Speed:
        first = [self.timings[ask, f"tslt@{rates[0]:g}"] for ask in self.asks]
        accepted = ratio([(timing.accepted, timing.tested) for timing in first])
        rounds = ratio([(timing.tokens, len(timing.moments)) for timing in first])
        distributions = LAWS if self.kind.tree else DRAFTS
        bits = sum(timing.up[0] for timing in first) / sum(len(timing.moments) for timing in first)
        distribution_bits = bits if self.kind.kept is None else bits / distributions
        own = SpeedUp(DRAFTS, *self._seconds(first), distribution_bits, distributions)
        points = tuple(self._point(rate, own, accepted.mean) for rate in rates)
        return Speed(self.kind, accepted, rounds, distribution_bits, points)

    def _point(self, rate: float, own: SpeedUp, accepted: float) -> Point:
        link = f"tslt@{rate:g}"
        ours = [self.timings[ask, link].decoding for ask in self.asks]
        speed_up = ratio_of_ratios(ours, [self.timings[ask, link].decoding for ask in self.alone])
        if self.kind.kept is None:
            return Point(rate, speed_up, None, None)
        form = own.with_bits(self._paper_bits()).at(self._along_texts(), 1e6 * rate) if self.kind.paper else None
        return Point(rate, speed_up, form, own.at(accepted, 1e6 * rate))

    def _paper_bits(self) -> float:
        """Of a distribution: a number and a probability for each token that is kept; of a whole one only probabilities."""
        kept, common = self.kind.kept, self.cuts.common
        number = max(1, (common - 1).bit_length())
        return 16.0 * common if not kept or kept >= common else kept * (16.0 + number)

    def _along_texts(self) -> float:
        cut = self.cuts.at(self.kind.kept or 0)
        accepted = self.cuts.full if cut is None else cut.accepted
        return (accepted.with_replacement if self.kind.tree else accepted.single).mean

    def _seconds(self, timings: Sequence[Timing]) -> tuple[float, float]:
        """Of one draft, and of one pass of the large model, in the middle of an answer."""
        middle = sum(timing.tokens for timing in timings) // (2 * len(timings)) + PROMPT_TOKENS
        hardware = self.lab.hardware
        return hardware.draft.seconds(1, middle), hardware.verify.seconds(1, middle)


PROMPT_TOKENS = 45
"""Of the beginning of a paragraph, about."""
