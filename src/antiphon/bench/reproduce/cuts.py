"""What truncation does to draft laws, text by text, kept in a notebook (TSLT's figures 3 and 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from antiphon.bench.laws import Acceptance, Meter, Position
from antiphon.bench.reproduce.figures import ratio
from antiphon.bench.reproduce.lab import Lab
from antiphon.bench.texts import laws, read_prompts
from antiphon.bench.truncation import Mean

KEPT = (8, 32, 100, 320, 1000, 3200, 10_000)
"""Tokens that truncations keep; the paper's are 32, 320, 3,200 of 32,000."""
SHARES = (0.001, 0.01, 0.1)
"""The same shares of the vocabulary as the paper's."""
CHILDREN = 2
PRECISION = 16
"""Bits of a probability, as in the paper."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Mean acceptance of one draft, and of two drawn with and without replacement."""

    single: Mean
    with_replacement: Mean
    without_replacement: Mean


@dataclass(frozen=True, slots=True)
class Cut:
    """One truncation. share: of the common vocabulary. lost: the share of the full law's acceptance that is gone.

    excess: how far acceptance moved beyond the mass that was cut off and the rounding; never above 0 but for noise.
    """

    kept: int
    share: float
    mass: Mean
    accepted: Accepted
    lost: Mean
    excess: float


@dataclass(frozen=True, slots=True)
class Cuts:
    """All of them. common: tokens of the whole law. full: the whole law's acceptance."""

    common: int
    positions: int
    texts: int
    full: Accepted
    cuts: tuple[Cut, ...]

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
        key = f"laws at {positions} positions after {prompt}"
        if key not in lab.book:
            lab.book.keep(key, _measured(lab, prompt, positions, place))
        found.append(lab.book.get(key, _Text))
    common = found[0].common
    cuts = tuple(_cut(found, place, kept, common) for place, kept in enumerate(found[0].kept))
    full = _accepted([[position.full for position in one.positions] for one in found])
    return Cuts(common, sum(len(one.positions) for one in found), texts, full, cuts)


@dataclass(frozen=True, slots=True)
class _Text:
    common: int
    kept: tuple[int, ...]
    positions: tuple[Position, ...]


def _measured(lab: Lab, prompt: str, positions: int, seed: int) -> _Text:
    common = lab.pair.common
    wanted = {*KEPT, *(round(share * common.size) for share in SHARES)}
    kept = tuple(sorted(number for number in wanted if 1 < number < common.size))
    meter = Meter(common, tuple(f"k={number}" for number in kept), PRECISION, CHILDREN)
    found = tuple(meter.measure(target, law) for target, law in laws(lab.pair, prompt, positions, seed))
    return _Text(common.size, kept, found)


def _cut(texts: Sequence[_Text], place: int, kept: int, common: int) -> Cut:
    points = [[position.points[place] for position in one.positions] for one in texts]
    full = [sum(position.full.single for position in one.positions) for one in texts]
    gone = [all_ - sum(point.acceptance.single for point in text) for all_, text in zip(full, points, strict=True)]
    return Cut(
        kept,
        kept / common,
        _mean([[point.mass for point in text] for text in points]),
        _accepted([[point.acceptance for point in text] for text in points]),
        ratio(list(zip(gone, full, strict=True))),
        max(point.excess for text in points for point in text),
    )


def _accepted(found: Sequence[Sequence[Acceptance]]) -> Accepted:
    def mean(of: Callable[[Acceptance], float | None]) -> Mean:
        return _mean([[of(one) or 0.0 for one in text] for text in found])

    return Accepted(
        mean(lambda one: one.single), mean(lambda one: one.with_replacement), mean(lambda one: one.without_replacement)
    )


def _mean(texts: Sequence[Sequence[float]]) -> Mean:
    return ratio([(sum(text), len(text)) for text in texts])
