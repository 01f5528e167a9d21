"""`probe`: not an answer but a look at the cloud's scores, for `--check` and `antiphon doctor`.

The cloud reads a continuation of the prompt token by token, as `cloud` does, and tells how much of its probability lies on the
common vocabulary, and which token wins behind the continuation. It reads it again by other ways, for on some models and
settings logits depend on how a pass is batched: in passes of a given width, which shows how far that moves them; and, where a
session of the same connection wrote an answer that begins so, in the very passes of that answer, which tells what wins there.
"""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.config import SamplingParams
from antiphon.core.distributions import Logits, process
from antiphon.core.near_tie import farthest, least_shift
from antiphon.core.rounding import exactly
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Finish, LinkHalf, Now, Receive, Send, ServingHalf, Step, expect
from antiphon.methods.replay import deciding, replayed
from antiphon.methods.verifier import Verifier
from antiphon.models.needs import Need
from antiphon.options import NoOptions
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Probe, Probed
from antiphon.wire.packing import Reader, Writer

_PLAIN = SamplingParams(temperature=1.0)

KEPT = 64
"""Positions whose logits are compared: the last ones, where a difference would show."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look at: a continuation, and two different tokens that may follow it (wire numbers), or one twice.

    width: of the wide passes. reread: how many of the prompt's last tokens they read again. silent: how many tokens are read
    before each of them as a prompt is. session: the one whose passes are made again, 0 for none.
    """

    numbers: tuple[int, ...]
    candidates: tuple[int, int]
    width: int
    reread: int = 0
    silent: int = 0
    session: int = 0


class ProbeDevice:
    """Asks one question; the reply is kept as `reply`."""

    reply: Probed

    def __init__(self, side: DeviceSide, question: Question) -> None:
        self._common, self._question = side.common, question

    def run(self) -> LinkHalf:
        """Ask and keep the reply."""
        question, writer, bits = self._question, Writer(), self._common.target_bits
        for number in (*question.candidates, *question.numbers):
            writer.number(number, bits)
        widths = question.width, question.reread, question.silent
        yield Send(Probe(*widths, question.session, len(question.numbers), writer.finish()))
        self.reply = expect((yield Receive()), Probed)
        if len(self.reply.shares) != len(question.numbers) + 1:
            asked, told = len(question.numbers) + 1, len(self.reply.shares)
            raise ProtocolError(f"the cloud was asked about {asked} positions and told of {told}", "out-of-range")
        return Finish.END


class ProbeCloud:
    """Answers one question."""

    def __init__(self, side: CloudSide, options: NoOptions) -> None:
        self._side = side

    def run(self) -> ServingHalf:
        """Score the continuation by all readings."""
        side, verifier = self._side, self._side.verifier
        yield from verifier.prefill()
        message = expect((yield Receive()), Probe)
        room = side.transcript.remaining - 1
        if message.count > room:
            raise ProtocolError(f"a continuation of {message.count} tokens came where at most {room} fit", "out-of-range")
        question = _question(message, side.common)
        shares: list[float] = []
        rows: deque[Logits] = deque(maxlen=KEPT)

        def look(row: Logits) -> None:
            shares.append(_share(row, side.common))
            rows.append(row)

        yield from _scored(verifier, question.numbers, 1, look)
        noise = yield from _noise(verifier, question, rows)
        passes = side.recorded.get(question.session)
        again = None if passes is None else (yield from _again(verifier, passes))
        yield Send(self._reply(question, shares, rows[-1], again, passes is not None, noise))
        return Finish.END

    def _reply(
        self, question: Question, shares: list[float], plain: Logits, again: Logits | None, recorded: bool, noise: float
    ) -> Probed:
        seen = [self._seen(row, question) for row in (plain, plain if again is None else again)]
        winners, distributions = (seen[0][0], seen[1][0]), (seen[0][1], seen[1][1])
        moved = 0.0 if again is None else farthest(again, plain)
        made, shift = again is not None, self._shift(question, plain)
        return Probed(tuple(shares), winners, *distributions, recorded, made, shift, moved, noise)

    def _seen(self, row: Logits, question: Question) -> tuple[int, tuple[float, float]]:
        """Who wins by these logits, and the probabilities of the candidates."""
        distribution, (first, second) = self._side.verifier.distribution_of(row), question.candidates
        return self._winner(row, len(question.numbers)), (float(distribution[first]), float(distribution[second]))

    def _winner(self, row: Logits, position: int) -> int:
        """The token of the race that `cloud` runs; at temperature 0 the only one that is left."""
        side = self._side
        return side.chance.race(position, side.common.cloud_ids).winner(side.verifier.distribution_of(row))

    def _shift(self, question: Question, plain: Logits) -> float:
        """By how much logits must move for the first candidate to win."""
        wanted, other = question.candidates
        if wanted == other:
            return math.inf
        ids = self._side.common.cloud_ids

        def wins(row: Logits) -> bool:
            return self._winner(row, len(question.numbers)) == wanted

        return least_shift(plain, int(ids[wanted]), int(ids[other]), wins)


