"""What the figures of an answer say is what happened: which drafts stood, of which answer they are, whether it is exact."""

import codecs
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.config import Request
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.core.tree import ROOT, TokenTree
from antiphon.device.answer import Answer, Result
from antiphon.device.connection import Connection
from antiphon.device.generate import Device
from antiphon.device.output.text import bytes_of
from antiphon.methods import WITHOUT_DOCUMENTS
from antiphon.methods.base import DeviceSide, Method
from antiphon.methods.effects import Emit, Emitted, Kind
from antiphon.methods.outcome import Outcome
from antiphon.methods.speculative.coupled import CoupledDevice, LockstepDevice
from antiphon.methods.speculative.coupled_tree import CoupledTreeDevice, ShapedTreeDevice
from antiphon.methods.speculative.options import CoupledOptions
from antiphon.methods.speculative.stream.device import StreamDevice
from antiphon.methods.speculative.token_tree import TreeDevice
from antiphon.models.toy import named_toy, toy_vocabulary
from antiphon.vocabulary import identity
from support.broken_links import Cut, Network, boundaries, broken
from support.links import request

TOYS = named_toy("toy-device"), named_toy("toy-cloud")
TREES = ["tslt-tree", "coupled-tree"]
CHAINS = ["dsd", "dssd", "xcosd", "xcosd-e", "tslt", "u-hlm", "cu-hlm", "coupled"]
LOSSY = ["gr", "tr"]
"""A correction of theirs may be the very draft that fell, so that tokens do not tell what stood."""
REPLACEMENT = {"expansion": "3,2", "replacement": True}


@dataclass
class Counts:
    """By level: drafts that the cloud knew or was about to know, each with whether it was the token; and sets of siblings."""

    levels: list[list[bool]] = field(default_factory=list)
    sets: list[bool] = field(default_factory=list)

    def chain(self, drafts: Sequence[int], tokens: Sequence[int]) -> None:
        """Drafts against the tokens of their round, up to the first that is another."""
        for level, (draft, token) in enumerate(zip(drafts, tokens, strict=False)):
            self._add(level, [draft == token])
            if draft != token:
                return

    def tree(self, tree: TokenTree, tokens: Sequence[int]) -> None:
        """Siblings in their order, up to the one that is the token; then below it."""
        node = ROOT
        for level, token in enumerate(tokens):
            children = tree.children(node)
            numbers = [tree.numbers[child] for child in children]
            if not numbers:
                return
            stands = token in numbers
            self._add(level, [number == token for number in numbers[: numbers.index(token) + 1 if stands else None]])
            if not stands:
                return
            node = children[numbers.index(token)]

    def _add(self, level: int, outcomes: list[bool]) -> None:
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level] += outcomes
        self.sets.append(any(outcomes))

    @property
    def by_level(self) -> list[tuple[int, int]]:
        return [(sum(outcomes), len(outcomes)) for outcomes in self.levels]


def counting(method: Method, counts: Counts) -> Method:
    """The same method; `counts` sees each round that the device commits: from its drafts and tokens, and nothing else."""

    device: Any = ShapedTreeDevice if method.device is CoupledTreeDevice else method.device

    class Counting(device):  # type: ignore[misc]
        def exchange(self, begun: Any) -> Generator[Any, Any, int]:
            position = self.side.transcript.position
            committed = yield from super().exchange(begun)
            counts.chain([draft.number for draft in begun.drafts], self.side.transcript.numbers[position:])
            return committed

        def _committed(self, verdict: Any, begun: Any) -> Any:
            found = super()._committed(verdict, begun)
            if isinstance(found, Emit):  # of a tree; a chain is counted above
                counts.tree(begun.tree, [token.number for token in found.tokens])
            return found

    if issubclass(method.device, CoupledDevice):
        return replace(method, device=counting_coupled(counts))
    assert issubclass(device, TreeDevice) or hasattr(device, "exchange")
    return replace(method, device=Counting)


