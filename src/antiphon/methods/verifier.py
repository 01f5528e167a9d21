"""The cloud's model at work: one forward pass scores all drafts of a round."""

from collections.abc import Generator, Sequence

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits, Probs, Quantise, process
from antiphon.methods.effects import Step
from antiphon.models.base import Context
from antiphon.vocabulary import CommonVocabulary


class Verifier:
    """The cloud's model: scores drafts after the committed tokens, one forward pass for all of them.

    The context always holds every committed token but the last, so a pass is that token and the drafts, and its width does
    not depend on the method.
    """

    def __init__(self, context: Context, prompt: Sequence[int], common: CommonVocabulary, sampling: SamplingParams) -> None:
        self._context, self._common, self._sampling = context, common, sampling
        self._tokens = list(prompt)  # cloud ids: the prompt and the committed tokens

    def prefill(self) -> Step:
        """Read the prompt but for its last token."""
        return Step(self._context, 0, self._tokens[:-1], 0)

    def score(self, drafts: Sequence[int], quantise: Quantise) -> Generator[Step, Logits, "Targets"]:
        """The target laws after the committed tokens and after each draft (wire numbers)."""
        ids = self._common.cloud_ids[list(drafts)].tolist()
        keep = len(self._tokens) - 1
        logits = yield Step(self._context, keep, [self._tokens[-1], *ids], len(ids) + 1)
        return Targets(logits, [*self._tokens, *ids], self._common, self._sampling, quantise)

    @property
    def length(self) -> int:
        """Tokens of the prompt and the committed ones."""
        return len(self._tokens)

    def take_back(self, count: int) -> list[int]:
        """Take back the last `count` tokens, as wire numbers; the next pass rewinds the context."""
        length = self.length - count
        taken: list[int] = self._common.numbers[self._tokens[length:]].tolist()
        del self._tokens[length:]
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
