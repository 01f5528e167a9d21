"""No two draws share a number: what production's streams are asked for, and the distribution of many answers that come of it.

Enumeration (test_exact.py) refuses two draws of one key, but it cannot see that two keys give one number. Here every draw of
both ends is written down with its number; and thousands of answers of successive seeds are compared with the exact
distribution, at a size at which any two streams that are one are seen.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, PhiloxChance, PhiloxStream, Place, Race, Role
from antiphon.core.distributions import Ids
from antiphon.methods import WITH_DOCUMENTS, WITHOUT_DOCUMENTS
from antiphon.methods.effects import Kind
from antiphon.methods.mixture.options import MixtureOptions
from antiphon.testing.distributions import CutError, Distribution, Pair, breaking
from antiphon.testing.lockstep import run_pair
from antiphon.wire.messages import Message, Verdict
from support.mixed import emitted, mixture
from support.sampled import AUTO, CANDIDATES, SAMPLING, TOKENS, Confused, expected, p_value
from support.sampled import pair as large_pair

Numbers = tuple[int, ...]
Ends = Callable[[int], tuple[Chance, Chance]]
"""The device's and the cloud's chance of a seed."""

ANSWERS = 4000
FAULTY = 700
"""Answers that show most planted faults; those of candidates take twice as many."""
FEW = {"truncate": "k=3"}
TREE = {**FEW, "expansion": "2,2"}
BLOCK = {"verification": "block"}
PATIENT = {"debt_threshold": 1e6, "max_debt": 1e6}
"""Of concord: no step is decided without evidence."""
MASSES = (0.4, 0.0)
STREAMS = {
    "dsd": ("dsd", {}),
    "dsd-auto": ("dsd", {"draft_length": 0}),
    "dsd-block": ("dsd", BLOCK),
    "dsd-block-auto": ("dsd", {**BLOCK, "draft_length": 0}),
    "tslt": ("tslt", FEW),
    "tslt-block": ("tslt", {**FEW, **BLOCK}),
    "tslt-tree": ("tslt-tree", TREE),
    "tslt-tree-with-replacement": ("tslt-tree", {**TREE, "replacement": True}),
    "dssd": ("dssd", {}),
    "xcosd": ("xcosd", {}),
    "xcosd-e": ("xcosd-e", CANDIDATES),
    "xcosd-e-auto": ("xcosd-e", AUTO),
    "gr": ("gr", {}),
    "tr": ("tr", {}),
    "u-hlm": ("u-hlm", {}),
    "cu-hlm": ("cu-hlm", {}),
    "dragon": ("dragon", {}),
    "dragon-topp": ("dragon", {"packing": "topp"}),
}
RACES = {
    "cloud": ("cloud", {}),
    "coupled": ("coupled", {}),
    "coupled-tree": ("coupled-tree", {"expansion": "3,2"}),
    "concord": ("concord", PATIENT),
    "concord-nosystem": ("concord-nosystem", {}),
    "drdg-tw": ("drdg-tw", {}),
}


def pair(*, alike: bool = False) -> Pair:
    """Five common tokens, and two of the cloud alone: so few that little of a fault is smeared out."""
    common, outside = [b"a", b"b", b"c", b"d", b""], [] if alike else [b"ab", b"bc"]
    return Pair(common if alike else [*common[::-1], b"x"], [*outside, *common], seed=3, sharpness=0.7)


def endless(models: Pair) -> SamplingParams:
    """No answer ends before its longest."""
    return replace(SAMPLING, logit_bias=((models.cloud.vocabulary.end, -50.0),))


class Writer:
    """Writes answers of three tokens, one seed after the other; longer ones do not end before."""

    def __init__(self, name: str, given: Mapping[str, object], tokens: int = TOKENS, models: Pair | None = None) -> None:
        self.name, self.given, self.tokens = name, given, tokens
        options = MixtureOptions if name in WITH_DOCUMENTS else WITHOUT_DOCUMENTS[name].options_from
        self.options: Any = options(**given) if name in WITH_DOCUMENTS else options({"draft_length": 2, **given})
        self.models = models or pair(alike=name in WITH_DOCUMENTS)
        self.sampling = SAMPLING if tokens == TOKENS else endless(self.models)

    def write(self, device: Chance, cloud: Chance) -> Numbers:
        if self.name in WITH_DOCUMENTS:
            told = emitted(self.name, self.models, self.options, self.sampling, MASSES, self.tokens, device, cloud)
            assert not any(token.kind is Kind.LOCAL for token in told)
            return tuple(token.number for token in told)
        method, sides = WITHOUT_DOCUMENTS[self.name], self.models.sides(self.tokens, self.sampling, device)
        sides[1].chance = cloud
        assert method.cloud is not None
        run_pair(method.device(sides[0], self.options).run(), method.cloud(sides[1], self.options).run())
        return tuple(sides[0].transcript.numbers)

    def sampled(self, answers: int, ends: Ends) -> Counter[Numbers]:
        return Counter(self.write(*ends(seed)) for seed in range(answers))

    @property
    def distribution(self) -> Distribution:
        if self.name in WITH_DOCUMENTS:
            return mixture(self.models, SAMPLING, MASSES, self.tokens)
        return expected(self.name, self.given, self.models)


# What is drawn, and with which number.


@dataclass
class Record:
    """Every number that one end drew, by its key, and the positions whose races it ran."""

    numbers: list[tuple[Role, Place, int, float]] = field(default_factory=list)
    races: list[int] = field(default_factory=list)


class Recording:
    """Production's chance, of which every draw is written down."""

    def __init__(self, chance: Chance, record: Record) -> None:
        self._chance, self._record = chance, record

    def at(self, place: Place, role: Role) -> "RecordingStream":
        stream = self._chance.at(place, role)
        assert isinstance(stream, PhiloxStream)
        return RecordingStream(stream, role, place, self._record)

    def race(self, position: int, ids: Ids) -> Race:
        self._record.races.append(position)
        return self._chance.race(position, ids)