def counting_coupled(counts: Counts) -> type[CoupledDevice]:
    """The same, of a method whose half is another one in a stream."""

    class CountingLockstep(LockstepDevice):
        def _settle(self, message: Any) -> Emit:
            sent = [draft.number for draft in self._line[: self._sent]]
            emit = super()._settle(message)
            counts.chain(sent, [token.number for token in emit.tokens])
            return emit

    class CountingStream(StreamDevice):
        def _settle(self, message: Any, now: float) -> Emit:
            sent = [draft.number for draft in self._line[: len(self._sent_in)]]
            emit = super()._settle(message, now)
            counts.chain(sent, [token.number for token in emit.tokens])
            return emit

    class Counting(CoupledDevice):
        def __init__(self, side: DeviceSide, options: CoupledOptions) -> None:
            self._half = (CountingLockstep if options.lockstep else CountingStream)(side, options)

    return Counting


def asked(name: str, **more: Any) -> Request:
    options = WITHOUT_DOCUMENTS[name].options_from(
        {"draft_length": 3, "candidates": 2, "expansion": "3,2", **more.pop("options", {})}
    )
    return replace(request(name, **{"tokens": 30, **more}), options=options)


def told(what: Request, *cuts: Cut) -> tuple[Result, Counts, Network]:
    """An answer over a link of 20 ms each way, its rounds counted here, and the link."""
    counts = Counts()

    async def test(device: Device, connection: Connection, network: Network) -> Result:
        network.arm(*cuts)
        links.append(network)
        return await device.generate(what, connection)

    links: list[Network] = []
    result = broken(
        test, methods={**WITHOUT_DOCUMENTS, what.method: counting(WITHOUT_DOCUMENTS[what.method], counts)}, models=lambda: TOYS
    )
    return result, counts, links[0]


def require_counted(result: Result, counts: Counts) -> None:
    figures = result.as_json()
    assert result.answer.acceptance_by_depth() == counts.by_level
    outcomes = [outcome for level in counts.levels for outcome in level]
    assert (figures["accepted"], figures["tested"]) == (sum(outcomes), len(outcomes))
    assert figures["acceptance_rate"] == pytest.approx(sum(outcomes) / len(outcomes))
    assert figures["acceptance_by_depth"] == [sum(level) / len(level) for level in counts.levels]
    assert figures["sibling_acceptance_rate"] == pytest.approx(sum(counts.sets) / len(counts.sets))
    assert figures["accepted"] <= figures["tested"] <= figures["drafted"]
    assert figures["accepted"] <= figures["tokens"]


# Drafts that stood, of drafts that were tested.


@pytest.mark.core(8)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", [*CHAINS, *TREES])
def test_accepted_are_the_drafts_that_are_the_answer_s_tokens(name: str, seed: int) -> None:
    result, counts, _ = told(asked(name, seed=seed))
    require_counted(result, counts)


@pytest.mark.core(1)
@pytest.mark.parametrize(
    "options", [{"draft_length": 0}, {"ahead": 0}, {"ahead": 8, "draft_length": 1}, {"patience": AUTO}, {"patience": 0.0}]
)
def test_drafts_in_flight_count(options: dict[str, Any]) -> None:
    """Those that the cloud had not seen when it made their token: without drafts ahead there are none in lockstep."""
    gained, options = 0, {"patience": LOCKSTEP, **options}
    for seed in range(4):
        result, counts, _ = told(asked("coupled", tokens=40, seed=seed, options=options))
        require_counted(result, counts)
        gained += result.drafts[0] - result.answer.kinds[Kind.ACCEPTED]
    assert (gained > 0) == (options.get("ahead") != 0)


