"""`antiphon-lab bench quality` on toys: order, going on after a stop, figures, and what a person can mend."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from antiphon.config import ModelConfig, SamplingParams
from antiphon.demo.cloud_process import cloud_process
from antiphon.device.generate import Device
from antiphon.errors import LinkError, UsageError
from antiphon_lab.cli import main
from antiphon_lab.experiments import quality
from antiphon_lab.experiments.quality import Plan, Written, planned, run, spread, table
from antiphon_lab.store import Store
from lab.tiny_data import write_data

QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def toy_url() -> Iterator[str]:
    with cloud_process(ModelConfig("toy-cloud")) as url:
        yield url


@pytest.fixture
def started(toy_url: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every start of a cloud, all of them the same one."""
    starts: list[str] = []

    @contextmanager
    def shared(config: ModelConfig) -> Iterator[str]:
        starts.append(config.name)
        yield toy_url

    monkeypatch.setattr(quality, "cloud_process", shared)
    return starts


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """Method and seed of every answer that a device was asked for."""
    asked: list[tuple[str, int | None]] = []
    original = Device.generate

    async def counted(device: Device, request: object, connection: object) -> object:
        asked.append((request.method, request.seed))
        return await original(device, request, connection)

    monkeypatch.setattr(Device, "generate", counted)
    return asked


def plan(folder: Path, **changes: object) -> Plan:
    fields: dict = {
        "data": write_data(folder),
        "methods": ("cloud", "dssd", "device"),
        "tasks": ("mmlu", "nq"),
        "rows": 2,
        "results": folder / "results.jsonl",
        "cloud_model": ModelConfig("toy-cloud"),
        "device_model": ModelConfig("toy-device"),
        "sampling": SamplingParams(temperature=1.0),
        "draft_length": 2,
        "seed": 1,
    }
    return Plan(**{**fields, **changes})


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def settled(rows: object) -> list[dict]:
    """Without what hangs on the clock: how much more `cloud` streams before it hears of a stop string."""
    assert isinstance(rows, list)
    return [{key: row[key] for key in row if (row["method"], key) != ("cloud", "downlink_bits_per_token")} for row in rows]


def settled_lines(path: Path) -> list[dict]:
    return settled([{"key": line["key"], "method": line["key"].split()[-2], **line["value"]} for line in lines(path)])


def test_rows_are_spread_and_more_rows_keep_the_earlier_ones() -> None:
    for size in (1, 2, 3, 60, 400, 456, 1770):
        assert sorted(spread(size, size)) == list(range(size))
    assert spread(456, 48)[:24] == spread(456, 24)
    some = sorted(spread(456, 24))
    gaps = [after - before for before, after in pairwise(some)]
    assert max(gaps) <= 3 * 456 / 24


