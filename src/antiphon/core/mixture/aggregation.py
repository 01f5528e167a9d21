"""Speculative aggregation: two ends draft ahead, and a draft becomes the token where it can (METHODS 4, DRAGON's rule)."""

from antiphon.core.acceptance import residual
from antiphon.core.chance import Stream
from antiphon.core.distributions import Probs, truncated
from antiphon.core.rounding import Quantise, Ratios, quantise_ratios


def steered(stream: Stream, draft: int, own: Probs, other: Probs, share: float) -> int:
    """Turn a draft from `own` into a token of (1 - share) own + share other: keep it, or draw what `other` has more of.

    Of a draft x that `own` likes better, the part share * (1 - other / own) is given away. Given away in all is share times the
    total variation of the two distributions, and what `other` has more of receives it: own + share (other - own), token by
    token.
    """
    surplus = 1.0 - float(other[draft]) / float(own[draft])
    if surplus > 0 and stream.bernoulli(share * surplus):
        return stream.categorical(residual(other, own))
    return draft


def aggregated(
    stream: Stream, drafts: tuple[int, int], distributions: tuple[Probs, Probs], weights: tuple[float, float]
) -> int:
    """The token of a step, of weights[0] distributions[0] + weights[1] distributions[1], from one draft of each.

    Each draft could be steered to the mixture; one of the two is, by the toss of a coin. An end whose draft is not the token
    rolls back; the other's drafts beyond this step stay good, for nothing that decided here depended on them.
    """
    end = 1 if stream.bernoulli(0.5) else 0
    return steered(stream, drafts[end], distributions[end], distributions[1 - end], weights[1 - end])


def packed(top_p: float, ratios: Ratios) -> Quantise:
    """The quantiser of scores that cross truncated (`packing=topp`).

    It keeps the fewest tokens with a mass of at least `top_p`, renormalises and rounds. The end draws its drafts from what this
    leaves, so the answer has the distribution of a mixture with that: within (1 - top_p) times this end's weight of the real
    mixture in total variation, besides the rounding.
    """
    rounded = quantise_ratios(ratios)
    return lambda probs: rounded(truncated(probs, top_p=top_p))
