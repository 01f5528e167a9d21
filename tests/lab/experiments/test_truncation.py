"""`antiphon-lab bench truncation` on toys: figures against sums done by hand, the picture, and what a person can mend."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console

from antiphon.config import ModelConfig, SamplingParams
from antiphon.core.chance import PhiloxChance, Place, Role
from antiphon.models.base import spell
from antiphon.models.toy import named_toy
from antiphon.vocabulary import common_vocabulary
from antiphon_lab.cli import main
from antiphon_lab.experiments.truncated import wire_forms
from antiphon_lab.experiments.truncation import Plan, Report, Row, run, table
from antiphon_lab.experiments.truncation_picture import Figures, panels
from antiphon_lab.report.picture import picture, require_svg
from antiphon_lab.workloads.texts import Pair, distributions, read_prompts

QUIET = Console(quiet=True)
LINES = [f"number {index} " + "the rain on the inland hills of another age " * 10 for index in range(7)]
CLOUD, DEVICE = named_toy("toy-cloud"), named_toy("toy-device")
COMMON = common_vocabulary(DEVICE.vocabulary, CLOUD.vocabulary)


PAIR = Pair(CLOUD, DEVICE, COMMON, SamplingParams(temperature=1.0))


def write_text(folder: Path) -> Path:
    path = folder / "text"
    path.write_text("\n".join(["", " = Heading = ", *LINES, "short"]))
    return path


def plan(folder: Path, **changes: object) -> Plan:
    fields: dict = {
        "data": write_text(folder),
        "cloud_model": ModelConfig("toy-cloud"),
        "device_model": ModelConfig("toy-device"),
        "sampling": SamplingParams(temperature=1.0),
        "prompts": 3,
        "positions": 3,
        "keep": ("k=3", "k=30", "k=100", "p=0.5", "p=0.95"),
        "children": 2,
        "draft_precision": 8,
    }
    return Plan(**{**fields, **changes})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run(plan(tmp_path_factory.mktemp("measured")), QUIET)


def softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits.astype(np.float64) - logits.max())
    return shifted / shifted.sum()


def one_of_two(target: np.ndarray, distribution: np.ndarray, *, replacement: bool) -> float:
    """The probability that one of two drafts stands, by following every first draft, as the verifier does."""
    total = 0.0
    left_over = np.maximum(target - distribution, 0.0)
    left_over /= left_over.sum()
    for first in np.flatnonzero(distribution):
        stands = min(1.0, target[first] / distribution[first])
        second = distribution.copy()
        if not replacement:
            second[first] = 0.0
            second /= second.sum()
        total += distribution[first] * (stands + (1.0 - stands) * np.minimum(left_over, second).sum())
    return float(total)


def test_one_position_by_hand(tmp_path: Path) -> None:
    report = run(plan(tmp_path, prompts=1, positions=1, keep=("k=3", "p=0.6"), draft_precision=32), QUIET)
    prompt = LINES[0][:201].rpartition(" ")[0]
    target = softmax(CLOUD.logits(CLOUD.tokenize(prompt)))[COMMON.cloud_ids]
    distribution = np.zeros(len(target))
    distribution[: COMMON.size] = softmax(DEVICE.logits(DEVICE.tokenize(prompt))[COMMON.device_ids])
    ranked = np.argsort(-distribution)
    fewest = next(count for count in range(1, 300) if distribution[ranked[:count]].sum() >= 0.6)
    assert report.full.single.mean == pytest.approx(np.minimum(target, distribution).sum())
    for row, count in zip(report.rows, (3, fewest), strict=True):
        kept = ranked[:count]
        cut = np.zeros(len(distribution))
        cut[kept] = distribution[kept] / distribution[kept].sum()
        assert (row.kept.mean, row.sent.mean) == (count, count)
        assert row.mass.mean == pytest.approx(distribution[kept].sum())
        found, single = row.acceptance, np.minimum(target, cut).sum()
        assert found.single.mean == pytest.approx(single, abs=1e-6)
        assert found.with_replacement.mean == pytest.approx(one_of_two(target, cut, replacement=True), abs=1e-6)
        assert found.without_replacement is not None
        assert found.without_replacement.mean == pytest.approx(one_of_two(target, cut, replacement=False), abs=1e-6)
        assert row.share_of_full.mean == pytest.approx(single / report.full.single.mean, abs=1e-6)
        cost = abs(single - report.full.single.mean) - (1.0 - distribution[kept].sum())
        assert row.largest_excess == pytest.approx(cost, abs=1e-6)
        assert check_wires(row, np.sort(kept))


def check_wires(row: Row, kept: np.ndarray) -> bool:
    """Delta: 9 bits of count, a byte or two a gap, 4 bytes a value. Plain: 9 bits of count and of each token, 2 a value."""
    gaps = np.diff(kept, prepend=-1) - 1
    wanted = {
        "delta": (32, 2 + len(kept) + int((gaps > 127).sum()) + 4 * len(kept)),
        "plain": (16, -(-9 * (1 + len(kept)) // 8) + 2 * len(kept)),
    }
    for wire in row.wires:
        size = wanted[wire.form][1]
        assert (wire.bits, wire.bytes_per_distribution.mean, wire.entries.mean) == (wanted[wire.form][0], size, len(kept))
        assert wire.bytes_per_entry.mean == pytest.approx(size / len(kept))
        assert wire.saved == pytest.approx(1 - size / (2 * COMMON.size))
    return [wire.form for wire in row.wires] == ["delta", "plain"]


def test_more_tokens_keep_more(tmp_path: Path) -> None:
    report = run(plan(tmp_path, keep=("k=1", "k=3", "k=10", "k=30", "k=100", "k=200", "k=265"), draft_precision=32), QUIET)
    for less, more in pairwise(report.rows):
        assert less.mass.mean < more.mass.mean
        for name in ("single", "with_replacement", "without_replacement"):
            assert getattr(less.acceptance, name).mean <= getattr(more.acceptance, name).mean + 1e-6
    assert report.positions == 9
    assert report.bound_held


@pytest.mark.parametrize("precision", [8, 16, 32])
def test_nothing_cut_is_the_full_distribution(precision: int, tmp_path: Path) -> None:
    report = run(plan(tmp_path, keep=("off", "k=265", "p=1"), draft_precision=precision), QUIET)
    error = {8: 0.011, 16: 1e-4, 32: 1e-6}[precision]
    for row in report.rows:
        assert row.kept.mean == report.common_tokens == COMMON.size
        assert row.mass.mean == pytest.approx(1.0)
        for name in ("single", "with_replacement", "without_replacement"):
            assert getattr(row.acceptance, name).mean == pytest.approx(getattr(report.full, name).mean, abs=error)
        assert row.share_of_full.mean == pytest.approx(1.0, abs=2.5 * error)
    assert report.bound_held


def test_the_text_goes_on_with_tokens_of_the_target() -> None:
    """Also with tokens that the device must spell."""
    prompt, seed = "the rain in", 4
    said, outside = [], 0
    for position, (target, distribution) in enumerate(distributions(PAIR, prompt, 30, seed)):
        read = [*CLOUD.tokenize(prompt), *COMMON.cloud_ids[said].tolist()]
        spelled = DEVICE.tokenize(prompt)
        for number in said:
            known = number < COMMON.size
            spelled += [int(COMMON.device_ids[number])] if known else spell(DEVICE, COMMON.pieces[number])
        assert target == pytest.approx(softmax(CLOUD.logits(read))[COMMON.cloud_ids])
        assert distribution == pytest.approx(softmax(DEVICE.logits(spelled)[COMMON.device_ids]))
        said.append(PhiloxChance(seed).at(Place(position), Role.TARGET).categorical(target))
        outside += said[-1] >= COMMON.size
    assert (len(said), outside) == (30, 2)


def test_an_end_ends_the_text() -> None:
    certain = SamplingParams(temperature=1.0, logit_bias=((CLOUD.vocabulary.end, 1000.0),))
    assert len(list(distributions(replace(PAIR, sampling=certain), "the rain", 5, 0))) == 1
    assert len(list(distributions(PAIR, "the rain", 1, 0))) == 1


def test_prompts_are_spread_over_the_file(tmp_path: Path) -> None:
    path = write_text(tmp_path)
    assert [prompt.split()[1] for prompt in read_prompts(path, 3)] == ["0", "2", "4"]
    assert [prompt.split()[1] for prompt in read_prompts(path, 7)] == list("0123456")
    for prompt in read_prompts(path, 7):
        assert 180 < len(prompt) <= 200
        assert prompt.split()[-1] in LINES[0].split()
    path.write_text("x" * 401)
    assert read_prompts(path, 1) == ["x" * 200]


@pytest.mark.medium
def test_intervals(tmp_path: Path) -> None:
    """Over twelve texts; of fewer none."""
    many = tmp_path / "many"
    many.write_text("\n".join(f"{place} {line}" for place, line in enumerate(2 * LINES)))
    for row in run(plan(tmp_path, data=many, prompts=12), QUIET).rows:
        assert row.acceptance.single.interval is not None
        low, high = row.acceptance.single.interval
        assert low <= row.acceptance.single.mean <= high
        assert low < high
    few = run(plan(tmp_path, prompts=7), QUIET)
    assert few.rows[0].mass.interval is None
    assert "no intervals: n too small" in shown(few)


@pytest.mark.medium
def test_greedy_distributions_are_one_token(tmp_path: Path) -> None:
    report = run(plan(tmp_path, sampling=SamplingParams(temperature=0.0), keep=("k=3",)), QUIET)
    (row,) = report.rows
    assert (row.kept.mean, row.mass.mean) == (1, 1)
    assert row.acceptance.single.mean == report.full.single.mean
    assert drawn(report).startswith("<svg")


def shown(report: Report, width: int = 80) -> str:
    console = Console(width=width)
    with console.capture() as text:
        console.print(table(report))
    return text.get()


def test_the_table_fits_a_terminal(measured: Report) -> None:
    text = shown(measured)
    assert "…" not in text
    assert "toy-device drafting for toy-cloud, temperature 1" in text
    lines = [line.split() for line in text.splitlines()]
    assert [line[0] for line in lines if line and line[0] in ("k=3", "p=0.95", "full")] == ["k=3", "p=0.95", "full"]
    assert "acceptance lost <= mass cut + rounding: everywhere" in text
    assert "NOT everywhere" in shown(replace(measured, largest_excess=1e-8))


def test_a_cell_that_takes_too_long_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon_lab.experiments.truncated.STEPS", 50)
    report = run(plan(tmp_path, children=3, keep=("k=3", "k=100")), QUIET)
    few, many = report.rows
    assert few.acceptance.without_replacement is not None
    assert many.acceptance.without_replacement is report.full.without_replacement is None
    assert "3 drawn" in shown(report)
    assert drawn(report).count("<title>3, without replacement, ") == 1


def test_without_the_entropy_coder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(wire_forms(8)) == list(wire_forms(16)) == ["delta", "tight", "plain"]
    assert list(wire_forms(32)) == ["delta", "plain"]
    monkeypatch.setitem(sys.modules, "constriction", None)
    report = run(plan(tmp_path, prompts=1, positions=1), QUIET)
    assert [wire.form for wire in report.rows[0].wires] == ["delta", "plain"]
    assert "the wire form tight is left out: it needs `pip install 'antiphon[tight]'`" in capsys.readouterr().err


def drawn(report: Report) -> str:
    return picture(*panels(msgspec.convert(report.as_json(), Figures)))


def test_the_picture_tells_every_figure(measured: Report) -> None:
    told = drawn(measured)
    assert told == drawn(measured)
    for row in measured.rows:
        name = "the fewest of mass p" if row.truncation.startswith("p") else "the likeliest k"
        assert f"<title>{name}, {row.kept.mean:,.0f}: {row.mass.mean:.0%}</title>" in told
    assert "toy-device drafting for toy-cloud, temperature 1, means over 9 positions" in told
    assert "2, without replacement" in told


def test_the_picture_of_the_documents_is_that_of_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make picture` draws it."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    figures = str(docs / "results" / "truncation.json")
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "picture", figures, str(tmp_path / "again.svg")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    assert (tmp_path / "again.svg").read_text() == (docs / "truncation.svg").read_text()


def test_a_look_at_a_picture_file_changes_nothing(tmp_path: Path) -> None:
    there, absent = tmp_path / "there.svg", tmp_path / "absent.svg"
    there.write_text("mine")
    for path in (there, absent):
        require_svg(path)
    assert there.read_text() == "mine"
    assert not absent.exists()


def command(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["antiphon-lab", "bench", "truncation", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


TOYS = ("--cloud-model", "toy-cloud", "--model", "toy-device")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "picture.svg"
    wanted = ["--data", str(write_text(tmp_path)), "--prompts", "2", "--positions", "2", "--keep", "k=8, p=0.9", *TOYS]
    assert command(*wanted, "--json", "--plot", str(picture), monkeypatch=monkeypatch) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert (found["cloud_model"], found["model"], found["prompts"], found["positions"]) == ("toy-cloud", "toy-device", 2, 4)
    assert (found["common_tokens"], found["cloud_tokens"], found["dense_bytes_per_distribution"]) == (265, 272, 530)
    assert found["bound_held"] is True
    assert found["largest_excess"] <= 1e-9
    assert set(found["full"]) == {"single", "with_replacement", "without_replacement"}
    assert [row["truncation"] for row in found["truncations"]] == ["k=8", "p=0.9"]
    row = found["truncations"][0]
    assert row["kept"]["mean"] == 8
    assert row["acceptance"]["single"]["interval"] is None
    assert [(wire["form"], wire["bits"]) for wire in row["wires"]] == [("delta", 8), ("tight", 8), ("plain", 16)]
    assert "drafting for" in err
    assert picture.read_text().startswith("<svg")
    assert command(*wanted, monkeypatch=monkeypatch) == 0
    assert "drafting for" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--data", "no/such/file"), "cannot be read (No such file or directory): --data names a text file"),
        (("--data", "."), "cannot be read (Is a directory): --data names a text file"),
        (("--keep", "k=8,k=0"), "--keep must list k=NUMBER from 1 on, p=SHARE above 0 and at most 1, or off, with commas"),
        (("--keep", "p=1.5"), "'p=1.5' is none of them"),
        (("--keep", "p=0"), "'p=0' is none of them"),
        (("--keep", ""), "'' is none of them"),
        (("--prompts", "0"), "--prompts must be at least 1, not 0"),
        (("--prompts", "8"), "--prompts must be at most 7, the lines of over 400 characters, not 8"),
        (("--positions", "0"), "--positions must be 1 to 512, not 0"),
        (("--children", "0"), "--children must be 1 to 63, not 0"),
        (("--draft-precision", "12"), "draft precision must be 8, 16 or 32 bits, not 12"),
        (("--temperature", "-1"), "temperature must be between 0 and 100, not -1.0"),
        (("--plot", "picture.gif"), "--plot must end in .svg, not 'picture.gif'"),
        (("--plot", "picture.png"), "--plot must end in .svg, not 'picture.png'"),
        (("--plot", "no/such/folder/x.svg"), "cannot be written (No such file or directory): give another --plot"),
        (("--model", "no.gguf"), "there is no file no.gguf"),
    ],
)
def test_what_a_person_can_mend_here(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ("--data", str(write_text(tmp_path)), "--prompts", "2", "--positions", "1")
    assert command(*given, *TOYS, *arguments, monkeypatch=monkeypatch) == 2
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert complaint.startswith("antiphon: ")
    assert sentence in complaint
