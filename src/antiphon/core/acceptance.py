"""Accept or resample, one draft or siblings (METHODS 0, 2).

Accept a draft iff u < target / draft with u uniform in [0, 1), strictly less, so that a token of target probability 0 is
never accepted. After a rejection the token comes from the residual. Draft probabilities are over the common vocabulary,
the first numbers of the wire order; beyond it a draft has probability 0.
"""

from collections.abc import Sequence

import numpy as np

from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs
from antiphon.core.tree import without


def accepts(stream: Stream, target_prob: float, draft_prob: float) -> bool:
    """Test one draft that had `draft_prob` > 0 when it was drawn."""
    # u is below 1 always and below 0 never: a ratio of 1 always stands, a token of target probability 0 never does (METHODS 0,
    # accept or resample).
    return stream.bernoulli(min(1.0, target_prob / draft_prob))


def accept_child(
    stream: Stream, target_probs: Probs, distribution: Probs, drawn: Sequence[int], *, replacement: bool
) -> tuple[int | None, Probs]:
    """Test siblings in the order in which they were drawn from `distribution`: the place of the first that stands, or None.

    With it the distribution of the token if none stands: the residual after all of them (METHODS 2, token tree).
    """
    rest, left = target_probs, distribution
    for place, number in enumerate(drawn):
        if accepts(stream, float(rest[number]), float(left[number])):
            return place, rest
        rest = residual(rest, left)
        # After the last child nobody draws from what is left, and there may be nothing left to normalise.
        if not replacement and place + 1 < len(drawn):
            left = _without(left, number)
    return None, rest


def _without(distribution: Probs, number: int) -> Probs:
    rest = without(distribution, number)
    if rest is None:
        raise ValueError("a sibling was drawn from a distribution that has no more tokens")
    return rest


def residual(target_probs: Probs, draft_probs: Probs) -> Probs:
    """The distribution of the token after a rejection: max(target - draft, 0), normalised; shape of `target_probs`.

    `draft_probs` may be shorter (the common vocabulary comes first). If rounding leaves nothing, the target itself.
    """
    rest = target_probs.copy()
    rest[: len(draft_probs)] -= draft_probs
    rest.clip(min=0.0, out=rest)
    # Nothing is left only by rounding: a draft falls with the probability sum max(p - q, 0), which is the mass of this
    # residual.
    mass = rest.sum()
    return rest / mass if mass > 0 else target_probs


def acceptance_rate(target: Probs, distribution: Probs, count: int, *, replacement: bool) -> float:
    """The probability that one of `count` children is accepted, in closed form.

    Both distributions may have different lengths; the shorter one counts as 0 beyond its end. With replacement it takes `count`
    steps (TSLT 4.3); without, a sum over the children that can be drawn first, so it is for small counts.
    """
    size = max(len(target), len(distribution))
    padded = np.pad(target, (0, size - len(target))), np.pad(distribution, (0, size - len(distribution)))
    return _rate_with(*padded, count) if replacement else _rate_without(*padded, count)


def _rate_with(target: Probs, distribution: Probs, count: int) -> float:
    missed, rest = 1.0, target
    for _ in range(count):
        missed *= 1.0 - float(np.minimum(rest, distribution).sum())
        rest = residual(rest, distribution)
    return 1.0 - missed


def _rate_without(target: Probs, distribution: Probs, count: int) -> float:
    accepted = float(np.minimum(target, distribution).sum())
    if count == 1:
        return accepted
    rest = residual(target, distribution)
    # Only a token that the drafter likes better can fall; the residual behind it is the same whichever it was.
    for number in np.flatnonzero(distribution > target).tolist():
        if (left := without(distribution, number)) is not None:
            accepted += float(distribution[number] - target[number]) * _rate_without(rest, left, count - 1)
    return accepted
