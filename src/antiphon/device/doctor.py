"""`antiphon doctor`: can this device and that cloud work together, and how well?"""

import statistics
from dataclasses import dataclass

from antiphon.config import Request, SamplingParams
from antiphon.core.distributions import process
from antiphon.device.check import probe
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import UsageError
from antiphon.methods.probe import Question
from antiphon.models.base import Model, spell

PINGS = 9
TEXT = "The city of Paris lies on the river Seine. Its best known building is"
TOKENS = 48
GOOD_ACCEPTANCE = 0.3
_PLAIN = SamplingParams(temperature=1.0)


@dataclass(frozen=True, slots=True)
class Report:
    """What the doctor found. Shares are of each model's probability, on the common vocabulary, over a short text."""

    cloud: str
    device_model: str
    cloud_model: str
    round_trip_ms: float
    common_tokens: int
    cloud_tokens: int
    device_share: float
    cloud_share: float
    acceptance: float
    cloud_pass_ms: float

    def rows(self) -> list[tuple[str, str]]:
        """The findings, named for a person."""
        return [
            ("cloud", f"{self.cloud} ({self.cloud_model}, {self.cloud_tokens:,} tokens)"),
            ("device", self.device_model),
            ("round trip", f"{self.round_trip_ms:.2f} ms"),
            ("common vocabulary", f"{self.common_tokens:,} tokens"),
            ("device's probability on it", f"{self.device_share:.1%}"),
            ("cloud's probability on it", f"{self.cloud_share:.1%}"),
            ("drafts accepted", f"{self.acceptance:.0%} at temperature 1, over {TOKENS} tokens"),
            ("cloud pass", f"{self.cloud_pass_ms:.0f} ms"),
        ]

    @property
    def fits(self) -> bool:
        """True if drafting is likely to pay."""
        return self.acceptance >= GOOD_ACCEPTANCE and self.cloud_share > 0.5

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if self.fits:
            return f"These two work together: about {self.acceptance:.0%} of drafts are accepted."
        if self.cloud_share <= 0.5:
            return "They work together, but the tokenizers share too little for drafts to help: use --method cloud."
        return f"They work together, but only {self.acceptance:.0%} of drafts are accepted: try another device model."


async def examine(device: Device, connection: Connection, url: str) -> Report:
    """Measure one pair over one link. The answer written on the way is exact, so it does no harm."""
    model = device.model
    if model is None:
        raise UsageError("doctor needs a model on the device: give --model")
    pings = [await connection.ping() for _ in range(PINGS)]
    request = Request(TEXT, "xcosd-e", sampling=_PLAIN, max_tokens=TOKENS, seed=1)
    result = await device.generate(request, connection)
    numbers = tuple(result.answer.numbers)
    seen = await probe(connection, request, Question(numbers, (0, 0), 1))
    share = await device.worker.run(lambda: _device_share(model, connection, numbers))
    return Report(
        cloud=url,
        device_model=model.name,
        cloud_model=connection.welcome.model,
        round_trip_ms=1000 * statistics.median(pings),
        common_tokens=connection.common.size,
        cloud_tokens=connection.common.target_size,
        device_share=share,
        cloud_share=statistics.fmean(seen.shares),
        acceptance=result.acceptance_rate or 0.0,
        cloud_pass_ms=result.compute_ms / max(1, result.passes),
    )


def _device_share(model: Model, connection: Connection, numbers: tuple[int, ...]) -> float:
    """The device model's mean probability on the common vocabulary over the text and the answer."""
    answer = b"".join(connection.common.pieces[number] for number in numbers)
    tokens = [*model.begin, *spell(model, TEXT.encode() + answer)]
    context = model.open()
    try:
        rows = context.extend(tokens, len(numbers))
    finally:
        context.close()
    return statistics.fmean(float(process(row, _PLAIN)[connection.common.device_ids].sum()) for row in rows)
