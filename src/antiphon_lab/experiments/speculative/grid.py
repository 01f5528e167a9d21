"""What `bench speculative` runs: rows (a method with its options) in settings (a link, hardware, a temperature)."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from antiphon import __version__
from antiphon.config import ModelConfig, SamplingParams
from antiphon.core.stream import LOCKSTEP
from antiphon.errors import UsageError
from antiphon.methods import find
from antiphon.options import read_options
from antiphon_lab.ends.trials import Trial
from antiphon_lab.hardware.profiles import Compute, PassCost
from antiphon_lab.links.link import Channel, Link

REFERENCE = "cloud"
"""The cloud's model alone, streamed: one trip for the whole answer. Always run."""

TRIPS = "cloud-trips"
"""The same, but the device asks for each token: `coupled` in lockstep with a device that cannot draft. Always run."""

KEPT = 2
"""The form in which answers are kept: those of an older one are written anew."""

REAL = Compute("this machine", PassCost(0.0), PassCost(0.0), "passes take as long as they take")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run. lengths: draft lengths, 0 is auto. real: in real time, over a proxy, on this machine's hardware.

    data: files of prompts, so many of each. patiences: of the methods that stream, as a person writes them; draft lengths count
    in lockstep alone. expansions: none for what the methods have. results: where answers are kept; html: where the page goes.
    seeds: answers to each prompt.
    """

    data: tuple[Path, ...]
    methods: tuple[str, ...]
    links: tuple[Link, ...]
    computes: tuple[Compute, ...]
    lengths: tuple[int, ...]
    expansions: tuple[str, ...]
    patiences: tuple[str, ...]
    temperatures: tuple[float, ...]
    prompts: int
    tokens: int
    seeds: int
    cloud_model: ModelConfig
    device_model: ModelConfig
    results: Path | None = None
    html: Path | None = None
    real: bool = False

    @property
    def asked(self) -> int:
        """Prompts of all files."""
        return self.prompts * len(self.data)


@dataclass(frozen=True, slots=True)
class Row:
    """A method with its options. variant: what tells it from other rows of the method, such as its draft length."""

    method: str
    variant: str = ""
    options: tuple[tuple[str, object], ...] = ()
    mute: bool = False
    """The device cannot draft."""

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"{self.family} {self.variant}".strip()

    @property
    def family(self) -> str:
        """What it has in common with rows of the same method and other options; lockstep is another way of working."""
        if self.mute:
            return TRIPS
        return f"{self.method} lockstep" if ("patience", LOCKSTEP) in self.options else self.method


@dataclass(frozen=True, slots=True)
class Setting:
    """Where rows are compared."""

    link: Link
    compute: Compute
    temperature: float

    @property
    def name(self) -> str:
        """What it is called in titles."""
        return f"{self.link.name}, {self.compute.name}, temperature {self.temperature:g}"


@dataclass(frozen=True, slots=True)
class Ask:
    """One answer to write. prompt: its place; seed: from 1."""

    row: Row
    setting: Setting
    prompt: int
    text: str
    seed: int

    @property
    def answer_seed(self) -> int:
        """The seed of the answer, the same for all rows and settings."""
        return 1000 * self.seed + self.prompt

    def trial(self, tokens: int) -> Trial:
        """What is tried; jitter and losses differ from answer to answer."""
        setting = self.setting
        link = ReseededLink.of(setting.link, self.answer_seed)
        compute = replace(setting.compute, draft=PassCost(0.0)) if self.row.mute else setting.compute
        sampling = SamplingParams(temperature=setting.temperature)
        return Trial(self.row.method, link, compute, sampling, dict(self.row.options), tokens)

    def key(self, plan: Plan) -> str:
        """A digest of all that the answer depends on."""
        options = asdict(find(self.row.method).options_from(dict(self.row.options)))
        models = plan.cloud_model.name, plan.device_model.name, plan.real and plan.cloud_model.threads
        cost = asdict(self.setting.compute.draft), asdict(self.setting.compute.verify)
        what = (self.row.method, self.row.mute, options, self.setting.temperature, self.text, self.answer_seed, plan.tokens)
        everything = json.dumps([__version__, KEPT, models, what, asdict(self.setting.link), cost], default=repr)
        return hashlib.sha256(everything.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class ReseededLink(Link):
    """A link whose jitter and losses are those of another seed."""

    seed: int = 0

    @classmethod
    def of(cls, link: Link, seed: int) -> "ReseededLink":
        """`link` with the jitter and losses of `seed`."""
        return cls(link.name, link.up, link.down, link.source, link.handshakes, seed)

    def channels(self, seed: int, start: float = 0.0, dialled: float | None = None) -> tuple[Channel, Channel]:
        """Of that seed."""
        return super().channels(seed + self.seed, start, dialled)


def rows_of(plan: Plan) -> tuple[Row, ...]:
    """The rows, those of `cloud` first. Raises UsageError for a method or an option that cannot be."""
    asking = ("draft_length", 1), ("ahead", 0), ("patience", LOCKSTEP)
    found = [Row(REFERENCE), Row("coupled", options=asking, mute=True)]
    for name in plan.methods:
        found += [] if name in (REFERENCE, TRIPS) else _variants(plan, name)
    return tuple(dict.fromkeys(found))


def _variants(plan: Plan, name: str) -> Iterator[Row]:
    own = {field.name for field in fields(find(name).options)}
    for patience in plan.patiences if "patience" in own else (None,):
        how = [] if patience is None else [f"patience={patience}"]
        waits = f"{patience} ms" if patience not in (None, "auto", "lockstep") else ""
        for variant, shape in _shapes(plan, own, in_stream=patience not in (None, "lockstep")):
            options = read_options(find(name).options, [*shape, *how], name)
            find(name).options_from(options)
            yield Row(name, f"{variant} {waits}".strip(), tuple(options.items()))


def _shapes(plan: Plan, own: set[str], *, in_stream: bool) -> list[tuple[str, tuple[str, ...]]]:
    """What is drafted at once: a name, and the options for it. In a stream it is what pays."""
    if in_stream:
        return [("", ())]
    if "draft_length" in own:
        written = ["auto" if length == 0 else str(length) for length in plan.lengths]
        return [(length, (f"draft_length={length}",)) for length in written]
    if "expansion" in own and plan.expansions:
        return [(expansion, (f"expansion={expansion}",)) for expansion in plan.expansions]
    return [("", ())]


def settings_of(plan: Plan) -> tuple[Setting, ...]:
    """Every link on every hardware at every temperature."""
    computes = (REAL,) if plan.real else plan.computes
    found = (Setting(link, cost, heat) for cost in computes for heat in plan.temperatures for link in plan.links)
    return tuple(dict.fromkeys(found))


def asks_of(plan: Plan, prompts: Sequence[str]) -> list[Ask]:
    """Every answer, prompt by prompt and seed by seed, so that models remember what was read. Raises UsageError."""
    for name, number in (("--tokens", plan.tokens), ("--seeds", plan.seeds)):
        if number < 1:
            raise UsageError(f"{name} must be at least 1, not {number}")
    for temperature in plan.temperatures:
        SamplingParams(temperature=temperature)  # so that a bad one is found before the models are loaded
    rows, settings = rows_of(plan), settings_of(plan)
    return [
        Ask(row, setting, place, text, seed)
        for place, text in enumerate(prompts)
        for seed in range(1, plan.seeds + 1)
        for row in rows
        for setting in settings
    ]