@pytest.mark.core(1)
@pytest.mark.parametrize("options", [REPLACEMENT, {"expansion": "1,1,1"}, {"expansion": "4"}])
def test_siblings_are_counted_one_by_one_and_as_sets(options: dict[str, Any]) -> None:
    """A child that was drawn twice is one draft; where nobody has siblings both rates are one."""
    for seed in range(4):
        result, counts, _ = told(asked("tslt-tree", seed=seed, options=options))
        require_counted(result, counts)
        figures = result.as_json()
        alone = options["expansion"] == "1,1,1"
        assert (figures["sibling_acceptance_rate"] == figures["acceptance_rate"]) == alone


@pytest.mark.core(1)
@pytest.mark.parametrize("name", ["dssd", "xcosd-e", "coupled", "tslt-tree", "u-hlm"])
def test_rates_of_an_answer_that_went_on_after_a_cut(name: str) -> None:
    """A round that was cut brought nothing yet: it counts when its verdict comes."""
    whole, _, network = told(asked(name, tokens=12))
    resumed = 0
    for cut in boundaries(len(network.log))[::3]:
        result, counts, _ = told(asked(name, tokens=12), cut)
        require_counted(result, counts)
        assert result.answer.rounds <= result.tokens == whole.tokens
        resumed += result.answer.resumed
    assert resumed > 0


def test_a_method_without_drafts_has_no_rate() -> None:
    async def test(device: Device, connection: Connection, network: Network) -> Result:
        return await device.generate(request("cloud"), connection)

    figures = broken(test).as_json()
    assert [figures[name] for name in ("drafted", "tested", "accepted")] == [0, 0, 0]
    assert figures["acceptance_rate"] is figures["sibling_acceptance_rate"] is figures["rounds"] is None


# A stop string: figures are of what is shown.


@pytest.mark.core(2)
@pytest.mark.parametrize("name", ["cloud", *CHAINS, *LOSSY, *TREES])
def test_figures_of_a_stopped_answer_are_of_what_is_shown(name: str) -> None:
    async def test(device: Device, connection: Connection, network: Network) -> list[Result]:
        whole = await device.generate(what, connection)
        text = whole.answer.text
        stops = [text[place : place + size] for place in range(0, len(text), 3) for size in (1, 4)]
        return [whole, *[await device.generate(replace(what, stop=(stop,)), connection) for stop in stops]]

    what = asked(name, tokens=24)
    whole, *stopped = broken(test, models=lambda: TOYS)
    for result in stopped:
        answer, figures = result.answer, result.as_json()
        assert figures["finish_reason"] == "stop"
        assert result.token_ids == whole.token_ids[: result.tokens]
        assert answer.committed == answer.kinds.total() == sum(len(one.kinds) for one in answer.emissions) == result.tokens
        assert figures["accepted"] <= min(result.tokens, figures["tested"])
        assert figures["tested"] <= figures["drafted"] + (name == "u-hlm")
        assert len(answer.acceptance_by_depth()) <= max((len(one.kinds) for one in answer.emissions), default=0)
        assert figures["tokens_per_round"] == (result.tokens / answer.rounds if answer.rounds else None)
        if result.tokens:
            assert figures["uplink_bits_per_token"] == result.traffic.up.bits / result.tokens
            assert figures["ttft_s"] <= figures["seconds"]
        else:
            names = ("uplink_bits_per_token", "tokens_per_s", "ttft_s", "seconds")
            assert [figures[name] for name in names] == [None] * len(names)


def test_of_a_round_that_a_stop_string_cuts_the_shown_part_counts() -> None:
    vocabulary = toy_vocabulary([b"a", b"b", b"STOP", b""])
    kinds = (Kind.ACCEPTED, Kind.ACCEPTED, Kind.ACCEPTED, Kind.CORRECTION)
    for numbers, accepted, tested in (((0, 1, 2, 0), 2, 2), ((0, 1, 1, 2), 3, 3), ((2, 1, 1, 1), 0, 0)):
        answer = Answer(identity(vocabulary), ["STOP"], 0.0)
        tokens = tuple(map(Emitted, numbers, kinds))
        answer.take(Emit(tokens, tested=Outcome.in_chain(3, fell=True)), 1.0)
        assert answer.kinds.total() == answer.committed == accepted
        assert answer.sets_of_siblings() == (accepted, tested)
        assert answer.work().corrections == 1, "it crossed"


