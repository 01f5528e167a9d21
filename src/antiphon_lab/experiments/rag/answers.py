"""What is asked for in `antiphon-lab bench rag`, how it is written, and what is kept of an answer."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from antiphon import __version__
from antiphon.config import ModelConfig, Request, SamplingParams
from antiphon.device.answer import Answer, Result
from antiphon.methods.effects import Kind
from antiphon.retrieval.index import Index
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.ends.trials import seed_of
from antiphon_lab.experiments.rag.dense import Reference
from antiphon_lab.experiments.rag.ends import Ends
from antiphon_lab.experiments.rag.forced import ALONE, forced, nats, stepwise
from antiphon_lab.experiments.rag.rows import Row
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.workloads.documents import Example, RagTask
from antiphon_lab.workloads.tasks import score_fact

OWN_NOISE = ("crcg", "drcg", "dragon")
"""Methods whose sampled answers do not depend on the noise that the dense mixture is sampled with."""


class Step(NamedTuple):
    """A token: where it came from, and what it took.

    waited: seconds for evidence. evidence: whether there was any; then questions and chunks that were asked for, and whether
    everything was sent. drafted: whether the token was the cloud's own draft too.
    """

    kind: Kind
    waited: float = 0.0
    evidence: bool = False
    questions: int = 0
    chunks: int = 0
    everything: bool = False
    drafted: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """How answers are written: by what, over which link, on which hardware."""

    row: Row
    link: Link
    compute: Compute


@dataclass(frozen=True, slots=True)
class Setting:
    """What all answers of a run have in common. models: the device's and the cloud's. tokens: of an answer at most.

    seed: the run's own. real: in real time.
    """

    task: RagTask
    models: tuple[ModelConfig, ModelConfig]
    sampling: SamplingParams
    tokens: int
    seed: int
    real: bool = False

    def answer_seed(self, example: Example) -> int:
        """The same for every method, another for every example, 64 bits."""
        return seed_of(f"{self.seed} {self.task.name} {example.name}")

    def key(self, example: Example, case: Case) -> str:
        """Everything that an answer depends on."""
        asked = hashlib.sha256(repr(example).encode()).hexdigest()[:12]
        models = " ".join(Path(config.name).name for config in self.models)
        where = f"{case.link.name} | {'real' if self.real else case.compute.name}"
        limits = f"{self.sampling.temperature:g} {self.tokens} {self.seed}"
        return " | ".join((__version__, models, self.task.name, example.name, asked, case.row.key, where, limits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A finished answer. times: of each token, seconds since it was asked for.

    scores: F1, exact match and 1; nothing for a text. up, down: bits of payload and of framing. opening: bits of the session's
    opening, both ways. messages: up and down, that opening apart. different: tokens that are not the dense
    one behind the same answer, of so many that were compared. nats: of the text that really follows, teacher-forced, with the
    policy in the loop, and its tokens, of which `forced_alone` were decided without evidence; nothing for a question.
    """

    row: str
    example: str
    text: str
    scores: tuple[float, ...]
    times: tuple[float, ...]
    steps: tuple[Step, ...]
    up: tuple[int, int]
    down: tuple[int, int]
    opening: int
    messages: tuple[int, int]
    different: int
    compared: int
    nats: tuple[float, ...]
    forced_alone: int
    cloud_passes: int

    @property
    def tokens(self) -> int:
        """Tokens that were committed."""
        return len(self.times)

    @property
    def seconds(self) -> float:
        """Until the last of them."""
        return self.times[-1]


class Desk:
    """Writes answers to one example after the other. models: what is asked about the dense mixture, after an answer."""

    def __init__(
        self, setting: Setting, ends: Ends, models: tuple[RememberingModel, RememberingModel], libraries: tuple[Index, Index]
    ) -> None:
        self._setting, self._ends, self._models, self._libraries = setting, ends, models, libraries
        self._references: dict[tuple[str, int], Reference] = {}

    def turn(self) -> None:
        """Another example comes."""
        self._references.clear()
        for model in self._models:
            model.forget()

    def write(self, example: Example, case: Case) -> Written:
        """One answer."""
        setting, row = self._setting, case.row
        request = Request(
            example.prompt, row.method, row.options, setting.sampling, setting.tokens, seed=setting.answer_seed(example)
        )
        result = self._ends.write(request, case.link, case.compute, {})
        different, compared = self._compared(example, row, result)
        costs, alone = self._perplexity(example, case) if example.target else ((), 0)
        traffic, text = result.traffic, result.answer.text
        return Written(
            row=row.name,
            example=example.name,
            text=text,
            scores=score_fact(text.strip().partition("\n")[0], example.references) if example.references else (),
            times=tuple(times(result.answer)),
            steps=tuple(steps(result.answer)),
            up=(traffic.up.payload_bits, traffic.up.framing_bits),
            down=(traffic.down.payload_bits, traffic.down.framing_bits),
            opening=traffic.setup.bits,
            messages=(traffic.up.frames, traffic.down.frames),
            different=different,
            compared=compared,
            nats=costs,
            forced_alone=alone,
            cloud_passes=result.passes,
        )

    def _compared(self, example: Example, row: Row, result: Result) -> tuple[int, int]:
        """Tokens that are not the dense one behind the same answer, and how many were compared."""
        if self._setting.sampling.temperature > 0 and row.method in OWN_NOISE:
            return 0, 0
        reference, seed, numbers = self._reference(example, row), self._setting.answer_seed(example), result.answer.numbers
        wrong = [number != reference.token(numbers[:place], seed) for place, number in enumerate(numbers)]
        return sum(wrong), len(wrong)

    def _perplexity(self, example: Example, case: Case) -> tuple[tuple[float, ...], int]:
        """The nats of the text that follows, and how many of its steps were decided without evidence."""
        setting, row, text = self._setting, case.row, example.target
        kinds: Sequence[Kind] = []
        if stepwise(row.method):
            seed = setting.answer_seed(example)
            request = Request(example.prompt, row.method, row.options, setting.sampling, len(text), seed=seed)
            led = self._ends.write(request, case.link, case.compute, {row.method: forced(row.method, text)})
            kinds = [step.kind for step in steps(led.answer)]
        teacher, policy = nats(self._reference(example, row), row.method, text, kinds)
        return (teacher, policy, float(len(text))), sum(kind in ALONE for kind in kinds)

    def _reference(self, example: Example, row: Row) -> Reference:
        key = example.name, row.options.passages
        if key not in self._references:
            options, sampling = row.options, self._setting.sampling
            self._references[key] = Reference(self._models, self._libraries, example.prompt, options, sampling)
        return self._references[key]


def times(answer: Answer) -> Iterator[float]:
    """When each token came, in seconds since it was asked for."""
    for arrival in answer.emissions:
        yield from [arrival.time - answer.started] * len(arrival.kinds)


def steps(answer: Answer) -> Iterator[Step]:
    """What each token took. Where a token is certain, or no cloud takes part, there is nothing to tell."""
    consulted = iter(answer.consulted)
    for kind in (kind for arrival in answer.emissions for kind in arrival.kinds):
        one = next(consulted, None) if kind is not Kind.CERTAIN else None
        if one is None:
            yield Step(kind)
        elif (effort := one.effort) is None:
            yield Step(kind, one.waited)
        else:
            yield Step(kind, one.waited, True, effort.questions, effort.chunks, effort.everything, one.drafted)
