"""`--check`: is an answer the very one that the cloud's model alone writes? And if not, is it a near tie or a fault?

At temperature 0 every exact method must print the text of `cloud`, and coupled drafting with the same seed at any temperature
(METHODS 3). But the logits of one model can depend on how a pass is batched, and two tokens that are close then change places.
So at the first difference the cloud makes the very passes of the answer again (`methods.replay`), on another context, beside a
reading token by token, and draws the token by the logits of both. What it draws holds all that decides: penalties, biases,
temperature, noise, and who is kept by top-k, top-p and min-p. If the passes alone give the method's token, the difference is
numeric: a near tie. If they do not, or if they move logits by more than twice what reading so wide does to a context that was
never rolled back, it is a fault.

Passes beside those of others cannot be made again, for their cells lay between ours, nor can those of a link that was lost.
Then the shift of logits that decides between the two tokens is compared with what other ways of reading move: a larger one is
a fault, and of a smaller one nothing is said but that it is undecided below that.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from antiphon.config import Request
from antiphon.core.chance import PhiloxChance
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.methods.base import DeviceSide, Transcript
from antiphon.methods.drive import exchange
from antiphon.methods.probe import ProbeDevice, Question
from antiphon.options import NoOptions
from antiphon.wire.messages import Closed, Open, Probed

REREAD = 64
"""Tokens of the prompt's end that are read again, so that the passes of another reading are wide from the first token on."""
SILENT = 16
"""Where others were served, tokens that are read as a prompt is between two passes: that moves logits about as far."""
_ABOVE = 2.0
"""How often the noise of another reading a replay may move logits by. Both are maxima over all tokens, of other roundings."""


class Finding(StrEnum):
    """What `--check` finds."""

    EQUAL = "equal"
    NEAR_TIE = "near tie"
    FAULT = "fault"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Check:
    """What `--check` found; all but the finding is of the first difference, and None where there is none.

    gap: the least shift of all logits that gives the method's token where the model is read token by token, None if none of up
    to 8 does. moved: by how much
    the passes of the answer moved a logit there; None if they could not be made again. noise: by how much a wide reading did.
    plain, again: the probabilities of (the method's token, cloud's token) token by token and in the answer's passes. shared:
    whether the cloud served others meanwhile.
    """

    finding: Finding
    first_difference: int | None = None
    why: str = "the same tokens as `cloud`"
    gap: float | None = None
    moved: float | None = None
    noise: float | None = None
    plain: tuple[float, float] | None = None
    again: tuple[float, float] | None = None
    shared: bool = False

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return self.finding is Finding.EQUAL

    def sentence(self) -> str:
        """The finding for a person."""
        if self.equal:
            return f"check: {self.why}"
        return f"check: first difference at token {self.first_difference}: {self._kind()}: {self.why}{self._numbers()}"

    def _kind(self) -> str:
        match self.finding:
            case Finding.NEAR_TIE:
                return "a near tie"
            case Finding.FAULT:
                return "NOT a near tie: a fault"
            case _:
                return f"undecided below {self.noise:.3g} logits"

    def _numbers(self) -> str:
        if self.plain is None:
            return ""
        distributions = f"probabilities {_pair(self.plain)} token by token"
        distributions += f", {_pair(self.again)} in the answer's passes" if self.again else ""
        moved = f", those passes moved logits by up to {self.moved:.3g}" if self.moved is not None else ""
        shift = "no shift decides" if self.gap is None else f"a shift of {self.gap:.3g} logits decides"
        return f"; {distributions}; {shift}{moved}, a wide reading by {self.noise:.3g}"


def require_checkable(request: Request) -> None:
    """Raise UsageError unless `request` must give the same tokens as `cloud`."""
    method = find(request.method)
    if not method.exact:
        raise UsageError(f"--check compares with `cloud`, which {request.method} does not promise to equal: use an exact one")
    if request.on_return == "keep":
        raise UsageError(
            "--check compares with `cloud`, which an answer that keeps what the device wrote is not: leave keep out"
        )
    if request.sampling.temperature != 0 and not method.coupled:
        raise UsageError(f"--check compares tokens, which only --temperature 0 makes equal for {method.name}: or use coupled")


