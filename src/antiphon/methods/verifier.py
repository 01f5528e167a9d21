"""The cloud's model at work: one forward pass scores all drafts of a round."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import cached_property, partial

from antiphon.config import SamplingParams
from antiphon.core.chance import Race
from antiphon.core.distributions import Logits, Probs, process, total_variation
from antiphon.core.rounding import Quantise, exactly
from antiphon.core.tree import TokenTree
from antiphon.methods.cached_context import CachedContext
from antiphon.methods.effects import Step
from antiphon.models.base import Context
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Message

REPLAY_WIDTH = 7
"""Tokens of a pass that logits do not depend on (docs/benchmarks.md): at most so many are read as one by one."""


class Verifier:
    """The cloud's model: scores drafts after the committed tokens, one forward pass for all of them.

    A pass reads the committed tokens that the context does not hold yet, and the drafts. In a chain that is the last token and
    the drafts, so the width of a pass does not depend on the method.
    """

    def __init__(
        self,
        context: Context,
        prompt: Sequence[int],
        common: CommonVocabulary,
        sampling: SamplingParams,
        committed: Sequence[int] = (),
    ) -> None:
        self._reading, self._common, self._sampling = CachedContext(context), common, sampling
        self.prompt_tokens = len(prompt)
        self._tokens = [*prompt, *common.cloud_ids[list(committed)].tolist()]  # cloud ids: the prompt and the committed tokens
        self.rounding = 0.0
        """The largest total variation between a target distribution that was used and the model's own, unrounded."""

    def warm(self, temperature: float) -> None:
        """Score at this temperature at least."""
        self._sampling = replace(self._sampling, temperature=max(temperature, self._sampling.temperature))

    def prefill(self) -> Generator[Step, Logits, None]:
        """Read the prompt but for its last token; then, of an answer that goes on elsewhere, what was committed there.

        That is read as it was written, in narrow passes: so its logits are the same to the last bit.
        """
        # Not the last one: it is read with the first drafts, for the logits behind it.
        yield self._reading.prefill(self._tokens[: self.prompt_tokens - 1])
        for end in range(self.prompt_tokens - 1 + REPLAY_WIDTH, len(self._tokens) - 1 + REPLAY_WIDTH, REPLAY_WIDTH):
            yield self._reading.extend(self._tokens[: min(end, len(self._tokens) - 1)], 0)

    def read(self) -> Generator[Step, Logits, None]:
        """Read the committed tokens but the last in one pass, as a prompt is read."""
        yield self._reading.extend(self._tokens[:-1], 0)

    def score(self, drafts: Sequence[int], quantise: Quantise) -> Generator[Step, Logits, "Targets"]:
        """The target distributions after the committed tokens and after each draft (wire numbers)."""
        tokens = [*self._tokens, *self._common.cloud_ids[list(drafts)].tolist()]
        logits = yield self._reading.extend(tokens, len(drafts) + 1)
        return Targets(logits, tokens, self._common, self._sampling, self._noting(quantise))

    def score_next(self, gives_way: type[Message] | None) -> Generator[Step, Logits | None, "Targets | None"]:
        """The target probs after the committed tokens, unrounded; None if the pass was given up for a message of this kind."""
        tokens = list(self._tokens)
        logits = yield replace(self._reading.extend(tokens, 1), gives_way=gives_way)
        if logits is None:
            self._reading.given_up()
            return None
        return Targets(logits, tokens, self._common, self._sampling, exactly)

    def score_tree(self, tree: TokenTree, quantise: Quantise) -> Generator[Step, Logits, "TreeTargets"]:
        """The target distributions after the committed tokens and after each node of a tree."""
        nodes = self._common.cloud_ids[tree.numbers].tolist()
        logits = yield self._reading.tree(self._tokens, nodes, tree.parents)
        # In front of the tree the pass may have read committed tokens, which have rows too.
        rows = logits[len(logits) - len(nodes) - 1 :]
        return TreeTargets(rows, self._tokens, tree, self._common, self._sampling, self._noting(quantise))

    def keep(self, tree: TokenTree, node: int) -> None:
        """Of the tree that was scored last the path to `node` was accepted: what was read of it stands."""
        path = self._common.cloud_ids[tree.path_numbers(node)].tolist()
        self._reading.keep([*self._tokens, *path], node)

    def distribution_of(self, logits: Logits) -> Probs:
        """The probs after the committed tokens by these logits, float32, shape (tokens,); in the order of wire numbers."""
        return Targets(logits[None], self._tokens, self._common, self._sampling, exactly).probs(0)

    @property
    def tokens(self) -> list[int]:
        """The prompt and the committed tokens, as the model's ids."""
        return list(self._tokens)

    @property
    def context(self) -> Context:
        """What it reads in."""
        return self._reading.context

    def _noting(self, quantise: Quantise) -> Quantise:
        # To compare a distribution with itself takes as long as to make it.
        if quantise is exactly:
            return quantise

        def noting(probs: Probs) -> Probs:
            rounded = quantise(probs)
            self.rounding = max(self.rounding, total_variation(probs, rounded))
            return rounded

        return noting

    def take_back(self, count: int) -> list[int]:
        """Take back the last `count` tokens, as wire numbers; the next pass rewinds the context."""
        length = len(self._tokens) - count
        taken: list[int] = self._common.numbers[self._tokens[length:]].tolist()
        del self._tokens[length:]
        self._reading.altered(length)
        return taken

    def afresh(self, count: int) -> "Verifier":
        """Another one, which reads in the same context from its start on, and lacks the last `count` tokens of the prompt."""
        return Verifier(self.context, self._tokens[: self.prompt_tokens - count], self._common, self._sampling)

    def end_of_prompt(self, count: int) -> list[int]:
        """The last `count` tokens of the prompt, as wire numbers."""
        numbers: list[int] = self._common.numbers[self._tokens[self.prompt_tokens - count : self.prompt_tokens]].tolist()
        return numbers

    def commit(self, numbers: Sequence[int]) -> None:
        """Append committed tokens (wire numbers)."""
        self._reading.altered(len(self._tokens))
        self._tokens += self._common.cloud_ids[list(numbers)].tolist()


