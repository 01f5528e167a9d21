"""The dense mixture behind one question, from both ends' probs: what methods that send less are held against (METHODS 4)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.core.distributions import Probs, process
from antiphon.core.mixture.scores import SCORES, Values
from antiphon.core.mixture.weights import dense_token, mixed, weights_of
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.models.chat import prompt_ids
from antiphon.retrieval.context import Looked, context, look
from antiphon.retrieval.index import Index
from antiphon_lab.ends.remembering_model import RememberingModel


class Reference:
    """Both ends' distributions behind a prompt and the passages that each found. The ends: the device, then the cloud."""

    def __init__(
        self,
        models: tuple[RememberingModel, RememberingModel],
        libraries: tuple[Index, Index],
        prompt: str,
        options: MixtureOptions,
        sampling: SamplingParams,
    ) -> None:
        self._prompt, (device, cloud) = prompt, models
        own, other = (look(library, prompt, options.passages) for library in libraries)
        both = Looked((*other.passages, *own.passages), 0.0)
        self.weights = weights_of([own.log_mass, other.log_mass])
        """The device's and the cloud's share of the mixture."""
        self._readings = [
            (model, tuple(prompt_ids(model, context(looked.passages, prompt, options.prompt_format), chat=False)))
            for model, looked in ((device, own), (cloud, other), (device, both))
        ]
        self._sampled = sampling.temperature > 0
        self._sampling = sampling if self._sampled else replace(sampling, temperature=1.0)
        self._tokens: dict[tuple[tuple[int, ...], int | None], int] = {}

    def token(self, numbers: Sequence[int], seed: int) -> int:
        """The dense token after these of the answer, sampled with the noise of `seed` if it is."""
        key = tuple(numbers), seed if self._sampled else None
        if key not in self._tokens:
            distribution, decoded = self.device_distribution(numbers), self.decoded(numbers)
            noise = self._noise(seed, len(numbers), len(distribution)) if self._sampled else None
            self._tokens[key] = dense_token(self.weights, [distribution, decoded], noise)
        return self._tokens[key]

    def _noise(self, seed: int, position: int, size: int) -> Values:
        chance = PhiloxChance(answer_key(seed, self._prompt, chat=False))
        return chance.race(position, np.arange(size, dtype=np.int32)).times()

    def device_distribution(self, numbers: Sequence[int]) -> Probs:
        """The device's own distribution."""
        return self._distribution(0, numbers)

    def joined_distribution(self, numbers: Sequence[int]) -> Probs:
        """The distribution behind all passages in one context, as `drcg` reads them."""
        return self._distribution(2, numbers)

    def decoded(self, numbers: Sequence[int]) -> Probs:
        """The cloud's scores as they come out of the wire."""
        return SCORES.values(SCORES.codes(self._distribution(1, numbers)))

    def mixture(self, numbers: Sequence[int]) -> Probs:
        """The distribution of the mixture."""
        return mixed(self.weights, [self.device_distribution(numbers), self.decoded(numbers)])

    def _distribution(self, reading: int, numbers: Sequence[int]) -> Probs:
        model, prompt = self._readings[reading]
        path = (*prompt, *numbers)
        return process(model.row(path), self._sampling, path)