def _question(message: Probe, common: CommonVocabulary) -> Question:
    reader = Reader(message.payload)
    first, second, *numbers = (
        reader.number(common.target_bits, common.target_size, "a token") for _ in range(message.count + 2)
    )
    reader.finish()
    return Question(tuple(numbers), (first, second), message.width, message.reread, message.silent, message.session)


def _again(verifier: Verifier, passes: Sequence[Step]) -> Generator[Any, Any, Logits | None]:
    """The logits after the committed tokens, by the passes of an answer; None if none of them read these tokens."""
    found = deciding(passes, verifier.tokens)
    return None if found is None else (yield from replayed(passes, found, verifier.context))


def _noise(verifier: Verifier, question: Question, rows: Sequence[Logits]) -> Generator[Any, Any, float]:
    """The largest difference of a logit between `rows`, the last ones, and those of a wide reading from the start on."""
    reread = min(question.reread, verifier.prompt_tokens - 1)
    numbers = [*verifier.end_of_prompt(reread), *question.numbers]
    skipped = len(numbers) + 1 - len(rows)
    found = [0.0]

    def compare(row: Logits, position: int) -> None:
        if position >= skipped:
            found.append(farthest(row, rows[position - skipped]))

    other = verifier.afresh(reread)
    yield from other.prefill()
    yield from _scored_wide(other, numbers, question.width, question.silent, compare)
    return max(found)


def _scored(
    verifier: Verifier, numbers: Sequence[int], width: int, look: Callable[[Logits], None]
) -> Generator[Any, Any, None]:
    """Look at the logits after the prompt and after each token, read in passes of `width`."""
    yield from _scored_wide(verifier, numbers, width, 0, lambda row, position: look(row))


def _scored_wide(
    verifier: Verifier, numbers: Sequence[int], width: int, silent: int, look: Callable[[Logits, int], None]
) -> Generator[Any, Any, None]:
    """Commit `numbers`, and look at the logits after the prompt's end and each of them, with how many stand before.

    Passes have `width` tokens. The first may be less wide, so the last positions, where a difference would show, come from one
    of full width; if there is but one, what it lacks is read behind it. Before each pass `silent` tokens are read at once, and
    their logits are not looked at.
    """
    for begin, scored, end in _turns(len(numbers) + 1, width, silent):
        if scored > begin:
            verifier.commit(numbers[begin:scored])
            yield from verifier.read()
        lacking = scored + width - end if end > len(numbers) else 0
        targets = yield from verifier.score([*numbers[scored : end - 1], *[0] * lacking], exactly)
        for position, row in enumerate(targets.logits[: end - scored], scored):
            look(row, position)
        verifier.commit(numbers[scored:end])
        yield Now()  # let others have the model in between


def _turns(positions: int, width: int, silent: int) -> Iterator[tuple[int, int, int]]:
    """From which position on a turn reads, from which it looks, and its end; the first turn may be short."""
    begin = 0
    while begin < positions:
        end = begin + ((positions - begin) % (silent + width) or silent + width)
        yield begin, max(begin, end - width), end
        begin = end


def _share(row: Logits, common: CommonVocabulary) -> float:
    # A sum of floats may lie a last digit above what it can be.
    return min(1.0, float(process(row, _PLAIN)[common.cloud_ids[: common.size]].sum()))


PROBE = Method(
    "probe",
    "a look at the cloud's scores",
    False,
    ProbeDevice,
    ProbeCloud,
    drafts=False,
    options=NoOptions,
    needs=frozenset({Need.DISTRIBUTIONS}),
)
