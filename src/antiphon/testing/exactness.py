"""That a method is exact, proved on toy models: the probabilities of every branch of both halves' real code, added up.

Three things are compared with plain sampling from the target (METHODS 0): the joint distribution of an answer's first tokens,
under several samplings, with one vocabulary and with two; the same over links that break where they can do most harm; and, for
a method that promises it, the very tokens of `cloud` with the same seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from zlib import crc32

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance
from antiphon.core.rounding import Quantise, exactly
from antiphon.errors import AntiphonError, UsageError
from antiphon.methods.base import Method
from antiphon.methods.speculative.cloud_only import CLOUD
from antiphon.testing.distributions import (
    LARGE,
    SHARED,
    SMALL,
    Breaks,
    Distribution,
    Pair,
    broken_distribution,
    distance,
    method_distribution,
    target_distribution,
    variation,
    written,
)
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Envelope, Message, encode

SAMPLINGS: Mapping[str, SamplingParams] = MappingProxyType(
    {
        "plain": SamplingParams(temperature=1.0),
        "greedy": SamplingParams(temperature=0.0),
        "top-k": SamplingParams(temperature=1.3, top_k=2),
        "top-p": SamplingParams(temperature=0.8, top_p=0.7),
        "penalties": SamplingParams(temperature=1.0, repetition_penalty=1.5, presence_penalty=0.4, frequency_penalty=0.3),
    }
)
"""What a target is made with: each changes it at another place."""

Vocabularies = tuple[Sequence[bytes], Sequence[bytes]]
"""The tokens of the device and of the cloud, as `Pair` takes them."""

VOCABULARIES: Mapping[str, Vocabularies] = MappingProxyType({"shared": (SHARED, SHARED), "different": (SMALL, LARGE)})
"""Two ends with the same tokens, and two whose cloud has tokens that the device lacks."""

FEW_BRANCHES: Mapping[str, object] = MappingProxyType(
    {"draft_length": 2, "candidates": 1, "iterations": 2, "draws": 3, "truncate": "k=2", "expansion": "2", "nodes": 2}
)
"""Values of options, as far as a method has them, with which all branches can be followed in seconds."""

NARROW = SamplingParams(temperature=1.0, top_k=2)
SEEDS = 20
LONG = 12
"""Seeds, and tokens of an answer, that are compared with those of `cloud`."""


def assert_exact(
    method: Method,
    options: object = None,
    *,
    tokens: int = 2,
    samplings: Mapping[str, SamplingParams] = SAMPLINGS,
    vocabularies: Mapping[str, Vocabularies] = VOCABULARIES,
    seed: int = 5,
    rounded: Callable[[CommonVocabulary], Quantise] = lambda common: exactly,
    cuts: int = 2,
    tolerance: float = 1e-12,
) -> None:
    """Prove that a method writes answers of the target's distribution. Raises AssertionError: what differs, and by how much.

    options: of the method's own dataclass; unless given its defaults, with few branches. tokens: of an answer; the branches
    grow fast with them. samplings, vocabularies: by the name that a failure gives. seed: of the toy models; with this one a
    round that is divided anew after a loss shows. rounded: how the target crosses the link, for a method that sends it: what
    is promised is about that one. cuts: links that break in an answer at most, 0 for none. tolerance: of one probability.
    Raises UsageError for a method of which there is nothing to prove.
    """
    if method.cloud is None or method.mixes:
        raise UsageError(f"the method {method.name} does not write the text of a cloud's model: there is nothing to prove")
    options = method.options_from(FEW_BRANCHES) if options is None else options
    for name, pieces in vocabularies.items():
        proof = _Proof(method, options, Pair(*pieces, seed=seed), rounded, tolerance, f"with {name} vocabularies")
        for kind, sampling in samplings.items():
            proof.of_sampling(kind, sampling, tokens)
        for kind, lost in LOSSES.items() if cuts else ():
            proof.of_losses(kind, at_most(cuts, lost), tokens + 1)


@dataclass(frozen=True, slots=True)
class _Proof:
    """What is shown of one method over one pair of models."""

    method: Method
    options: object
    pair: Pair
    rounded: Callable[[CommonVocabulary], Quantise]
    tolerance: float
    where: str

    def of_sampling(self, name: str, sampling: SamplingParams, tokens: int) -> None:
        """That answers are the target's, made so."""
        where = f"{self.where} and {name} sampling"
        found = self._found(lambda: method_distribution(self.pair, self.method, self.options, sampling, tokens), where)
        self._require_equal(found, sampling, tokens, where)
        if self.method.coupled:
            self._require_same_tokens(sampling, where)

    def of_losses(self, name: str, breaks: Callable[[], Breaks], tokens: int) -> None:
        """That they are over links that break."""
        where = f"{self.where} over links that lose {name} messages"
        found = self._found(lambda: broken_distribution(self.pair, self.method, self.options, NARROW, tokens, breaks), where)
        self._require_equal(found, NARROW, tokens, where)

    def _found(self, add_up: Callable[[], Distribution], where: str) -> Distribution:
        """The distribution, if its branches can be followed at all."""
        try:
            return add_up()
        except (RuntimeError, AntiphonError) as error:
            raise AssertionError(f"{self.method.name} cannot be followed: {where} {error}") from error

    def _require_equal(self, found: Distribution, sampling: SamplingParams, tokens: int, where: str) -> None:
        target = target_distribution(self.pair, sampling, tokens, self.rounded(self.pair.common))
        if distance(found, target) <= self.tolerance:
            return
        worst = max(found.keys() | target.keys(), key=lambda key: abs(found.get(key, 0.0) - target.get(key, 0.0)))
        differs = f"has probability {found.get(worst, 0.0):.9g} and not the target's {target.get(worst, 0.0):.9g}"
        apart = f"in all they are {variation(found, target):.2g} apart in total variation"
        raise AssertionError(f"{self.method.name} is not exact: {where} the answer {self._spelt(worst)} {differs}; {apart}")

    def _require_same_tokens(self, sampling: SamplingParams, where: str) -> None:
        """What it is to be coupled: with the same seed the tokens are those of `cloud`."""
        for seed in range(SEEDS):
            own = self._with_seed(self.method, self.options, sampling, seed)
            alone = self._with_seed(CLOUD, CLOUD.options(), sampling, seed)
            if own != alone:
                texts = f"it writes {self._spelt(own)}, and cloud {self._spelt(alone)}"
                raise AssertionError(f"{self.method.name} is not coupled: {where} and the seed {seed} {texts}")

    def _with_seed(self, method: Method, options: object, sampling: SamplingParams, seed: int) -> tuple[int, ...]:
        emitted = written(self.pair, method, options, sampling, LONG, PhiloxChance(seed))
        return tuple(token.number for token in emitted)

    def _spelt(self, numbers: Sequence[int]) -> str:
        """An answer for a person: its tokens quoted, its end by name."""
        common = self.pair.common
        return " ".join("END" if number in common.ends else repr(common.pieces[number].decode()) for number in numbers)


def at_most(cuts: int, lost: Breaks) -> Callable[[], Breaks]:
    """Links that break under at most so many messages of an answer; for `broken_distribution`."""

    def breaks() -> Breaks:
        left = [cuts]

        def now_lost(message: Message) -> bool:
            broken = left[0] > 0 and lost(message)
            left[0] -= broken
            return broken

        return now_lost

    return breaks


def odd(message: Message) -> bool:
    """Half of all messages, by their very bits: whether a link breaks hangs on what crosses it."""
    return crc32(encode(Envelope(1, message))) % 2 == 1


LOSSES: Mapping[str, Breaks] = MappingProxyType({"odd": odd, "even": lambda message: not odd(message)})
"""Which messages are lost, by the name that a failure gives."""