def test_the_order_is_row_by_row_with_the_methods_inside(tmp_path: Path) -> None:
    asks = planned(plan(tmp_path, methods=("dssd", "dssd")))
    places = list(dict.fromkeys(ask.row for ask in asks))
    wanted = [(task, row, method) for row in places for task in ("mmlu", "nq") for method in ("cloud", "dssd")]
    assert [(ask.task.name, ask.row, ask.method) for ask in asks] == wanted
    assert len({ask.key for ask in asks}) == len(asks)
    seeds = {
        (ask.task.name, ask.row): {other.seed(1) for other in asks if (other.task, other.row) == (ask.task, ask.row)}
        for ask in asks
    }
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds)
    assert asks[0].seed(1) != asks[0].seed(2)


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), LinkError("the cloud went away")])
def test_a_run_that_was_stopped_goes_on(
    stop: BaseException,
    tmp_path: Path,
    started: list[str],
    written: list[tuple[str, int | None]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = run(plan(tmp_path, results=tmp_path / "whole.jsonl"), QUIET)
    asked = written.copy()
    written.clear()
    counted = Device.generate

    async def stopping(device: Device, request: object, connection: object) -> object:
        if len(written) == 5:
            raise stop
        return await counted(device, request, connection)

    with monkeypatch.context() as patch:
        patch.setattr(Device, "generate", stopping)
        with pytest.raises(type(stop)):
            run(plan(tmp_path), QUIET)
    assert "5 of 12 answers are kept in" in " ".join(capsys.readouterr().err.split())
    results = tmp_path / "results.jsonl"
    assert len(lines(results)) == 5
    with results.open("ab") as file:
        file.write(b'{"key":"0.1')
    assert settled(run(plan(tmp_path), QUIET).as_json()["methods"]) == settled(whole.as_json()["methods"])
    assert "it is written again" in " ".join(capsys.readouterr().err.split())
    assert written == asked
    assert settled_lines(results) == settled_lines(tmp_path / "whole.jsonl")


def test_a_finished_run_starts_nothing_and_grows_by_what_is_new(
    tmp_path: Path, started: list[str], written: list[tuple[str, int | None]]
) -> None:
    first = run(plan(tmp_path), QUIET)
    assert (len(started), len(written)) == (1, 12)
    assert run(plan(tmp_path), QUIET) == first
    assert (len(started), len(written)) == (1, 12)
    run(plan(tmp_path, rows=3), QUIET)
    assert len(written) == 18
    run(plan(tmp_path, rows=3, methods=("dsd",)), QUIET)
    assert len(written) == 24
    assert len({line["key"] for line in lines(tmp_path / "results.jsonl")}) == 24
    run(plan(tmp_path, seed=2), QUIET)  # other settings go beside them
    assert len(written) == 36
    assert run(plan(tmp_path), QUIET) == first
    assert len(written) == 36


@pytest.mark.medium
def test_at_temperature_0_exact_methods_score_as_cloud_does(tmp_path: Path, started: list[str]) -> None:
    tasks = ("mmlu", "wmt22", "news", "nq")
    greedy = SamplingParams(temperature=0)
    report = run(plan(tmp_path, methods=("dsd", "dssd", "device"), tasks=tasks, sampling=greedy), QUIET)
    assert [(row.method, row.exact) for row in report.rows] == [
        ("cloud", True),
        ("dsd", True),
        ("dssd", True),
        ("device", False),
    ]
    cloud, *others, device = report.rows
    assert all(score.interval is None for score in cloud.scores)
    for row in others:
        assert [score.score for score in row.scores] == [score.score for score in cloud.scores]
        assert {(score.difference, score.interval) for score in row.scores} == {(0.0, None)}
        assert row.uplink_bits_per_token > 0
    assert (device.uplink_bits_per_token, device.downlink_bits_per_token) == (0, 0)
    assert [score.metric for score in device.scores] == ["accuracy", "BLEU", "ROUGE-2", "F1", "exact"]
    assert len({line["value"]["text"] for line in lines(tmp_path / "results.jsonl") if " news " in line["key"]}) > 1


def test_the_table_and_the_figures_come_from_the_answers(tmp_path: Path) -> None:
    asked = plan(tmp_path, tasks=("mmlu",), methods=("device",))
    right = {("cloud", 0): 1.0, ("cloud", 1): 0.0, ("device", 0): 0.0, ("device", 1): 0.0}
    settings = [f"{name} {value}" for name, value in asked.settings().items()]
    with Store(tmp_path / "results.jsonl", settings).adding() as store:
        for place, ask in enumerate(planned(asked)):
            up, down = (0.0, 0.0) if ask.method == "device" else (100.0 * (place // 2), 2e6)
            statistics, tokens = (right[ask.method, place // 2], 1.0), 1 + 2 * (place // 2)
            found = Written(
                text="x", statistics=statistics, tokens=tokens, uplink_bits_per_token=up, downlink_bits_per_token=down
            )
            store.keep(ask.key, found)
    report = run(asked, QUIET)
    cloud, device = report.rows
    assert (cloud.scores[0].score, device.scores[0].score, device.scores[0].difference) == (50, 0, -50)
    assert device.scores[0].interval is None
    assert (cloud.tokens, cloud.uplink_bits_per_token) == (4, 75)
    console = Console(width=80, record=True, quiet=True)
    with console.capture() as shown:
        console.quiet = False
        console.print(table(report))
    text = shown.get()
    assert "2.00M" in text
    assert text.count("n too small") == 1
    assert json.loads(json.dumps(report.as_json()))["methods"][1]["scores"][0]["interval"] is None


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "quality", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


TOYS = ("--cloud-model", "toy-cloud", "--model", "toy-device")


@pytest.mark.medium
def test_the_command_with_a_cloud_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, results = str(write_data(tmp_path)), str(tmp_path / "results.jsonl")
    wanted = ["--data", folder, "--methods", "cloud,dssd", "--tasks", "mmlu,nq", "--rows", "1", "--results", results]
    assert command(*wanted, *TOYS, "--json", monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    figures = json.loads(out)
    assert (figures["cloud_model"], figures["rows"], figures["temperature"]) == ("toy-cloud", 1, 1.0)
    assert [row["method"] for row in figures["methods"]] == ["cloud", "dssd"]
    assert "accuracy" in err
    assert command(*wanted, *TOYS, monkeypatch=monkeypatch) == 0
    assert "accuracy" in capsys.readouterr().out
    assert command(*wanted, *TOYS, "--seed", "2", monkeypatch=monkeypatch) == 0
    assert len(lines(Path(results))) == 8


@pytest.mark.medium
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--tasks", "chess"), "there is no task 'chess': use one of gsm8k, mmlu, wmt22, news, nq"),
        (("--methods", "telepathy"), "there is no method 'telepathy'"),
        (("--methods", ""), "there is no method ''"),
        (("--rows", "0"), "--rows must be at least 1, not 0"),
        (("--rows", "4"), "--rows must be at most 3, the rows that gsm8k has, not 4"),
        (("--data", "no/such/folder"), "cannot be read (No such file or directory): --data names the folder of the data sets"),
        (("--draft-length", "0"), "draft length must be a number from 1 on, or auto, not '0'"),
        (("--temperature", "-1"), "temperature must be between 0 and 100, not -1.0"),
        (("--results", "."), "cannot be used for the results (Is a directory): give another --results"),
        (("--model", "no.gguf"), "there is no file no.gguf"),
        (("--cloud-model", "no.gguf"), "there is no file no.gguf"),
    ],
)
def test_what_a_person_can_mend_here(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ("--data", str(write_data(tmp_path)), "--results", str(tmp_path / "results.jsonl"), "--rows", "2")
    assert command(*given, *TOYS, *arguments, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert complaint.startswith("antiphon: ")
    assert sentence in complaint


@pytest.mark.medium
def test_more_rows_than_one_of_the_files_has(tmp_path: Path) -> None:
    write_data(tmp_path)
    rows = (tmp_path / "nq_questions.jsonl").read_text().splitlines()
    asked = plan(tmp_path, rows=2)
    (tmp_path / "nq_questions.jsonl").write_text(rows[0] + "\n")
    with pytest.raises(UsageError, match="--rows must be at most 1, the rows that nq has, not 2"):
        planned(asked)
