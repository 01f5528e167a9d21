"""What truncating and rounding draft probs does at one position: mass, acceptance, bytes (METHODS 2, TSLT; TSLT 3, 4.3, 5)."""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from antiphon.core.acceptance import acceptance_rate, residual
from antiphon.core.distributions import Probs, total_variation, truncated
from antiphon.core.tree import without
from antiphon.methods.speculative.tslt import SparseOptions, Sparsifier, Truncation, sparse_codec
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.packing import Writer
from antiphon.wire.sparse import SparseCodec

STEPS = 1000
"""Sums at most for one acceptance without replacement; it takes one for each way to draw all children but the last two."""
PLAIN_BITS = 16
"""Bits of a probability in the form `plain`, the paper's, whatever the others have."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The probability that a draft stands: one candidate (1 - TV), and one of several children.

    without_replacement: None where it would take too long (see `STEPS`).
    """

    single: float
    with_replacement: float
    without_replacement: float | None


@dataclass(frozen=True, slots=True)
class Packed:
    """A distribution on the wire, in a payload of its own."""

    form: str
    bits: int
    bytes: int
    entries: int


@dataclass(frozen=True, slots=True)
class Point:
    """What one truncation came to at one position.

    kept, mass: tokens that truncation left, and their probability before it, 1 - sigma. sent: those of them that rounding left
    above 0. excess: |acceptance - the full distribution's| beyond sigma + the rounding's total variation; never above 0 but for
    noise. second: of a second draft, where the first fell.
    """

    kept: int
    mass: float
    sent: int
    acceptance: Acceptance
    excess: float
    second: "Second"
    packed: tuple[Packed, ...]


@dataclass(frozen=True, slots=True)
class Second:
    """Of a second draft from the same probs, where the first fell: its acceptance, how far that moved and may move (TSLT 4.3).

    bound: (2 / Z + 1) sigma, with Z the mass of the residual, as theorem 2 has it for two; sigma with the rounding.
    """

    acceptance: float
    moved: float
    bound: float


@dataclass(frozen=True, slots=True)
class Position:
    """One position of one text: the acceptance of the full distribution, unrounded, and a point for each truncation."""

    full: Acceptance
    points: tuple[Point, ...]


class Meter:
    """Measures truncations, as `Truncation.parse` reads them, over a common vocabulary."""

    def __init__(self, common: CommonVocabulary, keep: tuple[str, ...], draft_precision: int, children: int) -> None:
        self._children = children
        self._cuts = [_Cut(common, text, draft_precision, children) for text in keep]

    def measure(self, target: Probs, distribution: Probs) -> Position:
        """Every truncation of `distribution`, shape (common tokens,), against `target`, shape (cloud tokens,)."""
        full = acceptance(target, distribution, self._children)
        return Position(full, tuple(cut.measure(target, distribution, full) for cut in self._cuts))


class _Cut:
    """One truncation, and the forms that its distributions are packed in."""

    def __init__(self, common: CommonVocabulary, text: str, draft_precision: int, children: int) -> None:
        self._keep, self._bits, self._children = Truncation.parse(text), draft_precision, children
        self._forms: list[tuple[str, int, SparseCodec]] = []
        for form, bits in wire_forms(draft_precision).items():
            self._forms.append((form, bits, sparse_codec(common, SparseOptions(bits, text, form))))
        widths = {draft_precision, PLAIN_BITS}
        self._sparsifiers = {bits: Sparsifier(SparseOptions(bits, text)) for bits in widths}

    def measure(self, target: Probs, distribution: Probs, full: Acceptance) -> Point:
        cut = truncated(distribution, self._keep.top_k, self._keep.top_p)
        kept = cut > 0
        mass = min(1.0, float(distribution[kept].sum()))
        distributions = {bits: sparsify(distribution) for bits, sparsify in self._sparsifiers.items()}
        sent = distributions[self._bits]
        found = acceptance(target, sent, self._children)
        excess = abs(found.single - full.single) - (1.0 - mass) - total_variation(cut, sent)
        second = _second(target, distribution, sent, 1.0 - mass + total_variation(cut, sent))
        packed = tuple(_packed(form, bits, codec, distributions[bits]) for form, bits, codec in self._forms)
        return Point(int(kept.sum()), mass, int(np.count_nonzero(sent)), found, excess, second, packed)


