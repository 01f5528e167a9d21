"""Kept answers: read back as they were written, and refused where they are not this run's."""

from dataclasses import replace
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon_lab.answer_records import Expected, Record, Settings, appending, read_records

SETTINGS = Settings(version="1", cloud_model="large", model="small", temperature=1.0, draft_length=2, seed=1)
RECORD = Record(
    settings=SETTINGS,
    task="gsm8k",
    row=3,
    method="dssd",
    seed=2**64 - 1,
    asked="abc",
    text=" Zürich\n\u2028🙂",
    statistics=(1.0, 1.0),
    tokens=3,
    uplink_bits_per_token=10.5,
    downlink_bits_per_token=0.0,
)
EXPECTED = {("gsm8k", 3): Expected("abc", 2)}


def kept(path: Path, *records: Record) -> Path:
    with appending(path) as file:
        for record in records:
            file.add(record)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    other = replace(RECORD, task="of another run", asked="x", method="cloud")
    path = kept(kept(tmp_path / "results", RECORD), other)
    assert read_records(path, SETTINGS, EXPECTED) == ({RECORD.key: RECORD, other.key: other}, False)
    assert read_records(tmp_path / "none", SETTINGS, EXPECTED) == ({}, False)


def test_every_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    path = kept(tmp_path / "results", RECORD)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole + whole[:size])
        found, torn = read_records(path, SETTINGS, EXPECTED)
        assert torn
        assert list(found) == [RECORD.key]
        assert path.read_bytes() == whole


@pytest.mark.parametrize("text", ["# a list of things to buy", '{"name": 1}', "x"])
def test_a_file_that_is_none_of_ours_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no answer of this benchmark: give another --results"):
        read_records(path, SETTINGS, EXPECTED)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"temperature": 0.5}, "line 1 of .* was written with temperature 0.5, this run has 1.0: use the same settings"),
        ({"cloud_model": "x"}, "with cloud model x, this run has large"),
        ({"draft_length": 4}, "with draft length 4, this run has 2"),
        ({"seed": 4}, "with seed 4, this run has 1"),
        ({"version": "0"}, "with version 0, this run has 1"),
    ],
)
def test_other_settings(change: dict, sentence: str, tmp_path: Path) -> None:
    path = kept(tmp_path / "results", replace(RECORD, settings=replace(SETTINGS, **change)))
    with pytest.raises(UsageError, match=sentence):
        read_records(path, SETTINGS, EXPECTED)


@pytest.mark.parametrize("change", [{"asked": "xyz"}, {"statistics": (1.0,)}])
def test_another_question(change: dict, tmp_path: Path) -> None:
    path = kept(tmp_path / "results", replace(RECORD, **change))
    with pytest.raises(UsageError, match=r"line 1 of .* answers another question of gsm8k"):
        read_records(path, SETTINGS, EXPECTED)


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b"\xff\n", b'{"settings":{"version":"1"\n', b"[]\n"])
def test_a_damaged_line(line: bytes, tmp_path: Path) -> None:
    path = kept(tmp_path / "results", RECORD)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(UsageError, match=r"line 2 of .* is damaged .*: remove the line, or give another --results"):
        read_records(path, SETTINGS, EXPECTED)


def test_an_answer_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 2 of .* repeats an answer"):
        read_records(kept(tmp_path / "results", RECORD, RECORD), SETTINGS, EXPECTED)


def test_a_path_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be used for the results .*: give another --results"):
        read_records(tmp_path, SETTINGS, EXPECTED)
    with pytest.raises(UsageError, match="cannot be used for the results"), appending(tmp_path / "none" / "results"):
        pass
