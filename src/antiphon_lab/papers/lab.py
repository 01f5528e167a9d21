"""Where answers are written, once each, and timed on any link and hardware by playing their tapes (`tapes`)."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from types import TracebackType
from typing import Self

import msgspec
from rich.progress import Progress

from antiphon.config import ModelConfig, SamplingParams
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.errors import ProtocolError, RemoteError
from antiphon.models import load
from antiphon.models.base import Model
from antiphon.vocabulary import common_vocabulary
from antiphon_lab.ends.remembering_model import RememberingModel
from antiphon_lab.ends.trials import Trial, attempt
from antiphon_lab.ends.virtual import virtual_ends
from antiphon_lab.hardware.profiles import Compute
from antiphon_lab.links.link import Link
from antiphon_lab.links.notation import parse_link
from antiphon_lab.links.virtual_time import run_virtual
from antiphon_lab.papers.answers import Ask, Take, Timing
from antiphon_lab.papers.tapes import DRIFTED, Player, Recorder, Reel, Sent, Tape, Waited
from antiphon_lab.store import Store
from antiphon_lab.workloads.texts import Pair

REMEMBERED_BYTES = 2**28
RECORDED_ON = "x-cosd"
"""The link on which tapes are made."""


class Lab:
    """Two models, loaded when they are first needed, and a store of what they did. To be used in a `with`."""

    def __init__(
        self,
        models: tuple[ModelConfig, ModelConfig],
        sampling: SamplingParams,
        seed: int,
        hardware: Compute,
        store: Store,
        progress: Progress,
    ) -> None:
        """models: the cloud's and the device's. hardware: what forward passes are charged by, unless said otherwise."""
        self.sampling, self.seed, self.hardware = sampling, seed, hardware
        self.store, self.progress = store, progress
        self._models, self._stack = models, ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @cached_property
    def pair(self) -> Pair:
        """Both models. Raises ModelError."""
        with self.progress.console.status("loading the models"):
            cloud, device = (self._stack.enter_context(closing(load(config))) for config in self._models)
            return Pair(cloud, device, common_vocabulary(device.vocabulary, cloud.vocabulary), self.sampling)

    @cached_property
    def _charges(self) -> str:
        """The hardware's name, and a digest of its figures, which may change under the name."""
        figures = msgspec.json.encode((self.hardware.draft, self.hardware.verify))
        return f"{self.hardware.name} {hashlib.sha256(figures).hexdigest()[:8]}"

    @cached_property
    def _remembering(self) -> tuple[Model, Model]:
        """For answers that are written again and again: the same tokens are read once."""
        cloud, device = (RememberingModel(model, REMEMBERED_BYTES) for model in (self.pair.cloud, self.pair.device))
        for model in (cloud, device):
            self._stack.callback(model.forget)
        return cloud, device

    def takes(self, asks: Iterable[Ask]) -> dict[Ask, Take]:
        """The real answers; those that are not in the store are written now."""
        wanted = list(dict.fromkeys(ask.streamed for ask in asks))
        if missing := [ask for ask in wanted if _taken(ask) not in self.store]:
            run_virtual(self._record(missing))
        return {ask: self.store.get(_taken(ask), Take) for ask in wanted}

    def timings(self, asks: Sequence[Ask], links: Sequence[str]) -> dict[tuple[Ask, str], Timing]:
        """How each answer goes on each link, which is named as `antiphon_lab.links.notation` reads it."""
        wanted = [(ask, link) for link in links for ask in asks]
        keys = {pair: f"{pair[0].key} on {pair[1]} by {self._charges}" for pair in wanted}
        if missing := [pair for pair in wanted if keys[pair] not in self.store]:
            takes = self.takes(ask for ask, _ in missing if not ask.hangs_on_time)
            bar = self.progress.add_task("timing on links", total=len(missing))
            for link in dict.fromkeys(link for _, link in missing):
                tapes = {ask: takes[ask.streamed].tape for ask, on in missing if on == link and not ask.hangs_on_time}
                for ask, timing in self._timed(tapes, parse_link(link)).items():
                    self.store.keep(keys[ask, link], timing)
                self.progress.advance(bar, len(tapes))
            # Question by question, so that what was read of one is still remembered on the next link.
            for ask, link in sorted((pair for pair in missing if pair[0].hangs_on_time), key=lambda pair: pair[0].question):
                self.store.keep(keys[ask, link], self._anew(ask, parse_link(link)))
                self.progress.advance(bar)
        return {pair: self.store.get(key, Timing) for pair, key in keys.items()}

    async def _record(self, asks: Sequence[Ask]) -> None:
        recorder, pair = Recorder(), self.pair
        async with virtual_ends(pair.cloud, pair.device, parse_link(RECORDED_ON), self.hardware, recorder.methods) as (
            device,
            connection,
        ):
            for ask in self.progress.track(asks, description="answers"):
                result = await device.generate(ask.request(self.sampling, self.seed), connection)
                assert recorder.tape.complete  # no stop string, so both halves come to their end
                self.store.keep(_taken(ask), Take(recorder.tape, result.answer.text))

    def _timed(self, tapes: Mapping[Ask, Tape], link: Link) -> dict[Ask, Timing]:
        """By tape; where one drifts, the answer is written anew."""
        played = run_virtual(self._play(tapes, link))
        return {ask: played.get(ask) or self._anew(ask, link) for ask in tapes}

    async def _play(self, tapes: Mapping[Ask, Tape], link: Link) -> dict[Ask, Timing]:
        player, pair, found = Player(), self.pair, {}
        async with virtual_ends(pair.cloud, pair.device, link, self.hardware, player.methods) as (device, connection):
            for ask, tape in tapes.items():
                player.tape = each_asked(tape) if ask.each_asked else tape
                if (timing := await self._one(ask, device, connection)) is not None:
                    found[ask] = timing
        return found

    async def _one(self, ask: Ask, device: Device, connection: Connection) -> Timing | None:
        """None if the tape drifts."""
        try:
            return Timing.of(await device.generate(ask.request(self.sampling, self.seed), connection))
        except (ProtocolError, RemoteError) as error:
            if error.code != DRIFTED:
                raise
        return None

    def _anew(self, ask: Ask, link: Link) -> Timing:
        trial = Trial(ask.method, link, self.hardware, self.sampling, ask.values, ask.max_tokens)
        (result,) = attempt(trial, *self._remembering, [ask.prompt], ask.seed(self.seed))
        return Timing.of(result)


def _taken(ask: Ask) -> str:
    return f"{ask.key} taken"


def each_asked(tape: Tape) -> Tape:
    """The tape of a stream as if the device asked for every token but the first, and the cloud waited to be asked."""
    asking = [new for event in tape.device.events for new in ((_ASKED, event) if isinstance(event, Waited) else (event,))]
    waiting = [new for event in tape.cloud.events for new in ((event, _WAITED) if isinstance(event, Sent) else (event,))]
    return Tape(Reel(asking[1:], tape.device.finish), Reel(waiting[:-1], tape.cloud.finish), tape.rounding)


_ASKED, _WAITED = Sent("Draft", (0, 0), 0), Waited(None, True)
