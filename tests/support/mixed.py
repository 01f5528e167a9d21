"""Two toys with the weights of documents, both halves of a mixing method over them, and the distribution of the mixture."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance
from antiphon.core.distributions import Probs, process, truncated
from antiphon.core.mixture.scores import SCORES
from antiphon.methods import WITH_DOCUMENTS
from antiphon.methods.base import CloudMixing, DeviceMixing
from antiphon.methods.effects import Emitted
from antiphon.testing.distributions import Distribution, Pair
from antiphon.testing.lockstep import run_pair

Masses = tuple[float, float]


def emitted(
    name: str,
    pair: Pair,
    options: object,
    sampling: SamplingParams,
    masses: Masses,
    tokens: int,
    chance: Chance,
    other: Chance | None = None,
) -> list[Emitted]:
    """The tokens that both halves write; `other` is the cloud's chance where it has one of its own."""
    method, sampled = WITH_DOCUMENTS[name], sampling.temperature > 0
    device, cloud = pair.sides(tokens, sampling, chance)
    cloud.chance = other or chance
    device.mixing = DeviceMixing(masses[0], sampled, lambda passages: None)
    cloud.mixing = CloudMixing(masses[1], sampled, ())
    return run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())


def mixture(pair: Pair, sampling: SamplingParams, masses: Masses, tokens: int = 2, top_p: float = 1.0) -> Distribution:
    """By the definition: token after token from pi_L p_L + pi_R p_R, p_R as it crosses; greedy its arg-max."""
    distribution: defaultdict[tuple[int, ...], float] = defaultdict(float)
    own, other = weights(masses)

    def extend(numbers: tuple[int, ...], probability: float) -> None:
        if len(numbers) == tokens or (numbers and numbers[-1] in pair.common.ends):
            distribution[numbers] += probability
            return
        mixed = own * scored(pair.device, numbers) + other * crossed(scored(pair.cloud, numbers))
        if not sampling.temperature:
            mixed = np.eye(len(mixed))[mixed.argmax()]
        for number in np.flatnonzero(mixed).tolist():
            extend((*numbers, number), probability * float(mixed[number]))

    def scored(model: object, numbers: Sequence[int]) -> Probs:
        history = [*model.tokenize("ab"), *numbers]  # of equal vocabularies ids are wire numbers
        warm = sampling if sampling.temperature else replace(sampling, temperature=1.0)
        return process(model.logits(history), warm, history)

    def crossed(probs: Probs) -> Probs:
        left = SCORES.values(SCORES.codes(truncated(probs, top_p=top_p) if top_p < 1 else probs))
        return left / left.sum() if sampling.temperature else left

    extend((), 1.0)
    return dict(distribution)


def weights(masses: Masses) -> tuple[float, float]:
    most = max(masses)
    own, other = (math.exp(mass - most) for mass in masses)
    return own / (own + other), other / (own + other)
