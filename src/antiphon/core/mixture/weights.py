"""The mixture of document-conditioned models, and what one end can know of it alone (METHODS 4).

The dense token is the arg-max of l_T(v) = LSE over the ends of log pi + l(v), plus g(v) = -log E(v) when the answer is
sampled, with the E of `antiphon.core.noise` that every end knows. Here the same is computed without logarithms: a token's
*strength* at one end is pi p(v) / E(v) (E is 1 under greedy decoding), and the dense token has the largest sum of strengths,
lowest id on a tie. Products, quotients and sums of floating-point numbers are monotone, which rounded logarithms need not be: a
bound on one term bounds the sum as it will be computed, to the last bit, so certified tokens are right among near ties too.

p of a remote end is the decoded score (`antiphon.core.mixture.scores`), not renormalised; the device's own p is not rounded.
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from antiphon.core.distributions import Probs
from antiphon.core.mixture.scores import Values


def weights_of(log_masses: Sequence[float]) -> list[float]:
    """The weights pi of the ends from log h, the logarithm of what their documents weigh together; sum 1.

    Give the ends that are there: without one, the rest share its weight. -inf is an end without documents; if none has any, all
    weigh the same. Weights below e^-230 count as 0, so that products stay normal numbers. Raises ValueError for NaN or +inf.
    """
    logs = np.asarray(log_masses, dtype=np.float64)
    if not (logs < np.inf).all():
        raise ValueError("the logarithm of what an end's documents weigh must be a number or -inf")
    if np.isneginf(logs).all():
        return [1.0 / len(logs)] * len(logs)
    # As differences: with a small tau log h may be beyond what exp takes.
    logs = logs - logs.max()
    masses = np.where(logs < -230, 0.0, np.exp(logs))
    weights: list[float] = (masses / masses.sum()).tolist()
    return weights


def strengths_of(weight: float, probs: Probs, noise: Values | None = None) -> Values:
    """Weight * p / E for each token, shape (tokens,)."""
    strengths: Values = weight * probs
    if noise is not None:
        strengths /= noise
    return strengths


def dense_token(weights: Sequence[float], distributions: Sequence[Probs], noise: Values | None = None) -> int:
    """The token of the mixture with all evidence at hand: the device's probs first, then the decoded ones of others."""
    return strongest(
        strengths_of(weight, distribution, noise) for weight, distribution in zip(weights, distributions, strict=True)
    )


def strongest(parts: Iterable[Values]) -> int:
    """The token with the largest sum over the ends, summed in their order; lowest id on a tie."""
    return int(np.argmax(reduce(np.add, parts)))


def mixed(weights: Sequence[float], distributions: Sequence[Probs]) -> Probs:
    """The mixture's probs, normalised: what a perplexity is computed with, and the distribution of a sampled answer."""
    distribution: Probs = reduce(
        np.add, [weight * distribution for weight, distribution in zip(weights, distributions, strict=True)]
    )
    distribution /= distribution.sum()
    return distribution


def certain_alone(
    local: Values, remote_weights: Sequence[float], kappa: float = 1.0, noise: Values | None = None
) -> int | None:
    """The dense token if no remote distribution at all could change it, else None (METHODS 4, zero-message certificate).

    local: strengths of the device's own distribution. A remote end gives token v from 0 to pi_R / E(v). So if y has
    local(y) > local(v) + pi_R / E(v) for all other v, y wins whatever the remote distribution is; and if not, it does not win
    where that distribution is v alone: at kappa = 1 the test is sound, and no sound test passes more often. Greedy, it is
    pi_L (p1 - p2) > kappa pi_R. Below 1, kappa makes it a guess.

    Sampled, y has to win a race of rates pi_L p(y) for itself and pi_L p(v) + pi_R for all others. Over the noise, some token
    does with probability pi_L / (pi_L + (tokens - 1) pi_R): next to never with a real vocabulary.
    """
    if math.isinf(kappa):
        return None  # off; and infinity times a weight of 0 is no number
    token = int(np.argmax(local))
    most = local
    for weight in remote_weights:
        most = most + (kappa * weight if noise is None else kappa * weight / noise)
    # The token itself is left out: what it gains from a remote end can only help it.
    others = max(most[:token].max(initial=-np.inf), most[token + 1 :].max(initial=-np.inf))
    return token if local[token] > others else None