async def check(device: Device, request: Request, result: Result, connection: Connection) -> Check:
    """Run `cloud` beside a finished answer and compare, token for token, those of a stop string included."""
    # With the seed that the answer had, which may have been drawn for it.
    alone = replace(request, method="cloud", options=NoOptions(), seed=result.seed)
    reference = await device.generate(alone, connection)
    index = first_difference(result.answer.written, reference.answer.written)
    if index is None:
        return Check(Finding.EQUAL)
    ours, theirs = (answer.written[index : index + 1] for answer in (result.answer, reference.answer))
    if not ours or not theirs:
        return Check(Finding.FAULT, index, "one answer ends where the other goes on")
    shared = result.shared or reference.shared
    options = find(request.method).options() if request.options is None else request.options
    prefix, width = tuple(reference.answer.written[:index]), options.max_drafts + 1
    question = Question(prefix, (ours[0], theirs[0]), width, REREAD, SILENT if shared else 0, result.session)
    seen, closed = await _asked(connection, alone, question)
    return judged(question, seen, index, shared=shared or closed.shared, resumed=result.answer.resumed > 0)


async def probe(connection: Connection, request: Request, question: Question) -> Probed:
    """What the cloud sees after the prompt of `request` and the tokens of `question`."""
    return (await _asked(connection, request, question))[0]


async def _asked(connection: Connection, request: Request, question: Question) -> tuple[Probed, Closed]:
    common, seed = connection.common, request.seed or 0
    half = ProbeDevice(DeviceSide(common, Transcript(common.ends, 1), PhiloxChance(0)), question)
    room = max(request.max_tokens, len(question.numbers) + 1)
    opening = Open("probe", {}, request.sampling, request.prompt, request.chat, room, seed, ())
    session = await connection.open(opening)
    await exchange(half.run(), session)
    closed = await session.closed()
    session.traffic()
    return half.reply, closed


def judged(question: Question, seen: Probed, index: int, *, shared: bool, resumed: bool) -> Check:
    """What the readings say of a difference."""
    finding, why = _verdict(question.candidates, seen, shared=shared, resumed=resumed)
    again, moved = (seen.again, seen.moved) if seen.made else (None, None)
    gap = seen.shift if math.isfinite(seen.shift) else None
    return Check(finding, index, why, gap, moved, seen.noise, seen.plain, again, shared)


def _verdict(candidates: tuple[int, int], seen: Probed, *, shared: bool, resumed: bool) -> tuple[Finding, str]:
    plain, again = seen.winners
    # The answer's own passes give its token, token by token that of `cloud`: the way of batching is the whole difference.
    if seen.made and (again, plain) == candidates:
        return _explained(seen)
    if shared:
        return _by_noise(seen, "others were served meanwhile, and their passes cannot be made again")
    if plain != candidates[1]:
        return Finding.FAULT, "read again token by token the cloud's model does not give the token of `cloud`"
    if seen.made:
        return Finding.FAULT, "the answer's own passes, made again, do not give its token"
    if seen.recorded and not resumed:
        return Finding.FAULT, "no pass of the answer read these tokens"
    return _by_noise(seen, "the cloud has the passes of the answer no more")


def _explained(seen: Probed) -> tuple[Finding, str]:
    """The passes of the answer give its token, a reading token by token that of `cloud`."""
    if seen.moved > _ABOVE * seen.noise:
        return Finding.FAULT, "the answer's own passes give its token, but move logits by more than their width can"
    greedy = {*seen.plain, *seen.again} <= {0.0, 1.0}
    flipped = not greedy and any((before > 0) != (after > 0) for before, after in zip(seen.plain, seen.again, strict=True))
    member = ", for top-k, top-p or min-p keep another set of tokens" if flipped else ""
    return (
        Finding.NEAR_TIE,
        f"the answer's own passes, made again, give its token, and token by token that of `cloud` wins{member}",
    )


def _by_noise(seen: Probed, why: str) -> tuple[Finding, str]:
    if seen.shift <= seen.noise:
        return Finding.UNDECIDED, why
    return Finding.FAULT, f"{why}, but no reading moves logits so far"


def first_difference(first: list[int], second: list[int]) -> int | None:
    """The first index at which two answers differ; None if they are equal."""
    if first == second:
        return None
    shorter = min(len(first), len(second))
    return next((index for index in range(shorter) if first[index] != second[index]), shorter)


def _pair(values: tuple[float, float]) -> str:
    return f"{values[0]:.3g} and {values[1]:.3g}"
