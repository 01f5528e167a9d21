"""The device's model at work: drafts over the common vocabulary, on a context that spells the committed bytes."""

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, Place, Role, Stream
from antiphon.core.distributions import Logits, Probs, process
from antiphon.core.draft_length import Known, entropy
from antiphon.core.rounding import Quantise
from antiphon.core.tree import ROOT, TokenTree
from antiphon.errors import CapacityError, UsageError
from antiphon.methods.cached_context import CachedContext
from antiphon.methods.effects import Now, Step
from antiphon.models.base import Context, Model, spell
from antiphon.vocabulary import CommonVocabulary

log = logging.getLogger(__name__)

CANNOT_SPELL = "the tokenizer of %s cannot spell the prompt, so this answer has no drafts: draft with another model"
NO_ROOM = "the device's context of %d tokens is full, so the rest of this answer has no drafts: give --context more"

FIRST_PORTION, PORTION_SECONDS, LONGER = 8, 0.05, 1.5
"""Tokens that are read at once before it is known how long they take; how long a portion may take then, or how many times as
long as the first: where a pass takes as long however wide it is, narrow ones would never end."""

Draw = Callable[[Stream, Probs, int], list[int]]
"""Draws so many children from a distribution."""


@dataclass(frozen=True)
class Drafted:
    """A drafted token: its wire number, the distribution over the common vocabulary that it was drawn from, and its logits."""

    number: int
    probs: Probs
    logits: Logits

    @property
    def prob(self) -> float:
        """The probability with which it was drawn."""
        return float(self.probs[self.number])

    @cached_property
    def entropy(self) -> float:
        """The entropy of its logits, in nats, whatever the sampling parameters."""
        return entropy(self.logits)


@dataclass(frozen=True, slots=True)
class Guess:
    """What is kept of a draft that waits for its verdict: its wire number, and the entropy of its logits in nats.

    Of a draft that was looked up (`methods.lookup`): how likely it stands.
    """

    number: int
    entropy: float | Known


