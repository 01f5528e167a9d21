"""The tasks of `antiphon-lab bench rag`: what is on which end, and what is held back."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.models.toy import ToyModel, toy_pieces
from antiphon.retrieval.index import Source
from antiphon.retrieval.passages import Passage
from antiphon.retrieval.sqlite.index import SqliteIndex
from antiphon_lab.workloads.documents import CONTINUED, PREFIX, TASKS, find_task, libraries
from lab.rag_data import write_rag_data


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    return write_rag_data(tmp_path)


def toy() -> ToyModel:
    return ToyModel(toy_pieces(order=1), seed=3)


@pytest.mark.parametrize("name", TASKS)
def test_every_passage_is_on_one_end(name: str, data: Path) -> None:
    task = find_task(name)
    everything = [passage.text for passage in task.passages(data)]
    with libraries(task, data) as ends:
        counts = [end.stats().passages for end in ends]
        assert sum(counts) == len(everything)
        assert min(counts) > len(everything) // 5
        found = [{one.passage.text for one in end.search("mill summer rain ice hill north", 1000)} for end in ends]
        assert not found[0] & found[1]


def test_the_libraries_are_made_once_and_anew_for_other_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puts: list[str] = []
    original = SqliteIndex.put

    def counted(index: SqliteIndex, source: Source, passages: Iterable[Passage]) -> int:
        puts.append(source.path)
        return original(index, source, passages)

    monkeypatch.setattr(SqliteIndex, "put", counted)
    for times in (2, 2, 4):
        if times == 4:
            file = data / "nq_passages.jsonl"
            file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
        with libraries(find_task("nq"), data) as ends:
            assert sum(end.stats().passages for end in ends) == 16 - (times == 4)
        assert len(set(puts)) == len(puts) <= times
    assert len(puts) > 2


def test_what_follows_a_text_is_in_no_library(data: Path) -> None:
    task, model = find_task("wikitext"), toy()
    examples = task.examples(data, model)
    passages = [passage.text for passage in task.passages(data)]
    assert 3 < len(examples) < 30
    for example in examples:
        assert len(model.tokenize(example.prompt)) == PREFIX
        assert len(example.target) == CONTINUED
        whole = example.prompt + model.vocabulary.join(example.target).decode(errors="replace")
        assert whole in (data / "wikitext2_test.raw").read_text()
        assert not any(example.prompt[:40] in passage for passage in passages)


def test_what_a_person_can_mend(tmp_path: Path, data: Path) -> None:
    with pytest.raises(UsageError, match="no task 'gsm8k'"):
        find_task("gsm8k")
    with pytest.raises(UsageError, match="--data names the folder"), libraries(find_task("nq"), tmp_path / "nowhere"):
        pass
    (data / "nq_questions.jsonl").write_text('{"id": 3}\n')
    with pytest.raises(UsageError, match="not the data set"):
        find_task("nq").examples(data, toy())
