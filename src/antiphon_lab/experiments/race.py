"""`antiphon-lab race`: the cloud's plain stream beside a method, the same answer, at the pace of some hardware and a link.

Both are written before anything is shown, in virtual time: with the real models and the code of both ends, on a clock that is
charged what a profile says for passes and what a link says for frames. Then they are replayed as they came.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from rich.console import Console

from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.device.answer import Piece, Result
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.methods.effects import Kind
from antiphon.models import load
from antiphon.models.base import Model
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.virtual_time import run_virtual

REFERENCE = "cloud"
"""Who is raced against: the cloud's model alone, its tokens streamed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who races, where, and for which answer. Raises UsageError."""

    method: str
    prompt: str
    link: Link
    compute: Compute
    sampling: SamplingParams
    max_tokens: int
    seed: int
    cloud_model: ModelConfig
    device_model: ModelConfig

    def __post_init__(self) -> None:
        method = find(self.method, mixes=False)
        if method.name == REFERENCE or method.cloud is None:
            raise UsageError(f"{self.method} has no race with {REFERENCE}: use a method that drafts, such as coupled")

    def request(self, method: str) -> Request:
        """What is asked for."""
        return Request(self.prompt, method, None, self.sampling, self.max_tokens, seed=self.seed)


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came at a time, in seconds since the question: text, and where its last token came from."""

    time: float
    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Runner:
    """An answer, and when its parts came."""

    arrivals: tuple[Arrival, ...]
    result: Result

    @property
    def seconds(self) -> float:
        """Until the last token; 0 where there is none."""
        return self.result.answer.seconds if self.result.tokens else 0.0

    def tokens_by(self, time: float) -> int:
        """Tokens that had come so many seconds after the question."""
        answer = self.result.answer
        return bisect_right([one.time - answer.started for one in answer.emissions for _ in one.kinds], time)

    def as_json(self) -> dict[str, object]:
        """The figures of the answer, and when its text came."""
        return {**self.result.as_json(), "arrivals": [[one.time, one.text, one.kind.value] for one in self.arrivals]}


@dataclass(frozen=True, slots=True)
class Race:
    """Both runners: the plain stream, and the method."""

    plan: Plan
    reference: Runner
    method: Runner

    @property
    def runners(self) -> Mapping[str, Runner]:
        """By name."""
        return {REFERENCE: self.reference, self.plan.method: self.method}

    @property
    def same(self) -> bool:
        """Whether they wrote the same tokens, as an exact method does at temperature 0, and `coupled` at any."""
        return self.reference.result.token_ids == self.method.result.token_ids

    @property
    def faster(self) -> float:
        """How many times as many tokens a second the method wrote."""
        ours, theirs = self.method, self.reference
        return (ours.result.tokens / ours.seconds) / (theirs.result.tokens / theirs.seconds)

    def as_json(self) -> dict[str, object]:
        """All of it."""
        compute, link = self.plan.compute, self.plan.link
        setting = {"profile": compute.name, "profile_source": compute.source, "link": link.name, "link_source": link.source}
        runners = {name: runner.as_json() for name, runner in self.runners.items()}
        return {**setting, "time": "virtual", "same_tokens": self.same, "faster": self.faster, "runners": runners}


def run(plan: Plan) -> Race:
    """Write both answers. Raises one of `antiphon.errors`."""
    with ExitStack() as stack, Console(stderr=True).status("writing both answers in virtual time ..."):
        models = []
        for config in (plan.cloud_model, plan.device_model):
            model = RememberingModel(load(config))
            stack.callback(model.close)
            models.append(model)
        return raced(plan, *models)


def raced(plan: Plan, cloud_model: Model, device_model: Model) -> Race:
    """The race of these models. Raises UsageError if an answer has no token, for there is nothing to race for."""
    race = Race(plan, *(_runner(plan, name, cloud_model, device_model) for name in (REFERENCE, plan.method)))
    if not (race.reference.seconds and race.method.seconds):
        raise UsageError("the answer has no tokens to race for: use another prompt, or another --seed")
    return race


def _runner(plan: Plan, method: str, cloud_model: Model, device_model: Model) -> Runner:
    async def answer() -> Runner:
        came: list[Arrival] = []

        def note(pieces: Sequence[Piece]) -> None:
            now = asyncio.get_running_loop().time()
            came.extend(Arrival(now, piece.text, piece.origin) for piece in pieces if piece.text)

        async with virtual_ends(cloud_model, device_model, plan.link, plan.compute) as (device, connection):
            result = await device.generate(plan.request(method), connection, note)
        started = result.answer.started
        return Runner(tuple(Arrival(one.time - started, one.text, one.kind) for one in came), result)

    return run_virtual(answer())
