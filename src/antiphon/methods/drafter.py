"""The device's model at work: drafts over the common vocabulary, on a context that spells the committed bytes."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, Role
from antiphon.core.distributions import Logits, Probs, process
from antiphon.core.rounding import Quantise
from antiphon.errors import CapacityError, UsageError
from antiphon.methods.effects import Step
from antiphon.models.base import Context, Model, spell
from antiphon.vocabulary import CommonVocabulary


@dataclass(frozen=True, slots=True)
class Drafted:
    """A drafted token: its wire number, the law over the common vocabulary that it was drawn from, and its logits."""

    number: int
    probs: Probs
    logits: Logits

    @property
    def prob(self) -> float:
        """The probability with which it was drawn."""
        return float(self.probs[self.number])


class Drafter:
    """Drafts for one answer (METHODS 1: restricted to the common vocabulary, renormalised)."""

    def __init__(
        self, model: Model, context: Context, prompt: Sequence[int], common: CommonVocabulary, sampling: SamplingParams
    ) -> None:
        if common.device_ids is None:
            raise ValueError("a drafter needs the device's side of the common vocabulary")
        self._model, self._context, self._common = model, context, common
        self._device_ids = common.device_ids
        self._sampling = on_common(sampling, common)
        self._tokens = list(prompt)  # device ids: the prompt and the committed tokens
        self._history = self._numbers_of(prompt)  # wire numbers, for the penalties
        self._read: Sequence[int] = ()  # what the context holds
        self._same = 0  # how many leading tokens _read and the next pass are known to share
        self.exhausted = not self._tokens  # nothing to condition on: a prompt that this tokenizer cannot spell

    def draft(
        self, count: int, position: int, chance: Chance, quantise: Quantise, is_end: Callable[[int], bool]
    ) -> Generator[Step, Logits, list[Drafted]]:
        """Draw up to `count` tokens, each from its own decoded law; fewer after an end of sequence.

        A full context ends drafting for good instead of the answer: it costs acceptance only.
        """
        drafts: list[Drafted] = []
        while len(drafts) < count and not self.exhausted:
            numbers = [draft.number for draft in drafts]
            try:
                logits = (yield from self._logits(numbers))[self._device_ids]
            except CapacityError:
                self.exhausted = True
                break
            probs = quantise(process(logits, self._sampling, [*self._history, *numbers]))
            number = chance.at(position + len(drafts), Role.DRAFT).categorical(probs)
            drafts.append(Drafted(number, probs, logits))
            if is_end(number):
                break
        return drafts

    def commit(self, numbers: Sequence[int]) -> None:
        """Append committed tokens: common ones map one to one, others are spelled by the device's tokenizer."""
        self._same = min(self._same, len(self._tokens))
        for number in numbers:
            self._tokens += self._spelled(number)
        self._history += [number for number in numbers if number < self._common.size]

    def _logits(self, drafts: Sequence[int]) -> Generator[Step, Logits, Logits]:
        tokens = self._tokens + self._device_ids[list(drafts)].tolist()
        limit = min(len(self._read), len(tokens) - 1)
        while self._same < limit and self._read[self._same] == tokens[self._same]:
            self._same += 1
        keep = min(self._same, limit)
        rows: Logits = yield Step(self._context, keep, tokens[keep:], 1)
        self._read = tokens
        logits: Logits = rows[0]
        return logits

    def _spelled(self, number: int) -> list[int]:
        if number < self._common.size:
            return [int(self._device_ids[number])]
        return spell(self._model, self._common.pieces[number])

    def _numbers_of(self, tokens: Sequence[int]) -> list[int]:
        if not self._sampling.has_penalties:
            return []
        numbers = {token: number for number, token in enumerate(self._device_ids.tolist())}
        return [numbers[token] for token in tokens if token in numbers]


def on_common(sampling: SamplingParams, common: CommonVocabulary) -> SamplingParams:
    """The same parameters for a law over the common vocabulary: biases by wire number, those of other tokens dropped.

    Raises UsageError for a token that the cloud's model does not have.
    """
    if not all(0 <= token < common.target_size for token, _ in sampling.logit_bias):
        raise UsageError(f"a logit bias names a token that the cloud's model does not have: it has {common.target_size}")
    numbered = ((int(common.numbers[token]), bias) for token, bias in sampling.logit_bias)
    return replace(sampling, logit_bias=tuple((number, bias) for number, bias in numbered if number < common.size))
