"""What truncation does to draft distributions, text by text, kept in a store (TSLT's figures 3 and 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon_lab.experiments.truncated import Meter, Position
from antiphon_lab.experiments.truncation import Accepted, accepted_of
from antiphon_lab.papers.lab import Lab
from antiphon_lab.stats.intervals import Mean, mean_of, ratio
from antiphon_lab.workloads.texts import distributions, read_prompts

KEPT = (8, 32, 100, 320, 1000, 3200, 10_000)
"""Tokens that truncations keep; the paper's are 32, 320, 3,200 of 32,000."""
NUCLEI = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Masses of the smallest sets that nucleus truncations keep (TSLT 3.1, top-rho)."""
SHARES = (0.001, 0.01, 0.1)
"""The same shares of the vocabulary as the paper's."""
CHILDREN = 2
PRECISION = 16
"""Bits of a probability, as in the paper."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One truncation. name: as `Truncation.parse` reads it. kept: tokens, of a nucleus on average. share: of the common ones.

    lost: the share of the full distribution's acceptance that is gone. gained: of two drafts with replacement over one. excess:
    how far acceptance moved beyond the mass that was cut off and the rounding (theorem 1); never above 0 but for noise.
    second_moved, second_bound: how far the acceptance of a second draft moved, and how far it may; second_excess: the most that
    it moved beyond that (theorem 2).
    """

    name: str
    kept: float
    share: float
    mass: Mean
    accepted: Accepted
    lost: Mean
    gained: Mean
    excess: float
    second_moved: Mean
    second_bound: Mean
    second_excess: float


@dataclass(frozen=True, slots=True)
class Cuts:
    """All of them. common: tokens of the whole probs. full: the whole distribution's acceptance. nuclei: those by mass."""

    common: int
    positions: int
    texts: int
    full: Accepted
    cuts: tuple[Cut, ...]
    nuclei: tuple[Cut, ...]

    @property
    def all(self) -> tuple[Cut, ...]:
        """Both kinds."""
        return self.cuts + self.nuclei

    def at(self, kept: int) -> Cut | None:
        """The truncation that keeps so many tokens; None if the vocabulary has no more."""
        return next((cut for cut in self.cuts if cut.kept == kept), None)

    def share(self, share: float) -> Cut:
        """The one that keeps about this share."""
        return min(self.cuts, key=lambda cut: abs(cut.share - share))


def measure(lab: Lab, text: Path, texts: int, positions: int) -> Cuts:
    """Measure along `texts` beginnings of paragraphs in a text file, each followed for `positions` tokens of the target."""
    prompts, found = read_prompts(text, texts), []
    for place, prompt in enumerate(lab.progress.track(prompts, description="positions of texts")):
        key = f"distributions by both theorems at {positions} positions after {prompt}"
        if key not in lab.store:
            lab.store.keep(key, _measured(lab, prompt, positions, place))
        found.append(lab.store.get(key, _Text))
    common = found[0].common
    every = [_cut(found, place, name, common) for place, name in enumerate(found[0].names)]
    cuts, nuclei = (tuple(cut for cut in every if cut.name.startswith(kind)) for kind in ("k", "p"))
    full = accepted_of([[position.full for position in one.positions] for one in found])
    return Cuts(common, sum(len(one.positions) for one in found), texts, full, cuts, nuclei)


@dataclass(frozen=True, slots=True)
class _Text:
    common: int
    names: tuple[str, ...]
    positions: tuple[Position, ...]


def _measured(lab: Lab, prompt: str, positions: int, seed: int) -> _Text:
    common = lab.pair.common
    wanted = {*KEPT, *(round(share * common.size) for share in SHARES)}
    kept = sorted(number for number in wanted if 1 < number < common.size)
    names = (*(f"k={number}" for number in kept), *(f"p={mass:g}" for mass in NUCLEI))
    meter = Meter(common, names, PRECISION, CHILDREN)
    found = tuple(
        meter.measure(target, distribution) for target, distribution in distributions(lab.pair, prompt, positions, seed)
    )
    return _Text(common.size, names, found)


def _cut(texts: Sequence[_Text], place: int, name: str, common: int) -> Cut:
    points = [[position.points[place] for position in one.positions] for one in texts]
    full = [sum(position.full.single for position in one.positions) for one in texts]
    gone = [all_ - sum(point.acceptance.single for point in text) for all_, text in zip(full, points, strict=True)]
    one, two = ([sum(getattr(p.acceptance, of) for p in text) for text in points] for of in ("single", "with_replacement"))
    kept = mean_of([[point.kept for point in text] for text in points]).mean
    return Cut(
        name,
        kept,
        kept / common,
        mean_of([[point.mass for point in text] for text in points]),
        accepted_of([[point.acceptance for point in text] for text in points]),
        ratio(list(zip(gone, full, strict=True))),
        ratio(list(zip(two, one, strict=True))),
        max(point.excess for text in points for point in text),
        mean_of([[point.second.moved for point in text] for text in points]),
        mean_of([[min(1.0, point.second.bound) for point in text] for text in points]),
        max(point.second.moved - point.second.bound for text in points for point in text),
    )
