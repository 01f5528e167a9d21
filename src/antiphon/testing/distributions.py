"""Toy models small enough to enumerate, and the exact joint distribution of what a method writes with them (METHODS 0)."""

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance
from antiphon.core.distributions import process
from antiphon.core.rounding import Quantise, exactly
from antiphon.errors import UsageError
from antiphon.methods.base import CloudHalf, CloudSide, DeviceSide, Method, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Emitted, Finish, Half, Send
from antiphon.methods.verifier import Verifier
from antiphon.models.toy import ToyModel
from antiphon.testing.enumeration import output_distribution
from antiphon.testing.lockstep import run_pair
from antiphon.vocabulary import CommonVocabulary, common_vocabulary
from antiphon.wire.messages import Message

Distribution = Mapping[tuple[int, ...], float]
"""The probability of each answer, by its tokens' wire numbers; they sum to 1."""

PROMPT = "ab"
"""What every answer goes on with."""

SHARED = (b"a", b"b", b"")
"""The tokens of both ends where they share a vocabulary; the empty one ends an answer."""
SMALL = (b"b", b"", b"a")
"""The tokens of a device whose cloud has `LARGE`, in another order and two more."""
LARGE = (b"ab", b"a", b"", b"c", b"b")


class Pair:
    """A drafting toy and a target toy, and everything that an answer needs.

    device, cloud: the tokens of each, the empty one for the end of an answer. seed: of the two models' tables; sharpness:
    scales their scores, so at 0.3 every token is likely, and at 4 hardly any but one.
    """

    def __init__(self, device: Sequence[bytes], cloud: Sequence[bytes], seed: int = 0, sharpness: float = 1.0) -> None:
        self.device = ToyModel(device, seed=seed + 1, sharpness=sharpness)
        self.cloud = ToyModel(cloud, seed=seed + 2, sharpness=sharpness)
        self.common: CommonVocabulary = common_vocabulary(self.device.vocabulary, self.cloud.vocabulary)

    def sides(self, tokens: int, sampling: SamplingParams, chance: Chance) -> tuple[DeviceSide, CloudSide]:
        """What the two halves work with, for an answer of at most so many tokens."""
        drafter = Drafter(self.device, self.device.open(), self.device.tokenize(PROMPT), self.common, sampling)
        device = DeviceSide(self.common, Transcript(self.common.ends, tokens), chance, drafter)
        return device, self.cloud_side(tokens, sampling, chance)

    def cloud_side(self, tokens: int, sampling: SamplingParams, chance: Chance, committed: Sequence[int] = ()) -> CloudSide:
        """Of an answer that goes on behind what is `committed`."""
        verifier = Verifier(self.cloud.open(), self.cloud.tokenize(PROMPT), self.common, sampling, committed)
        return CloudSide(self.common, Transcript(self.common.ends, tokens, committed), chance, verifier)


def written(
    pair: Pair, method: Method, options: object, sampling: SamplingParams, tokens: int, chance: Chance
) -> list[Emitted]:
    """The tokens that both halves commit in lockstep. Raises AssertionError if they hold different answers at the end."""
    device, cloud = pair.sides(tokens, sampling, chance)
    emitted = run_pair(method.device(device, options).run(), cloud_half(method)(cloud, options).run())
    numbers = [token.number for token in emitted]
    if not numbers == device.transcript.numbers == cloud.transcript.numbers:
        held = f"the device committed {device.transcript.numbers}, the cloud {cloud.transcript.numbers}"
        raise AssertionError(f"the two ends of {method.name} hold different answers: {held}, and {numbers} was shown")
    return emitted


def method_distribution(pair: Pair, method: Method, options: object, sampling: SamplingParams, tokens: int) -> Distribution:
    """The joint distribution of the first `tokens` tokens, summed over every branch of both halves' real code.

    Raises AssertionError if the two ends come to hold different answers.
    """
    return output_distribution(
        lambda chance: tuple(token.number for token in written(pair, method, options, sampling, tokens, chance))
    )


def cloud_half(method: Method) -> type[CloudHalf]:
    """The method's cloud half. Raises UsageError if it has none."""
    if method.cloud is None:
        raise UsageError(f"the method {method.name} has no cloud half, so there is no target to compare it with")
    return method.cloud


class CutError(Exception):
    """The link is lost. Halves see nothing of it: both are made anew."""


Breaks = Callable[[Message], bool]
"""Whether the link is lost with this message on it."""


def broken_distribution(
    pair: Pair, method: Method, options: object, sampling: SamplingParams, tokens: int, breaks: Callable[[], Breaks]
) -> Distribution:
    """As `method_distribution`, over links that break where `breaks`, made anew for each answer, says; it goes on."""

    def run(chance: Chance) -> tuple[int, ...]:
        device, cloud = pair.sides(tokens, sampling, chance)
        lost = breaks()
        while device.transcript.finish is None:
            halves = method.device(device, options).run(), cloud_half(method)(cloud, options).run()
            try:
                run_pair(*(breaking(half, lost) for half in halves))
            except CutError:
                cloud = pair.cloud_side(tokens, sampling, chance, device.transcript.numbers)
        return tuple(device.transcript.numbers)

    return output_distribution(run)


def breaking(half: Half, lost: Breaks) -> Generator[Any, Any, Finish]:
    """A half whose messages are lost, and the link with them, where `lost` says. Raises CutError."""
    try:
        effect = next(half)
        while True:
            if isinstance(effect, Send) and lost(effect.message):
                raise CutError
            answer = yield effect
            effect = half.send(answer)
    except StopIteration as stop:
        finish: Finish = stop.value
        return finish


def target_distribution(pair: Pair, sampling: SamplingParams, tokens: int, quantise: Quantise = exactly) -> Distribution:
    """The joint distribution of plain sampling from the target, by the definition of METHODS 0.

    quantise: how the target is rounded where a method's wire rounds it, for that is what the method promises then.
    """
    distribution: defaultdict[tuple[int, ...], float] = defaultdict(float)
    prompt = pair.cloud.tokenize(PROMPT)

    def extend(numbers: tuple[int, ...], probability: float) -> None:
        if len(numbers) == tokens or (numbers and numbers[-1] in pair.common.ends):
            distribution[numbers] += probability
            return
        history = [*prompt, *pair.common.cloud_ids[list(numbers)].tolist()]
        probs = quantise(process(pair.cloud.logits(history), sampling, history)[pair.common.cloud_ids])
        for number in np.flatnonzero(probs).tolist():
            extend((*numbers, number), probability * float(probs[number]))

    extend((), 1.0)
    return dict(distribution)


def distance(first: Distribution, second: Distribution) -> float:
    """The largest difference of a probability."""
    return max(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in first.keys() | second.keys())


def variation(first: Distribution, second: Distribution) -> float:
    """The total variation between two distributions."""
    return sum(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in first.keys() | second.keys()) / 2