class Drafter:
    """Drafts for one answer (METHODS 1: restricted to the common vocabulary, renormalised)."""

    def __init__(
        self, model: Model, context: Context, prompt: Sequence[int], common: CommonVocabulary, sampling: SamplingParams
    ) -> None:
        if common.device_ids is None:
            raise ValueError("a drafter needs the device's side of the common vocabulary")
        self._model, self._common = model, common
        self._reading = CachedContext(context)
        self._places: dict[int, int] = {}  # nodes of the last tree that were read: where they are in the context's tree
        self._device_ids = common.device_ids
        self._sampling = on_common(sampling, common)
        self._tokens = list(prompt)  # device ids: the prompt and the committed tokens
        self._prompt = list(prompt)
        self._history = self._numbers_of(prompt)  # wire numbers, for the penalties
        self.exhausted = self._unspelled = not self._tokens  # nothing to condition on
        self._told = False

    def warm(self, temperature: float) -> None:
        """Draft at this temperature at least; only for a method whose answer does not depend on the draft distributions."""
        self._sampling = replace(self._sampling, temperature=max(temperature, self._sampling.temperature))

    def draft(
        self, drafts: Sequence[Drafted | Guess], position: int, chance: Chance, quantise: Quantise
    ) -> Generator[Step, Logits, Drafted | None]:
        """Draw the token after the committed ones, `position` of them, and after `drafts`, from its own decoded distribution.

        A full context ends drafting for good instead of the answer: it costs acceptance only. Then the answer is None.
        """
        if (found := (yield from self.distribution([draft.number for draft in drafts]))) is None:
            return None
        logits, distribution = found
        probs = quantise(distribution)
        number = chance.at(Place(position, len(drafts)), Role.DRAFT).categorical(probs)
        return Drafted(number, probs, logits)

    def distribution(self, numbers: Sequence[int]) -> Generator[Step, Logits, tuple[Logits, Probs] | None]:
        """The logits and the probs after the committed tokens and `numbers`, over the common vocabulary; None as in `draft`."""
        if self.exhausted:
            return None
        try:
            logits = on_common_logits((yield from self._logits(numbers)), self._device_ids)
        except CapacityError:
            self.exhausted = True
            return None
        return logits, process(logits, self._sampling, [*self._history, *numbers])

    def catch_up(self, portion: int) -> Generator[Step, Logits, int]:
        """Where more than a portion is to be read before the next draft, read a portion of it; how many tokens that were."""
        held = self._reading.held(self._tokens[:-1])
        if self.exhausted or len(self._tokens) - 1 - held <= portion:
            return 0
        try:
            yield self._reading.extend(self._tokens[: held + portion], 0)
        except CapacityError:
            self.exhausted = True
            return 0
        return portion

    def prompt_numbers(self) -> list[int]:
        """The prompt by wire number, as the cloud is likely to spell it."""
        if self._common.is_identity:
            return list(self._prompt)
        return self._common.spell(self._model.vocabulary.join(self._prompt))

    def tell(self) -> None:
        """Say that the rest of the answer has no drafts, for want of room or of a prompt: once an answer."""
        if not self._told:
            sentence = CANNOT_SPELL % self._model.name if self._unspelled else NO_ROOM % self._model.context_length
            log.warning("antiphon: %s", sentence)
        self._told = True

    def restart(self, prompt: Sequence[int]) -> None:
        """Begin again behind another prompt (device ids)."""
        self._tokens = list(prompt)
        self._history = self._numbers_of(prompt)
        self._reading.altered(0)
        self.exhausted = self._unspelled = not self._tokens

    def draft_tree(
        self,
        widths: Sequence[int],
        position: int,
        chance: Chance,
        quantise: Quantise,
        is_end: Callable[[int], bool],
        draw: Draw,
    ) -> Generator[Step, Logits, TokenTree]:
        """Grow a tree layer by layer, one pass for each; `widths` are the children of a node by depth.

        A child that ends the answer has no children. A full context ends drafting for good, with the layers that are there.
        """
        tree, layer = TokenTree(), [ROOT]
        for depth, width in enumerate(widths):
            found = yield from self.distributions_after(tree, layer)
            stream, parents, layer = chance.at(Place(position, depth), Role.DRAFT), layer[: len(found)], []
            for node, probs in zip(parents, found, strict=True):
                tree.distributions[node] = quantise(probs)
                layer += tree.expand(node, draw(stream, tree.distributions[node], width))
            layer = [node for node in layer if not is_end(tree.numbers[node])]
            if not layer:
                break
        return tree

    def distributions_after(self, tree: TokenTree, nodes: Sequence[int]) -> Generator[Step, Logits, list[Probs]]:
        """The probs after nodes of a tree over the common vocabulary, by one pass; none if the context is full, then for good.

        ROOT comes first, by itself, and begins a new tree; then each node once, behind its parent.
        """
        rows = yield from self._layer(tree, nodes)
        return [self._probs_after(tree, node, logits) for node, logits in zip(nodes, rows, strict=False)]

    def holds(self, node: int) -> bool:
        """Whether this node of the tree that grows was read, and no token was committed since."""
        return node in self._places

    @property
    def temperature(self) -> float:
        """What it drafts at."""
        return self._sampling.temperature

    def keep(self, tree: TokenTree, node: int) -> None:
        """Of the tree that was drafted last the path to `node` was accepted: what was read of it stands."""
        if ROOT not in self._places:
            return
        # The last layer was drawn and never read: its nodes are in no context.
        while node not in self._places:
            node = tree.parents[node]
        path = self._device_ids[tree.path_numbers(node)].tolist()
        self._reading.keep([*self._tokens, *path], self._places[node])

    def commit(self, numbers: Sequence[int]) -> None:
        """Append committed tokens: common ones map one to one, others are spelled by the device's tokenizer."""
        self._reading.altered(len(self._tokens))
        self._places = {}
        for number in numbers:
            self._tokens += self._spelled(number)
        # A token outside C cannot be drafted, so no penalty can fall on it here; the cloud's own history has it.
        self._history += [number for number in numbers if number < self._common.size]

    def _logits(self, drafts: Sequence[int]) -> Generator[Step, Logits, Logits]:
        rows = yield self._reading.extend(self._tokens + self._device_ids[list(drafts)].tolist(), 1)
        logits: Logits = rows[0]
        return logits

    def _probs_after(self, tree: TokenTree, node: int, logits: Logits) -> Probs:
        history = [*self._history, *tree.path_numbers(node)]
        return process(on_common_logits(logits, self._device_ids), self._sampling, history)

    def _layer(self, tree: TokenTree, layer: Sequence[int]) -> Generator[Step, Logits, Sequence[Logits]]:
        """The logits after each node of a layer; none if the context is full."""
        if self.exhausted:
            return []
        try:
            if layer[0] == ROOT:
                rows_of_root = [(yield from self._logits([]))]
                self._places = {ROOT: ROOT}
                return rows_of_root
            tokens = self._device_ids[[tree.numbers[node] for node in layer]].tolist()
            # ROOT has a place among them, and the context counts nodes from 0.
            first = len(self._places) - 1
            places = self._places | {node: first + place for place, node in enumerate(layer)}
            rows: Logits = yield self._reading.grow(tokens, [places[tree.parents[node]] for node in layer])
        except CapacityError:
            self.exhausted = True
            return []
        self._places = places
        return list(rows)

    def _spelled(self, number: int) -> list[int]:
        if number < self._common.size:
            return [int(self._device_ids[number])]
        return spell(self._model, self._common.pieces[number])

    def _numbers_of(self, tokens: Sequence[int]) -> list[int]:
        if not self._sampling.has_penalties:
            return []
        numbers = {token: number for number, token in enumerate(self._device_ids.tolist())}
        return [numbers[token] for token in tokens if token in numbers]