class RecordingStream(PhiloxStream):
    """A stream that writes down its numbers."""

    def __init__(self, stream: PhiloxStream, role: Role, place: Place, record: Record) -> None:
        self._stream, self._role, self._place, self._record, self._count = stream, role, place, record, 0

    def _uniform(self) -> float:
        number = self._stream._uniform()
        self._record.numbers.append((self._role, self._place, self._count, number))
        self._count += 1
        return number


def recorded(name: str, given: Mapping[str, object], seed: int, confused: Mapping[Role, Role] | None = None) -> list[Record]:
    """What the device and the cloud drew for an answer of 12 tokens."""
    records = [Record(), Record()]
    ends = [Recording(Confused(PhiloxChance(seed), confused), record) for record in records]
    Writer(name, given, 12).write(*ends)
    return records


def shared(records: list[Record]) -> set[str]:
    """Which of the numbers of an answer are drawn more than once, or by both ends."""
    keys = Counter(draw[:3] for record in records for draw in record.numbers)
    numbers = Counter(draw[3] for record in records for draw in record.numbers)
    roles = [{role for role, *_ in record.numbers} for record in records]
    found = {f"key {key}" for key, times in keys.items() if times > 1}
    found |= {f"number {number}" for number, times in numbers.items() if times > 1}
    return found | {f"role {role.name} on both ends" for role in roles[0] & roles[1]}


@pytest.mark.core(3)
@pytest.mark.parametrize(("name", "given"), STREAMS.values(), ids=STREAMS)
def test_no_number_is_drawn_twice(name: str, given: dict[str, object]) -> None:
    """By no end, for no role, at no place; what was drawn beyond the tokens of a round included."""
    drawn = 0
    for seed in range(12):
        records = recorded(name, given, seed)
        assert shared(records) == set()
        assert not any(record.races for record in records)
        drawn += sum(len(record.numbers) for record in records)
    assert drawn > 150


@pytest.mark.parametrize(("name", "given"), RACES.values(), ids=RACES)
def test_who_runs_races_draws_nothing_else(name: str, given: dict[str, object]) -> None:
    """Noise that both ends know decides by races only (METHODS 3), and each position has its own."""
    for seed in range(4):
        records = recorded(name, given, seed)
        assert not any(record.numbers for record in records)
        assert all(0 <= position < 12 for record in records for position in record.races)
        assert any(len(set(record.races)) > 3 for record in records)


