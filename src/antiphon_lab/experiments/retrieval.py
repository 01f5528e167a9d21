"""`antiphon-lab bench retrieval`: a library on Natural Questions. Recall, time, whether weights of two ends are comparable.

Recall also in eight languages, on questions that ask in other forms of words than their passages have.

The last is measured as METHODS 4 uses it: passages are dealt to a device and a cloud, each keeps its two best, and the end that
holds the passage with the answer should have the larger weight, however small its library is.
"""

import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from antiphon.errors import UsageError
from antiphon.retrieval import ingest
from antiphon.retrieval.documents import DocumentError
from antiphon.retrieval.index import Index, Source
from antiphon.retrieval.opening import open_library
from antiphon.retrieval.options import PassageOptions, Ranking, SearchOptions
from antiphon.retrieval.passages import Passage, cut
from antiphon.retrieval.readers import read
from antiphon_lab.workloads.languages import Spoken, table_of_languages, understood

DEPTHS = (1, 4, 10)
KEPT = 2
"""Passages that an end keeps (CONCORD V)."""
_SEED, _MOST_DEALT, _MOST_DEALS = 1, 400, 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured. data: the folder of the data sets; questions: how many, 0 is all; large: passages of the timed library.

    device_passages: sizes of the device's share in the comparison of weights. embedder: also measure with vectors.
    """

    data: Path
    questions: int = 0
    large: int = 20_000
    device_passages: tuple[int, ...] = (5, 50, 600, 1300)
    embedder: Path | None = None

    def __post_init__(self) -> None:
        if self.questions < 0 or self.large < 1 or min(self.device_passages, default=0) < 1:
            raise UsageError("there must be at least one passage, and no negative number of questions")


@dataclass(frozen=True, slots=True)
class Searched:
    """Recall at DEPTHS of one ranking, and the time of a query. recall: empty where copies compete with the right passage."""

    ranking: Ranking
    passages: int
    questions: int
    recall: tuple[float, ...]
    median_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Weighed:
    """How often the end with the right passage has the larger weight, and the median share of its weight, by scorer."""

    scorer: str
    device_passages: int
    cloud_passages: int
    questions: int
    right: float
    median_share: float


@dataclass(frozen=True, slots=True)
class Report:
    """Everything measured. embed_s: making vectors of all passages, 0 without an embedder."""

    ingested: int
    ingest_s: float
    embed_s: float
    searched: tuple[Searched, ...]
    weighed: tuple[Weighed, ...]
    spoken: tuple[Spoken, ...]


class _Question(msgspec.Struct):
    question: str
    gold_passages: list[int]

    @property
    def gold(self) -> str:
        return str(self.gold_passages[0])


def run(plan: Plan, console: Console) -> Report:
    """Measure, and show tables. Raises UsageError."""
    questions = _questions(plan.data / "nq_questions.jsonl", plan.questions)
    with tempfile.TemporaryDirectory() as folder:
        report = _measured(plan, questions, Path(folder))
    for table in (_table_of_searches(report), table_of_languages(report.spoken), _table_of_weights(report)):
        console.print(table)
    return report


def _measured(plan: Plan, questions: list[_Question], folder: Path) -> Report:
    source, library = plan.data / "nq_passages.jsonl", str(folder / "all")
    ingested, ingest_s, embed_s = _ingest(source, library, plan.embedder)
    rankings: tuple[Ranking, ...] = ("lexical",) if plan.embedder is None else ("lexical", "dense", "hybrid")
    passages = _passages(source)
    right = {passage.key: passage.digest for passage in passages}
    searched = [_search(library, plan.embedder, ranking, questions, right) for ranking in rankings]
    _fill(folder / "large", _many(passages, plan.large))
    searched.append(replace(_search(str(folder / "large"), None, "lexical", questions, right), recall=()))
    sizes = [number for number in plan.device_passages if number < len(passages)]
    weighed = [found for number in sizes for found in _weigh(passages, number, folder, questions)]
    spoken = tuple(understood(folder / "languages"))
    return Report(ingested, ingest_s, embed_s, tuple(searched), tuple(weighed), spoken)


def _ingest(source: Path, library: str, embedder: Path | None) -> tuple[int, float, float]:
    """Passages, seconds to read and index them, and seconds to make their vectors."""
    begun = time.perf_counter()
    with open_library(library, create=True) as index:
        report = ingest.add(index, [source], PassageOptions(), lambda done, total, name: None)
        if report.failed:
            raise UsageError(f"{source} cannot be used: {report.failed[str(source.absolute())]}")
    ingested = time.perf_counter()
    if embedder is not None:
        with open_library(library, embedder=embedder) as index:
            index.embed(lambda done, total: None)
    return report.passages, ingested - begun, time.perf_counter() - ingested if embedder else 0.0


def _search(
    library: str, embedder: Path | None, ranking: Ranking, questions: list[_Question], right: Mapping[str, bytes]
) -> Searched:
    """right: the passage that answers, by its id; a copy of it is as right."""
    places, times = [], []
    with open_library(library, embedder=embedder, options=SearchOptions(ranking)) as index:
        index.search(questions[0].question, 1)  # reads the vectors
        for question in questions:
            begun = time.perf_counter()
            found = index.search(question.question, max(DEPTHS))
            times.append(1000 * (time.perf_counter() - begun))
            gold = right.get(question.gold)
            places.append(next((place for place, item in enumerate(found) if item.passage.digest == gold), max(DEPTHS)))
        passages = index.stats().passages
    recall = tuple(sum(place < depth for place in places) / len(places) for depth in DEPTHS)
    slow = sorted(times)[int(0.99 * len(times))]
    return Searched(ranking, passages, len(questions), recall, statistics.median(times), slow)


class _Deal:
    """Passages dealt to a device and a cloud, at random but the same each time."""

    def __init__(self, passages: list[Passage], device: int, seed: int, folder: Path) -> None:
        self.folder = folder / f"dealt-{device}-{seed}"
        self.folder.mkdir()
        shuffled = random.Random(seed).sample(passages, len(passages))
        self._own = {passage.key for passage in shuffled[:device]}
        _fill(self.folder / "device", shuffled[:device])
        _fill(self.folder / "cloud", shuffled[device:])

    def shares(self, questions: list[_Question], options: SearchOptions) -> list[float]:
        """The share of weight of the end with the answer, for as many of the device's questions as of the cloud's."""
        ends = [[item.question for item in questions if (item.gold in self._own) is device] for device in (True, False)]
        number = min(_MOST_DEALT, *map(len, ends))
        with (
            open_library(str(self.folder / "device"), options=options) as device,
            open_library(str(self.folder / "cloud"), options=options) as cloud,
        ):
            asked = [(text, right) for end, right in zip(ends, (True, False), strict=True) for text in end[:number]]
            return [_share(device, cloud, text, right) for text, right in asked]


def _weigh(passages: list[Passage], device: int, folder: Path, questions: list[_Question]) -> Iterator[Weighed]:
    """With plain and with scaled scores; small shares are dealt several times, for the sake of enough questions."""
    seeds = range(max(1, min(_MOST_DEALS, _MOST_DEALT // device)))
    deals = [_Deal(passages, device, seed, folder) for seed in seeds]
    for name, options in (("bm25", SearchOptions(scaled=False)), ("bm25 scaled", SearchOptions())):
        if shares := [share for deal in deals for share in deal.shares(questions, options)]:
            right, share = sum(share > 0.5 for share in shares) / len(shares), statistics.median(shares)
            yield Weighed(name, device, len(passages) - device, len(shares), right, share)


def _share(device: Index, cloud: Index, question: str, device_is_right: bool) -> float:
    """Of the weight of both ends, the right one's: the pi of METHODS 4."""
    weights = [_weight(index, question) for index in (device, cloud)]
    if not any(map(math.isfinite, weights)):
        return 0.5
    right = weights[0 if device_is_right else 1]
    return math.exp(right - float(np.logaddexp(weights[0], weights[1])))