def wire_forms(draft_precision: int) -> dict[str, int]:
    """The forms that can be measured, and the bits of a probability in each; `tight` needs its library and at most 16 bits."""
    forms = {"delta": draft_precision, "tight": draft_precision, "plain": PLAIN_BITS}
    if draft_precision > 16 or find_spec("constriction") is None:
        del forms["tight"]
    return forms


def _packed(form: str, bits: int, codec: SparseCodec, distribution: Probs) -> Packed:
    writer = Writer()
    codec.write(writer, [distribution])
    return Packed(form, bits, len(writer.finish()), int(np.count_nonzero(distribution)))


def acceptance(target: Probs, distribution: Probs, children: int) -> Acceptance:
    """Closed forms for one draft from `distribution` and for `children` of them; `distribution` may be shorter than `target`.

    Where the distribution is 0 the target only counts as a whole: those tokens become one, which leaves nothing but the
    distribution's support.
    """
    support = np.flatnonzero(distribution)
    inside, drafts = target[support], np.append(distribution[support], 0.0)
    wanted = np.append(inside, max(0.0, 1.0 - float(inside.sum())))
    with_replacement = acceptance_rate(wanted, drafts, children, replacement=True)
    rate = without_replacement(wanted, drafts, children) if len(support) ** (children - 2) <= STEPS else None
    return Acceptance(1.0 - total_variation(wanted, drafts), with_replacement, rate)


def _second(target: Probs, full: Probs, sent: Probs, sigma: float) -> Second:
    """`full` is the distribution as it was, `sent` truncated and rounded."""
    before, mass = second_accepted(target, full)
    after, _ = second_accepted(target, sent)
    return Second(after, abs(after - before), (2.0 / mass + 1.0) * sigma if mass > 0 else 1.0)


def second_accepted(target: Probs, distribution: Probs) -> tuple[float, float]:
    """The acceptance of a second draft where the first fell, sum of min(distribution, residual); and the residual's mass.

    1 and 0 where a first draft never falls. `distribution` may be shorter than `target`.
    """
    common = np.maximum(target[: len(distribution)] - distribution, 0.0)
    mass = float(common.sum() + target[len(distribution) :].sum())
    return (float(np.minimum(distribution, common / mass).sum()), mass) if mass > 0 else (1.0, 0.0)


def without_replacement(target: Probs, distribution: Probs, count: int) -> float:
    """`acceptance_rate` without replacement, probs of one length; all first children at once where two are left to draw.

    So two children cost a sort instead of a sum over the tokens for each token, and more are for short distributions.
    """
    accepted = float(np.minimum(target, distribution).sum())
    rejected = np.flatnonzero((distribution > target) & (distribution < 1.0))
    if count == 1 or not len(rejected):
        return accepted
    rest, missed = residual(target, distribution), distribution[rejected] - target[rejected]
    if count == 2:
        return accepted + float(missed @ _second_accepted(rest, distribution, distribution[rejected]))
    for number, probability in zip(rejected.tolist(), missed.tolist(), strict=True):
        if (left := without(distribution, number)) is not None:
            accepted += probability * without_replacement(rest, left, count - 1)
    return accepted


def _second_accepted(rest: Probs, distribution: Probs, gone: Probs) -> Probs:
    """The acceptance of one draw from `distribution` without a rejected token of probability `gone`, for each of these.

    It is the sum of min(rest, distribution / (1 - gone)). `rest` is 0 at a rejected token, so that token adds nothing to either
    part.
    """
    ratios = np.divide(rest, distribution, out=np.full(len(distribution), np.inf), where=distribution > 0)
    order = np.argsort(ratios)
    below = np.concatenate([[0.0], np.cumsum(rest[order])])
    above = np.concatenate([np.cumsum(distribution[order[::-1]])[::-1], [0.0]])
    scale = 1.0 / (1.0 - gone)
    places = np.searchsorted(ratios[order], scale, side="right")
    accepted: Probs = np.minimum(1.0, below[places] + scale * above[places])
    return accepted