class Portions:
    """Reads what a drafter lacks little by little, so that what comes meanwhile is shown between."""

    def __init__(self) -> None:
        self._tokens, self._longest = FIRST_PORTION, 0.0

    def read(self, drafter: Drafter) -> Generator[Any, Any, bool]:
        """Read one portion; False where the rest is read with the next draft."""
        started: float = yield Now()
        count = yield from drafter.catch_up(self._tokens)
        if count:
            seconds = (yield Now()) - started
            self._longest = self._longest or max(PORTION_SECONDS, LONGER * seconds)
            self._tokens = max(FIRST_PORTION, round(count * self._longest / seconds)) if seconds > 0 else 2 * count
        return count > 0


def on_common_logits(logits: Logits, ids: NDArray[np.integer[Any]]) -> Logits:
    """The logits of the common tokens, in their order.

    Where the model rules all of them out, and nothing else is wrong with it, they are all the same: any distribution will do to
    draft from, for it costs acceptance only.
    """
    common: Logits = logits[ids]
    if np.isneginf(common.max()) and np.isfinite(logits.max()):
        return np.zeros_like(common)
    return common


def on_common(sampling: SamplingParams, common: CommonVocabulary) -> SamplingParams:
    """The same parameters for a distribution over the common vocabulary: biases by wire number, those of other tokens dropped.

    Raises UsageError for a token that the cloud's model does not have.
    """
    if not all(0 <= token < common.target_size for token, _ in sampling.logit_bias):
        raise UsageError(f"a logit bias names a token that the cloud's model does not have: it has {common.target_size}")
    numbered = ((int(common.numbers[token]), bias) for token, bias in sampling.logit_bias)
    return replace(sampling, logit_bias=tuple((number, bias) for number, bias in numbered if number < common.size))
