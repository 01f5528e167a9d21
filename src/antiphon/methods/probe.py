"""`probe`: not an answer but a look at the cloud's scores, for `--check` and `antiphon doctor`.

The cloud reads a continuation of the prompt twice, token by token and in passes of a given width, and tells what it saw:
how much of its probability lies on the common vocabulary, and what a different width does to its logits (FACTS: on some
models and settings logits depend on how a pass is batched, which is what a near tie turns on).
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from antiphon.config import NoOptions, SamplingParams
from antiphon.core.distributions import Logits, exactly, process
from antiphon.methods.base import CloudSide, DeviceSide, Method
from antiphon.methods.effects import Finish, Half, Receive, Send, expect
from antiphon.methods.verifier import Verifier
from antiphon.vocabulary import CommonVocabulary
from antiphon.wire.messages import Probe, Probed
from antiphon.wire.packing import Reader, Writer

_PLAIN = SamplingParams(temperature=1.0)


@dataclass(frozen=True, slots=True)
class Question:
    """What to look at: a continuation, two tokens that may follow it (wire numbers), and the width of the wide passes."""

    numbers: tuple[int, ...]
    candidates: tuple[int, int]
    width: int


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
        yield Send(Probe(self._question.width, len(self._question.numbers), writer.finish()))
        self.reply = expect((yield Receive()), Probed)
        return Finish.END


class ProbeCloud:
    """Answers one question."""

    def __init__(self, side: CloudSide, options: NoOptions) -> None:
        self._side = side

    def run(self) -> Half:
        """Score the continuation by both widths."""
        yield self._side.verifier.prefill()
        message = expect((yield Receive()), Probe)
        question = _question(message, self._side.common)
        narrow = yield from _scored(self._side.verifier, question.numbers, 1)
        wide = yield from _scored(self._side.verifier, question.numbers, question.width)
        yield Send(_reply(narrow, wide, question, self._side.common))
        return Finish.END


def _question(message: Probe, common: CommonVocabulary) -> Question:
    reader = Reader(message.payload)
    first, second, *numbers = (
        reader.number(common.target_bits, common.target_size, "a token") for _ in range(message.count + 2)
    )
    reader.finish()
    return Question(tuple(numbers), (first, second), message.width)


def _scored(verifier: Verifier, numbers: Sequence[int], width: int) -> Generator[Any, Any, Logits]:
    """The logits after the prompt and after each token, read in passes of at most `width`: (len(numbers) + 1, V)."""
    rows, done, start = [], 0, verifier.length
    while done <= len(numbers):
        drafts = numbers[done : done + width - 1]
        targets = yield from verifier.score(drafts, exactly)
        rows.append(targets.logits)
        done += len(drafts) + 1
        verifier.commit(numbers[done - len(drafts) - 1 : done])
    verifier.rewind(start)
    return np.concatenate(rows)


def _reply(narrow: Logits, wide: Logits, question: Question, common: CommonVocabulary) -> Probed:
    members = common.cloud_ids[: common.size]
    shares = tuple(float(process(row, _PLAIN)[members].sum()) for row in narrow)
    first, second = (int(common.cloud_ids[number]) for number in question.candidates)
    noise = float(np.abs(narrow - wide).max())
    return Probed(
        shares,
        (float(narrow[-1, first]), float(narrow[-1, second])),
        (float(wide[-1, first]), float(wide[-1, second])),
        noise,
    )


PROBE = Method("probe", "a look at the cloud's scores", False, ProbeDevice, ProbeCloud, drafts=False, options=NoOptions)