PIECES = [b"\xff", b"\xf0\x9f", b"\x99\x82", b"\xc3", b"\xa9", b"S", b"TO", b"OP", b"STOP", b"a", "\N{EURO SIGN}".encode(), b""]
VOCABULARY = toy_vocabulary(PIECES)


def spans(data: bytes) -> list[int]:
    """Where each character of the text ends in the bytes, by the decoder's own word on what it replaces."""
    broken_at: dict[int, int] = {}

    def note(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        broken_at[error.start] = error.end
        return "\N{REPLACEMENT CHARACTER}", error.end

    codecs.register_error("noting", note)
    ends, place = [], 0
    for character in data.decode("utf-8", "noting"):
        place = broken_at[place] if place in broken_at else place + len(character.encode())
        ends.append(place)
    return ends


@given(
    st.lists(st.sampled_from(range(len(PIECES) - 1)), min_size=1, max_size=14),
    st.sampled_from(["STOP", "TO", "\N{REPLACEMENT CHARACTER}", "\N{EURO SIGN}"]),
)
def test_a_token_stays_if_a_byte_of_it_is_shown(numbers: list[int], stop: str) -> None:
    """Bytes are compared with bytes: a replaced byte is one, and its character three."""
    answer = Answer(identity(VOCABULARY), [stop], 0.0)
    for number in numbers:
        if not answer.stopped:
            answer.take(Emit((Emitted(number, Kind.STREAMED),)), 1.0)
    answer.end()
    data = b"".join(PIECES[number] for number in numbers)
    whole = data.decode("utf-8", "replace")
    assert whole.startswith(answer.text)
    assert answer.stopped == (stop in whole)
    shown = [0, *spans(data)][len(answer.text)]
    begins = [sum(len(PIECES[before]) for before in numbers[:place]) for place in range(len(numbers))]
    assert answer.numbers == ([number for number, begin in zip(numbers, begins, strict=True) if begin < shown])
    assert answer.kinds.total() == len(answer.numbers)


@given(st.binary(max_size=12))
def test_the_bytes_of_a_text(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert [bytes_of(text[:count], data) for count in range(len(text) + 1)] == [0, *spans(data)]


def test_a_stop_string_in_the_last_flush_is_a_stop() -> None:
    """What was held back as a part of a character is replaced at the end, and that can be what it is to stop before."""

    async def test(device: Device, connection: Connection, network: Network) -> list[tuple[Result, Result]]:
        pairs = []
        for tokens in range(1, 14):
            what = asked("cloud", tokens=tokens, temperature=100.0, seed=5)
            stopping = replace(what, stop=("\N{REPLACEMENT CHARACTER}",))
            pairs.append((await device.generate(what, connection), await device.generate(stopping, connection)))
        return pairs

    pairs, flushed = broken(test, models=lambda: TOYS), 0
    for whole, result in pairs:
        text = whole.answer.text
        found = "\N{REPLACEMENT CHARACTER}" in text
        assert result.finish_reason == ("stop" if found else whole.finish_reason)
        assert result.answer.text == text.partition("\N{REPLACEMENT CHARACTER}")[0]
        flushed += found and text.index("\N{REPLACEMENT CHARACTER}") == len(text) - 1
    assert flushed > 0


def test_no_figure_of_an_answer_without_tokens_is_a_division_by_zero() -> None:
    async def test(device: Device, connection: Connection, network: Network) -> Result:
        whole = await device.generate(request("dssd"), connection)
        return await device.generate(request("dssd", stop=(whole.answer.text[:3],)), connection)

    figures = broken(test).as_json()
    assert (figures["tokens"], figures["text"], figures["finish_reason"]) == (0, "", "stop")
    assert figures["tokens_per_round"] == 0
    assert not any(isinstance(figure, float) and math.isnan(figure) for figure in figures.values())