def test_a_draw_beyond_the_tokens_of_a_round_is_never_made_again() -> None:
    """Three drafts a round, of which few stand: were they keyed by their positions, the next round would draw them again."""
    places = [place for _, place, *_ in recorded("dsd", {"draft_length": 3}, 1)[0].numbers]
    positions = Counter(place.position for place in places)
    assert max(positions.values()) > 1
    assert len(set(places)) == len(places)


@pytest.mark.parametrize(
    ("name", "given"),
    [*((name, {}) for name in ("dsd", "tslt-tree", "dssd", "xcosd-e")), ("dsd", BLOCK), ("tslt", BLOCK)],
    ids=str,
)
def test_a_round_that_is_cut_draws_the_same_again(name: str, given: dict[str, object]) -> None:
    """Over a link that breaks under every other verdict the ends draw nothing that they would not draw anyway."""
    options = WITHOUT_DOCUMENTS[name].options_from({"draft_length": 2, **CANDIDATES, **TREE, **given})

    def drawn(every: int) -> tuple[Numbers, list[Record]]:
        records = [Record(), Record()]
        ends = [Recording(PhiloxChance(5), record) for record in records]
        models, method, verdicts = pair(), WITHOUT_DOCUMENTS[name], count(1)
        sampling = endless(models)
        device, cloud = models.sides(10, sampling, ends[0])
        cloud.chance = ends[1]

        def lost(message: Message) -> bool:
            return isinstance(message, Verdict) and next(verdicts) % every == 0

        while device.transcript.finish is None:
            halves = method.device(device, options).run(), method.cloud(cloud, options).run()
            try:
                run_pair(*(breaking(half, lost) for half in halves))
            except CutError:
                cloud = models.cloud_side(10, sampling, ends[1], device.transcript.numbers)
        return tuple(device.transcript.numbers), records

    (whole, once), (cut, often) = drawn(10_000), drawn(2)
    assert cut == whole
    for before, after in zip(once, often, strict=True):
        assert set(after.numbers) == set(before.numbers)
    assert len(often[1].numbers) > len(once[1].numbers)


ROLES = [
    ("dsd", {}, {Role.ACCEPT: Role.DRAFT}),
    ("dsd", {}, {Role.RESAMPLE: Role.ACCEPT}),
    ("tslt-tree", TREE, {Role.RESAMPLE: Role.ACCEPT}),
    ("xcosd", {}, {Role.CANDIDATE: Role.ACCEPT}),
    ("xcosd-e", CANDIDATES, {Role.RESAMPLE: Role.ACCEPT}),
    ("xcosd-e", CANDIDATES, {Role.CANDIDATE: Role.RESAMPLE}),
    ("u-hlm", {}, {Role.UNCERTAINTY: Role.DRAFT}),
    ("dragon", {}, {Role.TARGET: Role.DRAFT}),
    ("dragon", {}, {Role.ACCEPT: Role.DRAFT}),
]


@pytest.mark.parametrize(("name", "given", "roles"), ROLES, ids=str)
def test_a_role_that_gets_anothers_stream_is_written_down(name: str, given: dict[str, object], roles: dict[Role, Role]) -> None:
    assert any("number" in what for seed in range(4) for what in shared(recorded(name, given, seed, roles)))


# The distribution of thousands of answers.


def alike(key: int) -> tuple[Chance, Chance]:
    """Production's: both ends have the key."""
    chance = PhiloxChance(key)
    return chance, chance


def faulty(device: Mapping[Role, Role] | None = None, cloud: Mapping[Role, Role] | None = None, races: int = 1) -> Ends:
    """Roles whose streams are those of others, and races that several positions share."""
    return lambda key: (Confused(PhiloxChance(key), device, races), Confused(PhiloxChance(key), cloud, races))


LAWS = {
    name: {**STREAMS, **RACES}[name]
    for name in ("dsd", "dsd-block", "tslt-tree", "dssd", "xcosd", "xcosd-e", "dragon", "concord")
}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(*distribution, id=name, marks=[] if name in ("dsd", "dssd") else [pytest.mark.slow])
        for name, distribution in LAWS.items()
    ],
)
def test_the_distribution_of_three_tokens(name: str, given: dict[str, object]) -> None:
    writer = Writer(name, given)
    assert p_value(writer.sampled(ANSWERS, alike), writer.distribution) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), {**STREAMS, **RACES}.values(), ids={**STREAMS, **RACES})