class Target:
    """The target distribution at one position, made when it is asked for.

    What a half asks of it is what its method needs of the cloud's engine (`Method.needs`): so it asks for no more than it uses.
    """

    def __init__(self, make: Callable[[], Probs]) -> None:
        self._make = make

    @cached_property
    def _all(self) -> Probs:
        return self._make()

    def winner(self, race: Race) -> int:
        """The token that wins this race (`Need.WINNERS`)."""
        return race.winner(self._all)

    def likeliest(self) -> int:
        """The likeliest token; of a tie the lowest number (`Need.WINNERS`)."""
        return int(self._all.argmax())

    def prob(self, number: int) -> float:
        """The probability of one token (`Need.CHOSEN_PROBS`)."""
        return float(self._all[number])

    @property
    def probs(self) -> Probs:
        """The whole of it, in the order of wire numbers: float64, shape (cloud tokens,) (`Need.DISTRIBUTIONS`)."""
        return self._all


class Targets:
    """The target distributions of one pass, each made when it is asked for: a rejection spares the work for the rest."""

    def __init__(
        self, logits: Logits, tokens: list[int], common: CommonVocabulary, sampling: SamplingParams, quantise: Quantise
    ) -> None:
        self._logits = logits
        self._tokens, self._common, self._sampling, self._quantise = tokens, common, sampling, quantise
        self._made: dict[int, Probs] = {}

    @property
    def logits(self) -> Logits:
        """What the pass answered: float32, shape (drafts + 1, cloud tokens), by the cloud's ids (`Need.DISTRIBUTIONS`)."""
        return self._logits

    def at(self, index: int) -> Target:
        """The target after `index` drafts."""
        return Target(partial(self.probs, index))

    def probs(self, index: int) -> Probs:
        """The distribution after `index` drafts, in the order of wire numbers: float64, shape (cloud tokens,)."""
        if index not in self._made:
            history = self._tokens[: len(self._tokens) - len(self._logits) + 1 + index]
            probs = process(self._logits[index], self._sampling, history)
            self._made[index] = self._quantise(self._common.numbered(probs))
        return self._made[index]


class TreeTargets:
    """The target distributions of a pass over a tree, by node, each made when it is asked for."""

    def __init__(
        self,
        logits: Logits,
        tokens: list[int],
        tree: TokenTree,
        common: CommonVocabulary,
        sampling: SamplingParams,
        quantise: Quantise,
    ) -> None:
        self._logits, self._tokens, self._tree = logits, tokens, tree
        self._common, self._sampling, self._quantise = common, sampling, quantise

    def at(self, node: int) -> Target:
        """The target after a node, or ROOT."""
        return Target(partial(self.probs, node))

    def probs(self, node: int) -> Probs:
        """The distribution after a node, or ROOT, in the order of wire numbers: float64, shape (cloud tokens,)."""
        path = self._common.cloud_ids[self._tree.path_numbers(node)].tolist()
        probs = process(self._logits[node + 1], self._sampling, [*self._tokens, *path])
        return self._quantise(self._common.numbered(probs))
