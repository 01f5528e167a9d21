"""`--check`: is an answer the very one that the cloud's model alone writes? And if not, is it a near tie or a fault?

At temperature 0 every exact method must print the text of `cloud`. Coupled drafting must with the same seed at any
temperature T, where the token wins whose logit less T log E is the largest, E its noise (METHODS 3); what is said of logits
below then goes for that difference. Logits of one model can differ in the last digits with the width of a pass, so two tokens
that score almost the same may change places: that, and only that, is a near tie. It is judged by measured noise: the cloud
scores the common beginning by both widths, and a gap that the largest difference of two logits can bridge (twice the noise) is
a near tie. Any other difference is a fault. A cloud that served others at the same time keeps their cells between ours, and a
tree leaves gaps between them, which moves logits like a wider pass does; so then the wide reading has passes of at least
SHARED_WIDTH and begins SHARED_REREAD tokens before the prompt's end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.config import NoOptions, Request, WithTree, most_drafts
from antiphon.core.chance import PhiloxChance, answer_key
from antiphon.core.coupling import Noise
from antiphon.device.answer import Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.host import drive_session
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.methods.base import DeviceSide, Transcript
from antiphon.methods.probe import ProbeDevice, Question
from antiphon.wire.messages import Open, Probed

SHARED_WIDTH = 16
SHARED_REREAD = 64


@dataclass(frozen=True, slots=True)
class Check:
    """What `--check` found. Logits are (the method's token, cloud's token) at the first difference, by two widths."""

    equal: bool
    first_difference: int | None = None
    gap: float | None = None
    near_tie: bool | None = None
    noise: float | None = None
    shared: bool = False
    narrow_logits: tuple[float, float] | None = None
    wide_logits: tuple[float, float] | None = None

    def sentence(self) -> str:
        """The finding for a person."""
        if self.equal:
            return "check: the same tokens as `cloud`"
        kind = "a near tie within measured noise" if self.near_tie else "NOT a near tie: a fault"
        return (
            f"check: first difference at token {self.first_difference}: logits {self.narrow_logits} token by token, "
            f"{self.wide_logits} in wide passes, gap {self.gap:.4g}, noise {self.noise:.4g}: {kind}"
        )


def require_checkable(request: Request) -> None:
    """Raise UsageError unless `request` must give the same tokens as `cloud`."""
    method = find(request.method)
    if not method.exact:
        raise UsageError(f"--check compares with `cloud`, which {request.method} does not promise to equal: use an exact one")
    if request.sampling.temperature != 0 and not method.coupled:
        raise UsageError(f"--check compares tokens, which only --temperature 0 makes equal for {method.name}: or use coupled")


async def check(device: Device, request: Request, result: Result, connection: Connection) -> Check:
    """Run `cloud` beside a finished answer and compare, token for token."""
    alone = replace(request, method="cloud", options=NoOptions(), seed=result.seed)
    reference = await device.generate(alone, connection)
    index = first_difference(result.answer.numbers, reference.answer.numbers)
    if index is None:
        return Check(equal=True)
    ours, theirs = (answer.numbers[index : index + 1] for answer in (result.answer, reference.answer))
    if not ours or not theirs:
        return Check(equal=False, first_difference=index, near_tie=False)
    shared = result.shared or reference.shared
    options = find(request.method).options() if request.options is None else request.options
    scattered = shared or isinstance(options, WithTree)
    width = most_drafts(options) + 1
    width = max(SHARED_WIDTH, width) if scattered else width
    reread = SHARED_REREAD if scattered else 0
    question = Question(tuple(reference.answer.numbers[:index]), (ours[0], theirs[0]), width, reread)
    seen = await probe(connection, request, question)
    noise, temperature = Noise(answer_key(result.seed, request.prompt, chat=request.chat)), request.sampling.temperature
    ids = connection.common.cloud_ids
    handicaps = tuple(temperature * noise.handicap(index, int(ids[number])) for number in (ours[0], theirs[0]))
    return _judged(index, shared, _raced(seen, handicaps) if temperature else seen)


async def probe(connection: Connection, request: Request, question: Question) -> Probed:
    """What the cloud sees after the prompt of `request` and the tokens of `question`."""
    common = connection.common
    side = DeviceSide(common, Transcript(common.ends, 1), PhiloxChance(0))
    half = ProbeDevice(side, question)
    opening = Open("probe", {}, request.sampling, request.prompt, request.chat, len(question.numbers) + 1, 0, ())
    session = await connection.open(opening)
    await drive_session(half.run(), session)
    await session.closed()
    session.ledger()
    return half.reply


def first_difference(first: list[int], second: list[int]) -> int | None:
    """The first index at which two answers differ; None if they are equal."""
    if first == second:
        return None
    shorter = min(len(first), len(second))
    return next((index for index in range(shorter) if first[index] != second[index]), shorter)


def _raced(seen: Probed, handicaps: Sequence[float]) -> Probed:
    narrow, wide = ((row[0] - handicaps[0], row[1] - handicaps[1]) for row in (seen.narrow, seen.wide))
    return Probed(seen.shares, narrow, wide, seen.noise)


def _judged(index: int, shared: bool, seen: Probed) -> Check:
    gap = abs(seen.narrow[0] - seen.narrow[1])
    return Check(False, index, gap, gap <= 2 * seen.noise, seen.noise, shared, seen.narrow, seen.wide)