def _weight(index: Index, question: str) -> float:
    return index.scorer.log_weight([found.score for found in index.search(question, KEPT)])


def _many(passages: list[Passage], number: int) -> list[Passage]:
    """So many passages: the real ones, then the same with their words shuffled."""
    chance = random.Random(_SEED)
    shuffled = (passages[at % len(passages)] for at in range(len(passages), number))
    return passages[:number] + [replace(item, text=_shuffled(item.text, chance), key="") for item in shuffled]


def _shuffled(text: str, chance: random.Random) -> str:
    words = text.split()
    return " ".join(chance.sample(words, len(words)))


def _fill(library: Path, passages: Sequence[Passage]) -> None:
    with open_library(str(library), create=True) as index:
        index.put(Source("nq", 0, 0, "", PassageOptions()), passages)


def _passages(path: Path) -> list[Passage]:
    try:
        return [passage for document in read(path) for passage in cut(document, "nq", PassageOptions())]
    except DocumentError as error:
        raise UsageError(f"{path} cannot be used: {error}") from error


def _questions(path: Path, number: int) -> list[_Question]:
    try:
        lines = path.read_bytes().splitlines()
        found = [msgspec.json.decode(line, type=_Question) for line in lines]
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): --data names the folder of the data sets") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} has a row that is no question ({error}): get the file again") from error
    return found[: number or None]


def _table_of_searches(report: Report) -> Table:
    title = f"{report.ingested:,} passages indexed in {report.ingest_s:.2f} s"
    title += f", their vectors made in {report.embed_s:.0f} s" if report.embed_s else ""
    names = "ranking", "passages", "questions", *(f"recall@{depth}" for depth in DEPTHS), "median ms", "p99 ms"
    table = Table(*names, title=title, box=box.SIMPLE)
    for row in report.searched:
        recalls = [f"{value:.3f}" for value in row.recall] or ["-"] * len(DEPTHS)
        figures = f"{row.passages:,}", f"{row.questions:,}", *recalls, f"{row.median_ms:.2f}", f"{row.p99_ms:.2f}"
        table.add_row(row.ranking, *figures)
    return table


def _table_of_weights(report: Report) -> Table:
    names = "scorer", "device passages", "cloud passages", "questions", "right end heavier", "its median share"
    table = Table(*names, title="Weights of two ends", box=box.SIMPLE)
    for row in report.weighed:
        sizes = f"{row.device_passages:,}", f"{row.cloud_passages:,}", f"{row.questions:,}"
        table.add_row(row.scorer, *sizes, f"{row.right:.3f}", f"{row.median_share:.2f}")
    return table
