"""Answers in virtual time: a method with its options, on a link and on hardware, with real or toy models."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from antiphon.config import Request, SamplingParams
from antiphon.device.answer import Result
from antiphon.methods import find
from antiphon.models.base import Model
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.virtual_time import run_virtual


def seed_of(name: str) -> int:
    """The seed of an answer, 64 bits: the same for the same name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried. options: by name; those that the method does not have are left out."""

    method: str
    link: Link
    compute: Compute
    sampling: SamplingParams = field(default_factory=SamplingParams)
    options: Mapping[str, object] = field(default_factory=dict)
    max_tokens: int = 64

    def request(self, prompt: str, seed: int) -> Request:
        """The answer to write."""
        options = find(self.method).options_from(self.options)
        return Request(prompt, self.method, options, self.sampling, self.max_tokens, seed=seed)


def attempt(
    trial: Trial,
    cloud_model: Model,
    device_model: Model,
    prompts: Sequence[str],
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[Result]:
    """One answer to each prompt, over one connection; the seed of an answer is `seed` plus its place. `progress` after each."""

    async def answers() -> list[Result]:
        results = []
        async with virtual_ends(cloud_model, device_model, trial.link, trial.compute) as (device, connection):
            for place, prompt in enumerate(prompts):
                results.append(await device.generate(trial.request(prompt, seed + place), connection))
                progress()
        return results

    return run_virtual(answers())