def test_the_distribution_of_more_answers(name: str, given: dict[str, object]) -> None:
    """Of every exact method, and of a larger pair too: more cells, smaller faults."""
    if (name in WITHOUT_DOCUMENTS and not WITHOUT_DOCUMENTS[name].exact) or given.get("packing"):
        pytest.skip("another distribution than the target's")
    for models in (None, large_pair()) if name in WITHOUT_DOCUMENTS else (None,):
        writer = Writer(name, given, models=models)
        assert p_value(writer.sampled(8_000, alike), writer.distribution) > 1e-3


FAULTS = {
    "accepted by the draft's number": ("dsd", {}, faulty(cloud={Role.ACCEPT: Role.DRAFT}), pair),
    "a block by the draft's number": ("dsd", BLOCK, faulty(cloud={Role.ACCEPT: Role.DRAFT}), pair),
    "a block's residual by the test's": ("dsd", BLOCK, faulty(cloud={Role.RESAMPLE: Role.ACCEPT}), pair),
    "resampled by the test's": ("dsd", {}, faulty(cloud={Role.RESAMPLE: Role.ACCEPT}), pair),
    "resampled by the draft's": ("dsd", {}, faulty(cloud={Role.RESAMPLE: Role.DRAFT}), large_pair),
    "resampled on the device by the test's": ("dssd", {}, faulty(device={Role.RESAMPLE: Role.ACCEPT}), pair),
    "spare by the residual's": ("xcosd", {}, faulty(cloud={Role.CANDIDATE: Role.RESAMPLE}), large_pair),
    "candidates by the draft's test's": ("xcosd-e", CANDIDATES, faulty(cloud={Role.CANDIDATE: Role.ACCEPT}), pair),
    "candidates by their tests'": ("xcosd-e", CANDIDATES, faulty(cloud={Role.CANDIDATE: Role.RESAMPLE}), large_pair),
    "a tree's children tested by the draft's": ("tslt-tree", TREE, faulty(cloud={Role.ACCEPT: Role.DRAFT}), pair),
    "a tree's residual by the test's": ("tslt-tree", TREE, faulty(cloud={Role.RESAMPLE: Role.ACCEPT}), pair),
    "the toss by the device's draft's": ("dragon", {}, faulty(device={Role.ACCEPT: Role.DRAFT}), None),
    "the toss by the cloud's draft's": ("dragon", {}, faulty(device={Role.ACCEPT: Role.TARGET}), None),
    "two positions by one race": ("cloud", {}, faulty(races=2), pair),
    "two positions by one race, mixed": ("concord", PATIENT, faulty(races=2), None),
}


@pytest.mark.core(1)
@pytest.mark.parametrize(
    ("name", "given", "ends", "models"),
    [
        pytest.param(*fault, id=name, marks=[pytest.mark.slow] if fault[0] == "xcosd-e" else [])
        for name, fault in FAULTS.items()
    ],
)
def test_a_stream_that_is_used_twice_is_seen(
    name: str, given: dict[str, object], ends: Ends, models: Callable[[], Pair] | None
) -> None:
    """Each draw is right for itself; together they are not."""
    writer = Writer(name, given, models=None if models is None else models())
    assert p_value(writer.sampled(2 * FAULTY if name == "xcosd-e" else FAULTY, ends), writer.distribution) < 1e-8


@pytest.mark.slow
def test_candidates_that_are_tested_by_the_drafts_tests_number_are_seen() -> None:
    """The faintest of them: it leaves a trace in the first test alone, so it takes the most answers and the fewest tokens."""
    tiny = Pair([b"", b"b", b"a", b"x"], [b"ab", b"a", b"b", b""], seed=3, sharpness=0.7)
    right, wrong = alike, faulty(device={Role.RESAMPLE: Role.ACCEPT})
    writer = Writer("xcosd-e", CANDIDATES, models=tiny)
    assert p_value(writer.sampled(ANSWERS, wrong), writer.distribution) < 1e-6
    assert p_value(writer.sampled(2 * FAULTY, right), writer.distribution) > 1e-3
