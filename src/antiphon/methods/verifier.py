"""The cloud's model at work: one forward pass scores all drafts of a round."""

from collections.abc import Generator, Sequence

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits, Probs, process, total_variation
from antiphon.core.rounding import Quantise, exactly
from antiphon.methods.effects import Step
from antiphon.models.base import Context
from antiphon.vocabulary import CommonVocabulary


class Verifier:
    """The cloud's model: scores drafts after the committed tokens, one forward pass for all of them.

    A pass reads the committed tokens that the context does not hold yet, and the drafts. In a chain that is the last token and
    the drafts, so the width of a pass does not depend on the method.
    """

    def __init__(self, context: Context, prompt: Sequence[int], common: CommonVocabulary, sampling: SamplingParams) -> None:
        self._context, self._common, self._sampling = context, common, sampling
        self._tokens = list(prompt)  # cloud ids: the prompt and the committed tokens
        self._read: list[int] = []  # what the context holds
        self._same = 0  # how many leading tokens it is known to share with the committed ones
        self.rounding = 0.0
        """The largest total variation between a target law that was used and the model's own, unrounded."""

    def prefill(self) -> Step:
        """Read the prompt but for its last token."""
        self._read = self._tokens[:-1]
        return Step(self._context, 0, self._read, 0)

    def score(self, drafts: Sequence[int], quantise: Quantise) -> Generator[Step, Logits, "Targets"]:
        """The target laws after the committed tokens and after each draft (wire numbers)."""
        ids = self._common.cloud_ids[list(drafts)].tolist()
        keep, tokens = self._kept(), [*self._tokens, *ids]
        logits = yield Step(self._context, keep, tokens[keep:], len(ids) + 1)
        self._read = tokens
        return Targets(logits, tokens, self._common, self._sampling, self._noting(quantise))

    def _kept(self) -> int:
        """How many tokens of the context stand; the last committed one is always read again."""
        limit = min(len(self._read), len(self._tokens) - 1)
        while self._same < limit and self._read[self._same] == self._tokens[self._same]:
            self._same += 1
        return min(self._same, limit)

    def _noting(self, quantise: Quantise) -> Quantise:
        if quantise is exactly:
            return quantise

        def noting(probs: Probs) -> Probs:
            rounded = quantise(probs)
            self.rounding = max(self.rounding, total_variation(probs, rounded))
            return rounded

        return noting

    @property
    def length(self) -> int:
        """Tokens of the prompt and the committed ones."""
        return len(self._tokens)

    def take_back(self, count: int) -> list[int]:
        """Take back the last `count` tokens, as wire numbers; the next pass rewinds the context."""
        length = self.length - count
        taken: list[int] = self._common.numbers[self._tokens[length:]].tolist()
        del self._tokens[length:]
        self._same = min(self._same, length)
        return taken

    def commit(self, numbers: Sequence[int]) -> None:
        """Append committed tokens (wire numbers)."""
        self._tokens += self._common.cloud_ids[list(numbers)].tolist()


class Targets:
    """The target laws of one pass, each made when it is asked for: a rejection spares the work for the rest."""

    def __init__(
        self, logits: Logits, tokens: list[int], common: CommonVocabulary, sampling: SamplingParams, quantise: Quantise
    ) -> None:
        self.logits = logits
        self._tokens, self._common, self._sampling, self._quantise = tokens, common, sampling, quantise
        self._made: dict[int, Probs] = {}

    def probs(self, index: int) -> Probs:
        """The law after `index` drafts, in the order of wire numbers: float64, shape (cloud tokens,)."""
        if index not in self._made:
            history = self._tokens[: len(self._tokens) - len(self.logits) + 1 + index]
            probs = process(self.logits[index], self._sampling, history)
            self._made[index] = self._quantise(probs[self._common.cloud_ids])
        return self._made[index]
