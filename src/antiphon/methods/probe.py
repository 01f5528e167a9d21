"""`probe`: not an answer but a look at the cloud's scores, for `--check` and `antiphon doctor`.

The cloud reads a continuation of the prompt twice, token by token and in passes of a given width, and tells what it saw:
how much of its probability lies on the common vocabulary, and what another way of reading does to its logits (on some models
and settings they depend on how a pass is batched, which is what a near tie turns on). The wide reading can begin some tokens
before the prompt's end, so that it differs even where the continuation is short.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from antiphon.config import NoOptions, SamplingParams
from antiphon.core.distributions import Logits, process
from antiphon.core.rounding import exactly
from antiphon.errors import ProtocolError
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send, expect
from antiphon.methods.verifier import Verifier
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Probe, Probed
from antiphon.wire.packing import Reader, Writer

_PLAIN = SamplingParams(temperature=1.0)

KEPT = 64
"""Positions whose logits are compared: the last ones, where a difference would show."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look at: a continuation, and two tokens that may follow it (wire numbers).

    width: of the wide passes. reread: how many of the prompt's last tokens they read again.
    """

    numbers: tuple[int, ...]
    candidates: tuple[int, int]
    width: int
    reread: int = 0


class ProbeDevice:
    """Asks one question; the reply is kept as `reply`."""

    reply: Probed

    def __init__(self, side: DeviceSide, question: Question) -> None:
        self._common, self._question = side.common, question

    def run(self) -> Half:
        """Ask and keep the reply."""
        writer, bits = Writer(), self._common.target_bits
        for number in (*self._question.candidates, *self._question.numbers):
            writer.number(number, bits)
        yield Send(Probe(self._question.width, self._question.reread, len(self._question.numbers), writer.finish()))
        self.reply = expect((yield Receive()), Probed)
        return Finish.END


class ProbeCloud:
    """Answers one question."""

    def __init__(self, side: CloudSide, options: NoOptions) -> None:
        self._side = side

    def run(self) -> Half:
        """Score the continuation by both readings."""
        verifier = self._side.verifier
        yield from verifier.prefill()
        message = expect((yield Receive()), Probe)
        room = self._side.transcript.remaining - 1
        if message.count > room:
            raise ProtocolError(f"a continuation of {message.count} tokens came where at most {room} fit", "out-of-range")
        question = _question(message, self._side.common)
        shares: list[float] = []
        narrow = yield from _scored(verifier, question.numbers, 1, lambda row: shares.append(_share(row, self._side.common)))
        again = verifier.take_back(min(question.reread, verifier.length - 1))
        wide = yield from _scored(verifier, [*again, *question.numbers], question.width, lambda row: None)
        yield Send(_reply(shares, narrow, wide[-len(narrow) :], question, self._side.common))
        return Finish.END


def _question(message: Probe, common: CommonVocabulary) -> Question:
    reader = Reader(message.payload)
    first, second, *numbers = (
        reader.number(common.target_bits, common.target_size, "a token") for _ in range(message.count + 2)
    )
    reader.finish()
    return Question(tuple(numbers), (first, second), message.width, message.reread)


def _scored(
    verifier: Verifier, numbers: Sequence[int], width: int, look: Callable[[Logits], None]
) -> Generator[Any, Any, Logits]:
    """Look at the logits after the prompt and after each token, read in passes of `width`; the first may be less wide.

    So the last positions, where a difference would show, come from a pass of full width. Returns the logits of the last KEPT
    positions: (at most KEPT, V), for a row of a large vocabulary is a megabyte.
    """
    kept: deque[Logits] = deque(maxlen=KEPT)
    done, start = 0, verifier.length
    while done <= len(numbers):
        left = len(numbers) + 1 - done
        drafts = numbers[done : done + (left % width or width) - 1]
        targets = yield from verifier.score(drafts, exactly)
        for row in targets.logits:
            look(row)
            kept.append(row)
        done += len(drafts) + 1
        verifier.commit(numbers[done - len(drafts) - 1 : done])
    verifier.take_back(verifier.length - start)
    return np.stack(kept)


def _share(row: Logits, common: CommonVocabulary) -> float:
    return float(process(row, _PLAIN)[common.cloud_ids[: common.size]].sum())


def _reply(shares: list[float], narrow: Logits, wide: Logits, question: Question, common: CommonVocabulary) -> Probed:
    first, second = (int(common.cloud_ids[number]) for number in question.candidates)
    noise = float(np.abs(narrow - wide).max())
    candidates = [(float(rows[-1, first]), float(rows[-1, second])) for rows in (narrow, wide)]
    return Probed(tuple(shares), candidates[0], candidates[1], noise)


PROBE = Method("probe", "a look at the cloud's scores", False, ProbeDevice, ProbeCloud, drafts=False, options=NoOptions)
