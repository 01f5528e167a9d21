"""What is kept: read back as it was written, under its settings, and a file that is not ours is left alone."""

from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon_lab.store import Store

VALUE = (" Zürich\n\u2028🙂", 2.5, 2**63)
KIND = tuple[str, float, int]


def kept(path: Path, *values: object, key: str = "gsm8k 3 dssd", settings: tuple[str, ...] = ()) -> Path:
    with Store(path, settings).adding() as store:
        for value in values:
            store.keep(key, value)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = kept(kept(tmp_path / "results", VALUE), [1, 2], key="of another run")
    found = Store(path)
    assert (len(found), found.was_torn) == (2, False)
    assert found.get("gsm8k 3 dssd", KIND) == VALUE
    assert found.get("of another run", list[int]) == [1, 2]
    assert "of no run" not in found
    with pytest.raises(KeyError):
        found.get("of no run", int)
    with pytest.raises(UsageError, match="what is kept of 'gsm8k 3 dssd' is damaged"):
        found.get("gsm8k 3 dssd", int)
    assert len(Store(tmp_path / "none")) == 0
    assert not (tmp_path / "none").exists()


def test_it_is_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "results"
    with Store(path).adding() as store:
        store.keep("a", 1)
        assert Store(path).get("a", int) == 1
        store.keep("b", 2)
        assert path.read_text() == '{"key":"a","value":1}\n{"key":"b","value":2}\n'


def test_without_a_file_it_is_kept_in_memory() -> None:
    store = Store(None)
    with store.adding():
        store.keep("a", VALUE)
    assert store.get("a", KIND) == VALUE


def test_other_settings_find_nothing_and_leave_what_is_there(tmp_path: Path) -> None:
    path = kept(kept(tmp_path / "results", 1, settings=("large", "seed 1")), 2, settings=("large", "seed 2"))
    assert [Store(path, ("large", f"seed {seed}")).get("gsm8k 3 dssd", int) for seed in (1, 2)] == [1, 2]
    assert "gsm8k 3 dssd" not in Store(path, ("small", "seed 1"))
    assert "gsm8k 3 dssd" not in Store(path)


def test_of_two_lines_with_one_key_the_last_counts(tmp_path: Path) -> None:
    assert Store(kept(tmp_path / "results", 1, 2)).get("gsm8k 3 dssd", int) == 2


def test_every_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    path = kept(tmp_path / "results", VALUE)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole + whole[:size])
        found = Store(path)
        assert found.was_torn
        assert len(found) == 1
        assert path.read_bytes() == whole


@pytest.mark.parametrize("text", ["# a list of things to buy", '{"name": 1}', "x", "a letter"])
def test_a_file_that_is_none_of_ours_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text(text)
    with pytest.raises(UsageError, match="is none of this benchmark: give another --results"):
        Store(path)
    assert path.read_text() == text


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b"\xff\n", b'{"key":"a"\n', b'{"key":"a"}\n', b"[]\n"])
def test_a_damaged_line(line: bytes, tmp_path: Path) -> None:
    path = kept(tmp_path / "results", VALUE)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(UsageError, match=r"line 2 of .* is damaged .*: remove it, or give another --results"):
        Store(path)


def test_a_path_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be used for the results .*: give another --results"):
        Store(tmp_path)
    with pytest.raises(UsageError, match="cannot be used for the results"), Store(tmp_path / "none" / "results").adding():
        pass


def test_one_run_at_a_time_writes_into_a_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "results"
    with Store(path).adding() as store:
        store.keep("a", 1)
        with pytest.raises(UsageError, match=r"another run is writing into .*: wait until it is done"), Store(path).adding():
            pass
    assert len(Store(kept(path, 2))) == 2


def test_nothing_is_added_outside_of_adding(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    with pytest.raises(ValueError, match="within `adding`"):
        store.keep("a", 1)
    assert "a" not in store
